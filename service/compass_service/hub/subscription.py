"""One reader of one session: history first and whole, then live through lanes or losslessly, then the sentinel."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from compass.lanes import Entry, Hole, LaneBounds, LanePair
from compass.limits import MAX_FRAME_BYTES, MAX_RESPONSE_BYTES
from compass.v1 import compass_pb2 as pb
from compass_service import frames
from compass_service.hub.feed import Feed, Follower, offer
from compass_service.hub.reading import REASON_LAG, History, Laps, gap_frame
from compass_service.log.protocol import Record, SessionLog
from compass_service.log.records import kept_frames
from compass_service.mapper import activity_message
from compass_service.problems import DrainingError

_PART_BYTES = MAX_RESPONSE_BYTES - MAX_FRAME_BYTES - 4_096
"""A part may pass this by one frame and the gap before it, and so never passes MAX_RESPONSE_BYTES."""
_LIVE_PART_BYTES = 64 * 1024
_PART_FRAMES = 8_192
_BEHIND_PART_BYTES = 8 * 1024
_BEHIND_PART_FRAMES = 16
"""What is in a message can be neither dropped nor overtaken: a reader that is behind gets small ones."""


@dataclass(frozen=True, slots=True)
class Wants:
    """What a reader asked for. `until_seq` None = no such end."""

    session_id: str
    since_seq: int = 0
    until_seq: int | None = None
    from_now: bool = False
    is_lossless: bool = False
    follow: bool = True


class Part(NamedTuple):
    """What is sent at once. No frames and no end: a heartbeat."""

    frames: list[bytes]
    """Delimited."""
    head_seq: int
    resume_seq: int
    end: pb.SessionEndReason.ValueType = pb.SESSION_END_REASON_UNSPECIFIED


class Subscription:
    """Gives the parts of one reader in order. `next` waits, everything else is synchronous.

    The cursor only grows. Until it is level with the head, and always for a lossless reader, frames come from the
    feed's recent records or from the log; from then on a lane pair decides what a slow reader misses. A live reader
    that never gets level, since more arrives than it takes, gets its lane pair once that shows.
    """

    def __init__(
        self,
        wants: Wants,
        feed: Feed,
        log: SessionLog,
        *,
        bounds: LaneBounds,
        heartbeat_s: float,
        now: Callable[[], float],
        is_draining: Callable[[], bool],
    ) -> None:
        head_seq = feed.head_seq
        self._wants = wants
        self._feed = feed
        self._log = log
        self._bounds = bounds
        self._heartbeat_s = heartbeat_s
        self._now = now
        self._is_draining = is_draining
        self._follower = Follower(now)
        self._history = History(wants.session_id, head_seq if wants.from_now else wants.since_seq)
        self._laps = Laps(cursor=self._history.cursor, head_seq=head_seq)
        self._records: deque[Record] = deque()
        self._ordinal = -1
        self._read_seq = 0
        self._lanes: LanePair[bytes] | None = None
        self._owes_snapshot = wants.from_now
        self._owes_current = wants.follow
        self._last_seq = self._last_wanted(head_seq)
        self._is_over = False
        feed.followers.add(self._follower)

    async def next(self) -> Part | None:
        """Return the next part, None after the sentinel. Raises DrainingError when the server shuts down."""
        while not self._is_over:
            if self._is_draining():
                raise DrainingError
            if self._is_losing():
                await self._go_live_behind()
            if (part := self._take()) is not None:
                self._follower.sent()
                return part
            if self._lanes is not None and self._lanes.spilled_from is not None:
                await self._refill(self._lanes, self._lanes.spilled_from)
            elif self._cursor < self._end_seq - 1:
                await self._read()
            else:
                await self._follower.wait()
        return None

    def close(self) -> None:
        """Leave the feed. Idempotent."""
        if self._follower in self._feed.followers:
            self._feed.followers.discard(self._follower)
            if self._lanes is not None:
                self._feed.lag_dropped += self._lanes.dropped

    @property
    def _cursor(self) -> int:
        return self._history.cursor if self._lanes is None else self._lanes.cursor

    @property
    def _end_seq(self) -> int:
        """One past the last seq that can be given now."""
        head_seq = self._feed.head_seq
        return (head_seq if self._last_seq is None else min(head_seq, self._last_seq)) + 1

    def _last_wanted(self, head_seq: int) -> int | None:
        until_seq = self._wants.until_seq
        if self._wants.follow:
            return until_seq
        return head_seq if until_seq is None else min(until_seq, head_seq)

    def _take(self) -> Part | None:
        """Return what can be sent without waiting."""
        if self._owes_snapshot:
            self._owes_snapshot = False
            return self._part(self._snapshot())
        picked = self._from_lanes(self._lanes) if self._lanes is not None else self._from_records()
        if picked:
            return self._part(picked)
        if self._cursor < self._end_seq - 1:
            return None
        if (reason := self._end_reason()) != pb.SESSION_END_REASON_UNSPECIFIED:
            self._is_over = True
            return self._part([])._replace(end=reason)
        self._go_live()
        is_due = self._now() - self._follower.last_sent >= self._heartbeat_s
        if self._owes_current or is_due:
            self._owes_current = False
            return self._part([])
        return None

    def _part(self, picked: list[bytes]) -> Part:
        return Part(picked, self._feed.head_seq, self._cursor)

    def _end_reason(self) -> pb.SessionEndReason.ValueType:
        """Tell why a reader that has everything there is gets no more. UNSPECIFIED = it may get more."""
        if self._feed.is_stopped and self._cursor >= self._feed.head_seq:
            return pb.SESSION_END_REASON_STOPPED
        if self._last_seq is None or self._cursor < self._last_seq:
            return pb.SESSION_END_REASON_UNSPECIFIED
        if self._last_seq == self._wants.until_seq:
            return pb.SESSION_END_REASON_UNTIL
        return pb.SESSION_END_REASON_HEAD

    def _is_losing(self) -> bool:
        """Tell whether a live reader without an end must go live now, since it will never be level."""
        if self._lanes is not None or self._wants.is_lossless or self._last_seq is not None:
            return False
        return self._laps.is_losing(cursor=self._cursor, head_seq=self._feed.head_seq)

    async def _go_live_behind(self) -> None:
        """Put what the reader has not had yet through a lane pair, as if it had been level before that."""
        lanes: LanePair[bytes] = LanePair(self._bounds, cursor=self._cursor)
        next_seq = self._cursor + 1
        while next_seq <= self._feed.head_seq:
            page = await self._log.read(
                self._wants.session_id,
                next_seq,
                end_seq=self._feed.head_seq + 1,
                max_bytes=MAX_RESPONSE_BYTES,
            )
            for record in page.records:
                offer(record, [lanes], after=next_seq - 1)
            next_seq = page.next_seq
        self._lanes = self._follower.lanes = lanes

    def _go_live(self) -> None:
        if self._lanes is None and not self._wants.is_lossless:
            self._lanes = self._follower.lanes = LanePair(self._bounds, cursor=self._history.cursor)

    def _snapshot(self) -> list[bytes]:
        mapped = self._feed.checkpoint.mapper
        session_id = self._wants.session_id
        state = pb.AgentSessionState.ValueType(mapped.lifecycle)
        snapshot = [pb.AgentSessionFrame(session_id=session_id, state=state)] if state else []
        if mapped.activity.phase:
            activity = activity_message(mapped)
            event = pb.SessionEvent(at_unix_ms=activity.started_at_unix_ms, activity=activity)
            snapshot.append(pb.AgentSessionFrame(session_id=session_id, event=event))
        return [frames.delimit(frame.SerializeToString()) for frame in snapshot]

    def _from_lanes(self, lanes: LanePair[bytes]) -> list[bytes]:
        if lanes.is_behind:
            max_items, max_bytes = _BEHIND_PART_FRAMES, _BEHIND_PART_BYTES
        else:
            max_items, max_bytes = _PART_FRAMES, _LIVE_PART_BYTES
        picked: list[bytes] = []
        for taken in lanes.take(max_items=max_items, max_bytes=max_bytes):
            first_seq = taken.first if isinstance(taken, Hole) else taken.position
            if first_seq >= self._end_seq:
                lanes.cursor = self._end_seq - 1
                break
            if isinstance(taken, Hole):
                last_seq = min(taken.last, self._end_seq - 1)
                picked.append(gap_frame(self._wants.session_id, first_seq, last_seq, REASON_LAG))
            else:
                picked.append(taken.item)
        return picked

    def _from_records(self) -> list[bytes]:
        """Pick from records at hand: those read from the log, then the recent ones."""
        picked: list[bytes] = []
        num_bytes = 0
        while num_bytes < _PART_BYTES and self._cursor < self._end_seq - 1:
            if not self._records and not self._follow_recent():
                if self._read_seq >= self._end_seq:
                    picked += self._history.cover(self._end_seq - 1)
                break
            taken = self._history.take(self._records[0], end_seq=self._end_seq, max_bytes=_PART_BYTES - num_bytes)
            picked += taken.frames
            num_bytes += taken.num_bytes
            if not taken.is_exhausted:
                break
            self._records.popleft()
        return picked

    def _follow_recent(self) -> bool:
        found = self._feed.next_recent(self._ordinal, self._cursor)
        if found is None:
            return False
        record, self._ordinal = found
        self._records.append(record)
        return True

    async def _read(self) -> None:
        """Read on in the log, up to what the feed knows of."""
        first_seq = max(self._read_seq, self._cursor + 1)
        page = await self._log.read(
            self._wants.session_id,
            first_seq,
            end_seq=self._end_seq,
            max_bytes=MAX_RESPONSE_BYTES,
        )
        self._records.extend(page.records)
        self._read_seq = page.next_seq

    async def _refill(self, lanes: LanePair[bytes], first_seq: int) -> None:
        end_seq = lanes.spilled_last + 1
        page = await self._log.read(
            self._wants.session_id,
            first_seq,
            end_seq=end_seq,
            max_bytes=self._bounds.priority_bytes,
            priority_only=True,
        )
        # The log may know of records that the feed has not been told yet; what is past the spill comes by itself.
        covered = min(page.next_seq - 1, lanes.spilled_last)
        entries = [
            Entry(seq, len(frame), frame)
            for record in page.records
            for seq, is_priority, frame in kept_frames(record)
            if is_priority and first_seq <= seq <= covered
        ]
        lanes.refill(entries, covered=covered)
