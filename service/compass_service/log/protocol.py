"""The session log as the floors above see it: records in, records out. One protocol, so that a second kind can come."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias


class Record(NamedTuple):
    """What one commit wrote for one session: a dense run of frames, and the session's checkpoint after it."""

    session_id: str
    first_seq: int
    """Seq of the first frame; for a record without frames, the seq that the next frame will get."""
    lanes: bytes
    """One byte a seq: LANE_TRACE, LANE_PRIORITY, or LANE_TRIMMED for a frame whose bytes retention took."""
    frames: tuple[bytes, ...]
    """The frames that are kept, numbered and delimited, in order of seq."""
    checkpoint: bytes
    """Everything needed to go on after this record. Empty in a record that was read back."""
    at_unix_ms: int
    """When it was written."""
    protected_from_seq: int | None = None
    """From the record that holds this seq on, retention takes trace frames only: an open prompt stands there. None = it
    may take everything. Meant for the session as a whole, until its next record says otherwise."""

    @property
    def end_seq(self) -> int:
        """One past the last seq."""
        return self.first_seq + len(self.lanes)


class Page(NamedTuple):
    """Records read from a session, in order."""

    records: Sequence[Record]
    next_seq: int
    """Where to read on. All up to here was looked at; what is not in the records was not asked for or is gone."""


class StoredSession(NamedTuple):
    """What the log knows of a session without reading its records."""

    session_id: str
    head_seq: int
    """Newest seq, 0 before the first frame."""
    first_kept_seq: int
    """Oldest seq of which anything is kept, 0 before the first frame, head_seq + 1 when nothing is."""
    checkpoint: bytes
    """Of the last record."""
    created_unix_ms: int
    updated_unix_ms: int
    num_bytes: int
    """Frame bytes kept."""
    num_trimmed: int
    """Frames that retention took."""


Listener: TypeAlias = Callable[[Record], None]


class LogError(Exception):
    """Root of what the session log raises."""


class HeadMovedError(LogError):
    """An append did not continue the session's head. The writer must reload; a retry of the same record is useless."""

    def __init__(self, session_id: str, *, head_seq: int, first_seq: int) -> None:
        super().__init__(f"session {session_id} is at seq {head_seq}, the record begins at {first_seq}")
        self.session_id = session_id
        self.head_seq = head_seq
        self.first_seq = first_seq


class LogFullError(LogError):
    """The disk is full. Nothing of the record was stored; a retry helps once there is room."""

    def __init__(self) -> None:
        super().__init__("no room for more records")


class LogClosedError(LogError):
    """The log is closed or has failed for good."""

    def __init__(self) -> None:
        super().__init__("the session log is closed")


class LogReadError(LogError):
    """The storage failed under a read. The cause is in the service's own log; a retry may help."""

    def __init__(self) -> None:
        super().__init__("the session log could not be read")


class DataDirLockedError(LogError):
    """Another process holds the data directory."""

    def __init__(self, data_dir: str, holder: str) -> None:
        super().__init__(f"data directory {data_dir} is held by another process ({holder})")
        self.data_dir = data_dir
        self.holder = holder


class SessionLog(Protocol):
    """A durable log per session. All methods are called on the event loop's thread."""

    @property
    def backend(self) -> str:
        """Kind of log, as GetServerInfo reports it."""
        ...

    async def append(self, record: Record) -> None:
        """Commit a record whole. Returns once it is durable.

        Appends of one session commit in the order of the calls. Before the call returns, every listener of the session
        has been given the record. Raises HeadMovedError, LogFullError, LogClosedError; then nothing was stored, and
        appends of the same session that were waiting behind it fail with HeadMovedError.
        """
        ...

    async def read(
        self,
        session_id: str,
        first_seq: int,
        *,
        end_seq: int,
        max_bytes: int,
        priority_only: bool = False,
    ) -> Page:
        """Read records that hold seqs in [first_seq, end_seq), at least one if there is one, about max_bytes at most.

        A record is returned whole, also where it begins before first_seq or ends after end_seq. With priority_only,
        records without a kept priority frame are left out and `next_seq` still moves past them.
        """
        ...

    async def load(self, session_id: str) -> StoredSession | None:
        """Report one session, None if it does not exist."""
        ...

    async def list(self, *, limit: int, before: tuple[int, str] | None = None) -> Sequence[StoredSession]:
        """List sessions, newest change first, after the (updated_unix_ms, session_id) that ended the page before."""
        ...

    async def trim(self, *, now_unix_ms: int) -> Sequence[str]:
        """Apply retention once. Returns the sessions that were removed altogether."""
        ...

    def listen(self, session_id: str, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every record of a session that commits from now on, in order. Returns how to stop."""
        ...

    async def close(self) -> None:
        """Commit what was appended, then close. Idempotent."""
        ...
