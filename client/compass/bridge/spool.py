"""The spool: what an agent has said and the service has not acknowledged, on disk, so that no crash takes it.

A directory per session holds the identity of its producer (`producer.json`) and segments of events, named by the
producer seq of their first one. An event is a line: the id of the prompt that it records, a space, the JSON. It is
written to the file before it is sent, which outlives a kill of the bridge; a power cut may take the last seconds.
Bound: bytes on disk; beyond it, whoever appends waits.
"""

import asyncio
import errno
import fcntl
import os
import re
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from compass.bridge.identity import Identity
from compass.bridge.orphan import Orphan
from compass.errors import FieldViolation, InvalidSessionIdError

DEFAULT_MAX_BYTES = 256 * 1024 * 1024
SEGMENT_BYTES = 4 * 1024 * 1024
_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
"""The service says the same; here it also keeps a session's name from being another path."""


class SpoolBusyError(Exception):
    """Another bridge runs this session from the same spool."""


class Spooled(NamedTuple):
    """One event in the spool."""

    event: bytes
    prompt_id: str


@dataclass(slots=True)
class _Segment:
    path: Path
    first_seq: int
    num_events: int
    num_bytes: int

    @property
    def end_seq(self) -> int:
        return self.first_seq + self.num_events


def default_spool() -> Path:
    """Return where spools are kept unless another place is named."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "compass-trace" / "spool"


class Spool:
    """The spool of one session, held by one bridge at a time."""

    def __init__(self, root: Path, session_id: str, *, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        """Open the spool and take its lock. Raises InvalidSessionIdError, SpoolBusyError, OSError."""
        if not _SESSION_ID.fullmatch(session_id):
            grammar = f"must match {_SESSION_ID.pattern}, got {session_id[:64]!r}"
            raise InvalidSessionIdError((FieldViolation("session_id", grammar),))
        self.path = root / session_id
        self._max_bytes = max_bytes
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = (self.path / "lock").open("ab")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise SpoolBusyError(f"another bridge runs session {session_id} from {self.path}") from None
        self.identity = Identity.load(self.path / "producer.json")
        self._segments = deque(_measured(path) for path in sorted(self.path.glob("[0-9]*.events")))
        self._writing: BinaryIO | None = None
        self._reading: tuple[_Segment, BinaryIO] | None = None
        self._end_seq = self._segments[-1].end_seq if self._segments else 1
        self._read_seq = self._segments[0].first_seq if self._segments else 1
        self._moved = asyncio.Event()
        self.is_finished = False
        """Whether nothing more will be appended."""

    def close(self) -> None:
        """Close the files; what is not acknowledged stays. Idempotent."""
        self._close_files()
        self._lock.close()

    @property
    def acked_seq(self) -> int:
        """Producer seq before the first event that is kept."""
        return self._segments[0].first_seq - 1 if self._segments else self._end_seq - 1

    @property
    def num_kept(self) -> int:
        """Events that are kept."""
        return sum(segment.num_events for segment in self._segments)

    @property
    def is_read(self) -> bool:
        """Whether everything in it was taken."""
        return self._read_seq >= self._end_seq

    def begin(self) -> None:
        """Begin the next epoch, for a new agent process. What is kept of the one before is forgotten."""
        self._close_files()
        for segment in self._segments:
            segment.path.unlink(missing_ok=True)
        self._segments.clear()
        self._end_seq = self._read_seq = 1
        self.identity.begin_epoch()

    def note_process(self, pid: int) -> None:
        """Remember the agent process, so that a later run can make sure that it is gone."""
        self.identity.process = Orphan.of(pid)
        self.identity.save()

    async def append(self, event: str, prompt_id: str = "") -> None:
        """Keep an event. Waits while there is no room."""
        while self._num_bytes > self._max_bytes:
            await self._moved.wait()
        line = f"{prompt_id} {event}\n".encode(errors="replace")
        segment, file = self._segment_for_writing()
        if file.write(line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(segment.path))
        segment.num_events += 1
        segment.num_bytes += len(line)
        self._end_seq += 1
        self._announce()

    def take(self) -> Spooled | None:
        """Return the next event that was not taken yet. None when there is none."""
        if self.is_read:
            return None
        line = self._line()
        self._read_seq += 1
        prompt_id, _, event = line.partition(b" ")
        return Spooled(event.rstrip(b"\n"), prompt_id.decode())

    def finish(self) -> None:
        """Say that nothing more will be appended."""
        self.is_finished = True
        self._announce()

    async def wait(self) -> None:
        """Wait until something was appended or settled, or it is finished."""
        await self._moved.wait()

    def settle(self, acked_seq: int) -> None:
        """Forget segments whose every event is acknowledged."""
        while self._segments and self._segments[0].end_seq - 1 <= acked_seq and self._segments[0].num_events:
            segment = self._segments.popleft()
            if not self._segments:
                self._close_files()
            segment.path.unlink(missing_ok=True)
            self._announce()

    # -- inside -----------------------------------------------------------------------------------------------------

    @property
    def _num_bytes(self) -> int:
        return sum(segment.num_bytes for segment in self._segments)

    def _announce(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    def _segment_for_writing(self) -> tuple[_Segment, BinaryIO]:
        if self._writing is None or self._segments[-1].num_bytes >= SEGMENT_BYTES:
            if self._writing is not None:
                self._writing.close()
            path = self.path / f"{self._end_seq:020}.events"
            self._segments.append(_Segment(path, self._end_seq, 0, 0))
            self._writing = path.open("wb", buffering=0)
        return self._segments[-1], self._writing

    def _line(self) -> bytes:
        segment = next(each for each in self._segments if each.first_seq <= self._read_seq < each.end_seq)
        if self._reading is None or self._reading[0] is not segment:
            if self._reading is not None:
                self._reading[1].close()
            self._reading = segment, segment.path.open("rb")
            for _ in range(self._read_seq - segment.first_seq):
                self._reading[1].readline()
        return self._reading[1].readline()

    def _close_files(self) -> None:
        if self._writing is not None:
            self._writing.close()
        if self._reading is not None:
            self._reading[1].close()
        self._writing = self._reading = None


def _measured(path: Path) -> _Segment:
    """Measure a segment, and cut off a last line that a kill has left unfinished: it was never sent."""
    with path.open("r+b") as file:
        num_events = num_bytes = 0
        for line in file:
            if not line.endswith(b"\n"):
                file.truncate(num_bytes)
                break
            num_events += 1
            num_bytes += len(line)
    return _Segment(path, int(path.stem), num_events, num_bytes)
