"""What one session commits, handed to everybody who follows it: recent records, lane pairs, and paced waking."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from compass.lanes import Entry, LanePair
from compass.v1 import compass_pb2 as pb
from compass_service.frames import LANE_PRIORITY
from compass_service.log.protocol import Record
from compass_service.log.records import kept_frames
from compass_service.session import checkpoint as checkpoints
from compass_service.session.checkpoint import Checkpoint

_RECENT_BYTES = 2 * 1024 * 1024
"""Records kept for readers without lanes. Bound in bytes; policy: drop the oldest, readers fall back to the log."""
_WAKE_FRAMES = 256
_PACE_S_PER_FOLLOWER = 0.0001


class Feed:
    """Follows one session on behalf of all its subscriptions.

    Everything here happens on the event loop, in commit order: `on_record` is the log's listener. Waking is paced,
    since messages cost and frames do not: followers wake together on a tick of 0.1 ms for each of them, at once for a
    priority frame or when many frames wait.
    """

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.head_seq = 0
        self.lag_dropped = 0
        """Frames that lanes of ended subscriptions had dropped."""
        self.followers: set[Follower] = set()
        self._checkpoint = b""
        self._decoded: Checkpoint | None = None
        self._recent: deque[Record] = deque()
        self._recent_bytes = 0
        self._first_ordinal = 0
        self._unwoken = 0
        self._tick: asyncio.TimerHandle | None = None

    def begin(self, head_seq: int, checkpoint: bytes) -> None:
        """Take up what the log held when the feed began to listen, unless a newer record has come meanwhile."""
        if not self._checkpoint:
            self.head_seq, self._checkpoint = head_seq, checkpoint

    @property
    def checkpoint(self) -> Checkpoint:
        """The session as of the newest record."""
        if self._decoded is None:
            self._decoded = checkpoints.decode(self._checkpoint)
        return self._decoded

    @property
    def is_stopped(self) -> bool:
        """Whether the newest frame is the last one there will be."""
        return self.checkpoint.mapper.lifecycle == pb.AGENT_SESSION_STATE_STOPPED

    def on_record(self, record: Record) -> None:
        """Take what was committed: keep it, offer it to every lane pair, and wake who waits."""
        self._checkpoint, self._decoded = record.checkpoint, None
        self.head_seq = record.end_seq - 1
        if not record.frames:
            return
        self._keep(record)
        self._offer(record)
        self._pace(record)

    def next_recent(self, ordinal: int, cursor: int) -> tuple[Record, int] | None:
        """Return the record that follows the cursor, and its ordinal. None if it is not among the recent ones.

        `ordinal` is a hint: where the caller's last record was. It spares searching.
        """
        at = max(0, ordinal + 1 - self._first_ordinal)
        if at < len(self._recent) and self._recent[at].first_seq == cursor + 1:
            return self._recent[at], self._first_ordinal + at
        for at, record in enumerate(self._recent):
            if record.first_seq <= cursor + 1 < record.end_seq:
                return record, self._first_ordinal + at
        return None

    def wake(self) -> None:
        """Wake every follower that waits."""
        if self._tick is not None:
            self._tick.cancel()
            self._tick = None
        self._unwoken = 0
        for follower in self.followers:
            follower.wake()

    def close(self) -> None:
        """Stop the pacing timer. Idempotent."""
        if self._tick is not None:
            self._tick.cancel()
            self._tick = None

    def _keep(self, record: Record) -> None:
        self._recent.append(record)
        self._recent_bytes += _num_bytes(record)
        while self._recent_bytes > _RECENT_BYTES and len(self._recent) > 1:
            self._recent_bytes -= _num_bytes(self._recent.popleft())
            self._first_ordinal += 1

    def _offer(self, record: Record) -> None:
        pairs = [follower.lanes for follower in self.followers if follower.lanes is not None]
        if pairs:
            offer(record, pairs)

    def _pace(self, record: Record) -> None:
        self._unwoken += len(record.frames)
        if self._unwoken >= _WAKE_FRAMES or LANE_PRIORITY in record.lanes:
            self.wake()
        elif self._tick is None and self.followers:
            loop = asyncio.get_running_loop()
            self._tick = loop.call_later(_PACE_S_PER_FOLLOWER * len(self.followers), self.wake)


class Follower:
    """One subscription's place at a feed: its lanes, if it has any, and the waiting."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.lanes: LanePair[bytes] | None = None
        self.last_sent = now()
        self._now = now
        self._waiter: asyncio.Future[None] | None = None

    def wake(self) -> None:
        """End the wait, if it waits."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def wait(self) -> None:
        """Wait to be woken."""
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def sent(self) -> None:
        """Note that something was sent just now."""
        self.last_sent = self._now()


def offer(record: Record, pairs: Sequence[LanePair[bytes]], *, after: int = 0) -> None:
    """Offer the frames of a record that follow a seq to lane pairs."""
    trace: list[Entry[bytes]] = []
    for seq, is_priority, frame in kept_frames(record):
        if seq <= after:
            continue
        entry = Entry(seq, len(frame), frame)
        if not is_priority:
            trace.append(entry)
            continue
        for lanes in pairs:
            if trace:
                lanes.offer_trace(trace)
            lanes.offer_priority(entry)
        trace = []
    if trace:
        for lanes in pairs:
            lanes.offer_trace(trace)


def _num_bytes(record: Record) -> int:
    return sum(map(len, record.frames))
