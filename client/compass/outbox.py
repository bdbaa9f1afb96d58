"""What a producer holds between push and acknowledgement. Pure: no I/O, no waiting, no clock.

Owns the lane pair on the producer's side, the numbering of events, the window, and what is sent again after a cut.
"""

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from compass.errors import SequenceJumpError
from compass.lanes import Entry, Hole, LaneBounds, LanePair
from compass.limits import MAX_REQUEST_BYTES
from compass.v1 import agent_gateway_pb2 as pb

OUTBOX_BOUNDS = LaneBounds(
    trace_items=8_192,
    trace_bytes=8 * 1024 * 1024,
    priority_items=8_192,
    priority_bytes=8 * 1024 * 1024,
)
"""Reached, trace drops its oldest and priority makes push wait. What a producer drops exists nowhere else."""

MAX_BATCH_EVENTS = 1_024
MAX_BATCH_BYTES = 1024 * 1024
MAX_MESSAGES_IN_FLIGHT = 2
"""A message costs the server as much as hundreds of events: while two are out, the rest gathers in the lanes."""

_ROOM_FOR_FRAMING = 1_024
MAX_EVENT_BYTES = MAX_REQUEST_BYTES - _ROOM_FOR_FRAMING


class Batch(NamedTuple):
    """Events that leave in one message."""

    first_seq: int
    """Producer seq of the first."""
    events: list[pb.InnerEvent]
    dropped: int
    """Events dropped just before the first."""


@dataclass(slots=True)
class Window:
    """What may be unacknowledged at once, as the server says."""

    events: int = MAX_BATCH_EVENTS
    num_bytes: int = MAX_BATCH_BYTES


class Outbox:
    """Events on their way out, in the order of their push.

        lanes ──take──▶ ready ──next_batch──▶ in flight ──acknowledge──▶ gone
                          ▲                       │
                          └────────resume─────────┘   (a new stream: what is not acknowledged goes again)

    An event gets its producer seq when it leaves the lanes, so seqs are dense whatever the trace lane drops; its place
    is `acked_seq` plus its rank in what was taken and is not acknowledged. A hole between two taken events travels with
    the later one, so that one commit takes both.
    """

    def __init__(self, session_id: str, bounds: LaneBounds = OUTBOX_BOUNDS, *, acked_seq: int = 0) -> None:
        self.session_id = session_id
        self.window = Window()
        self.acked_seq = acked_seq
        """Highest producer seq up to which every event is durable."""
        self.num_oversize = 0
        """Events dropped because no message can carry them."""
        self._lanes: LanePair[pb.InnerEvent] = LanePair(bounds, keeps_stale=True)
        self._last_position = 0
        self._ready: deque[Entry[pb.InnerEvent]] = deque()
        self._in_flight: deque[Entry[pb.InnerEvent]] = deque()
        self._in_flight_bytes = 0
        self._message_ends: deque[int] = deque()
        """Last producer seq of each message in flight."""
        self._dropped_before: dict[int, int] = {}
        """By position of an event: what was dropped just before it."""
        self._has_refused = False
        self._num_known = 0
        """Coming events that an earlier life of this epoch has had acknowledged. While there are any, none is held."""

    @property
    def priority_is_full(self) -> bool:
        """Whether a push that must not be dropped has to wait."""
        return self._lanes.priority_is_full

    @property
    def is_crowded(self) -> bool:
        """Whether so much waits that trace may soon be dropped."""
        return 2 * self._lanes.num_waiting > self._lanes.bounds.trace_items

    @property
    def num_dropped(self) -> int:
        """Events dropped, for want of room or because they were too large."""
        return self._lanes.dropped + self.num_oversize

    @property
    def last_position(self) -> int:
        """Position of the newest event pushed; positions count every push."""
        return self._last_position

    @property
    def settled_position(self) -> int:
        """Position up to which every event is acknowledged or dropped."""
        if oldest := self._in_flight or self._ready:
            return oldest[0].position - 1
        return self._last_position if self._lanes.is_empty else self._lanes.cursor

    @property
    def num_unacknowledged(self) -> int:
        """Events pushed, not dropped and not acknowledged."""
        return len(self._in_flight) + len(self._ready) + self._lanes.num_waiting

    @property
    def num_trailing_dropped(self) -> int:
        """Events dropped after the last one that is held or was sent: none came since that could tell of them."""
        return self._last_position - self._lanes.cursor if self._lanes.is_empty else 0

    def push(self, event: pb.InnerEvent, size: int, *, in_priority: bool) -> None:
        """Take an event. One that no message can carry is dropped, and told as such in its place.

        To wait while priority is full is the caller's part: what is pushed all the same is kept past the bound.
        """
        self._last_position += 1
        if size > MAX_EVENT_BYTES:
            self.num_oversize += 1
            return
        if self._num_known:
            self._num_known -= 1
            self._lanes.cursor = self._last_position
            return
        entry = Entry(self._last_position, size, event)
        if in_priority:
            self._lanes.offer_priority(entry, past_bound=True)
        else:
            self._lanes.offer_trace((entry,))

    def next_batch(self) -> Batch | None:
        """Return what goes into the next message; None while nothing waits, or while the window has no room."""
        if len(self._message_ends) >= MAX_MESSAGES_IN_FLIGHT:
            return None
        room_events = self.window.events - len(self._in_flight)
        room_bytes = self.window.num_bytes - self._in_flight_bytes
        if self._in_flight and (room_events < 1 or room_bytes < 1):
            return None
        max_events = max(1, min(MAX_BATCH_EVENTS, room_events))
        max_bytes = min(MAX_BATCH_BYTES, room_bytes)
        if not self._ready:
            self._take(max_events, max_bytes)
        if not self._ready or (self._in_flight and self._ready[0].size > room_bytes):
            return None
        return self._cut_batch(max_events, max_bytes)

    def acknowledge(self, acked_seq: int) -> None:
        """Let go of the events in flight up to a producer seq."""
        for _ in range(min(acked_seq - self.acked_seq, len(self._in_flight))):
            entry = self._in_flight.popleft()
            self._in_flight_bytes -= entry.size
            self._dropped_before.pop(entry.position, None)
            self.acked_seq += 1
        while self._message_ends and self._message_ends[0] <= self.acked_seq:
            self._message_ends.popleft()

    def resume(self, acked_seq: int) -> None:
        """Begin a new stream of which the server says what it has: the rest goes again, once.

        Raises SequenceJumpError when the server lacks events that it had acknowledged: they are held no more.
        """
        if acked_seq < self.acked_seq:
            raise SequenceJumpError(self.session_id, expected_seq=acked_seq + 1)
        num_committed = acked_seq - self.acked_seq
        self.acked_seq = acked_seq
        self._rewind()
        while num_committed and self._ready:
            self._dropped_before.pop(self._ready.popleft().position, None)
            num_committed -= 1
        if self._has_refused:
            self._has_refused = False
            self._drop_refused()
        while num_committed and not self._lanes.is_empty:
            taken = self._lanes.take(max_items=num_committed, max_bytes=MAX_BATCH_BYTES)
            num_committed -= sum(isinstance(each, Entry) for each in taken)
        self._num_known += num_committed

    def note_refused(self) -> bool:
        """Note that the server refused an event in flight as too large. False when none is that large.

        `resume` drops it: only then is it known which of the large ones the server has.
        """
        self._has_refused = any(entry.size > MAX_BATCH_BYTES for entry in self._in_flight)
        return self._has_refused

    def _drop_refused(self) -> None:
        """Drop the event that was refused. Only one larger than a batch travels alone, so it is the first of these."""
        for index, entry in enumerate(self._ready):
            if entry.size > MAX_BATCH_BYTES:
                del self._ready[index]
                self._tell_dropped(entry, index)
                return

    def _rewind(self) -> None:
        self._ready.extendleft(reversed(self._in_flight))
        self._in_flight.clear()
        self._in_flight_bytes = 0
        self._message_ends.clear()

    def _tell_dropped(self, entry: Entry[pb.InnerEvent], index: int) -> None:
        """Put the drop of an event that was taken in front of the one that followed it, at `index` now."""
        self.num_oversize += 1
        dropped = self._dropped_before.pop(entry.position, 0) + 1
        if index < len(self._ready):
            later = self._ready[index].position
            self._dropped_before[later] = self._dropped_before.get(later, 0) + dropped
        else:
            # It was the last one taken: as if it had never left the lanes.
            self._lanes.cursor = entry.position - dropped

    def _take(self, max_events: int, max_bytes: int) -> None:
        dropped = 0
        for taken in self._lanes.take(max_items=max_events, max_bytes=max_bytes):
            if isinstance(taken, Hole):
                dropped = taken.count
                continue
            if dropped:
                self._dropped_before[taken.position] = dropped
                dropped = 0
            self._ready.append(taken)

    def _cut_batch(self, max_events: int, max_bytes: int) -> Batch:
        """Move what fits one message from ready to in flight. What was dropped is told in front of a message only."""
        first_seq = self.acked_seq + len(self._in_flight) + 1
        dropped = self._dropped_before.get(self._ready[0].position, 0)
        events: list[pb.InnerEvent] = []
        num_bytes = 0
        while self._ready and len(events) < max_events:
            entry = self._ready[0]
            if events and (num_bytes + entry.size > max_bytes or entry.position in self._dropped_before):
                break
            self._in_flight.append(self._ready.popleft())
            events.append(entry.item)
            num_bytes += entry.size
        self._in_flight_bytes += num_bytes
        self._message_ends.append(first_seq + len(events) - 1)
        return Batch(first_seq, events, dropped)
