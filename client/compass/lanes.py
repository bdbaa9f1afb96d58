"""The two lanes of a subscription, and of a producer: priority never drops, trace is bounded and drops the oldest.

Owns which lane a frame belongs to, the order in which two lanes are read, and what was dropped. It knows nothing of
bytes on a wire or of waiting: every method is synchronous and total.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from compass.v1 import compass_pb2 as pb
from compass.v1 import run_event_pb2

T = TypeVar("T")

_PRIORITY_EVENTS = frozenset(
    {"session_injection", "session_error", "user_message", "message_end", "activity", "prompt"},
)
_PRIORITY_RUN_EVENTS = frozenset({"run_completed", "run_failed", "run_canceled"})
_STALE_ITEMS = 16
"""Trace items that a reader which is behind keeps ahead of a priority item."""


def is_priority(frame: pb.AgentSessionFrame) -> bool:
    """Tell whether a frame travels in the priority lane: states, gaps, endings, failures and what a person must see."""
    if frame.state or frame.HasField("gap"):
        return True
    kind = frame.event.WhichOneof("event")
    if kind == "run_event":
        return _is_priority_run_event(frame.event.run_event)
    return kind in _PRIORITY_EVENTS


def _is_priority_run_event(event: run_event_pb2.SessionRunEvent) -> bool:
    detail = event.WhichOneof("detail")
    if detail is None:
        return False
    body = getattr(event, detail)
    carries_failure = "failure" in body.DESCRIPTOR.fields_by_name and body.HasField("failure")
    return carries_failure or detail in _PRIORITY_RUN_EVENTS


class Entry(NamedTuple, Generic[T]):
    """One item waiting in a lane."""

    position: int
    size: int
    """Bytes, as the lane counts them."""
    item: T


@dataclass(frozen=True, slots=True)
class Hole:
    """Positions that were dropped from the trace lane, both ends included."""

    first: int
    last: int

    @property
    def count(self) -> int:
        """Number of positions in the hole."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class LaneBounds:
    """Bounds of a lane pair. What a bound means when it is reached: trace drops the oldest, priority spills."""

    trace_items: int
    trace_bytes: int
    priority_items: int
    priority_bytes: int

    def __post_init__(self) -> None:
        """Refuse a bound that could not hold one item."""
        for name in self.__slots__:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")


class LanePair(Generic[T]):
    """Two queues over one dense run of positions, read in order of position.

    Every position after the cursor is offered exactly once, in order, to one of the lanes. Since positions are dense, a
    hole between two taken positions is exactly what the trace lane dropped; nothing else is stored about drops.

    The priority lane keeps what fits its bound in memory. What does not fit is *spilled*: the pair remembers only from
    which position on priority items must be read back (`spilled_from`), and takes nothing past it until `refill`.

        position   1 2 3 4 5 6 7 8 9
        trace      t t . t t . t t .      full: drops 1, 2, ... and take() tells Hole(1, 2)
        priority   . . P . . P . . P      never drops; past its bound: spilled from there
    """

    def __init__(self, bounds: LaneBounds, *, cursor: int = 0, keeps_stale: bool = False) -> None:
        self.bounds = bounds
        self.cursor = cursor
        """Last position taken or told as a hole."""
        self.keeps_stale = keeps_stale
        """Whether a pair that is behind drops no more than its bound asks for, whatever waits behind it."""
        self.dropped = 0
        """Trace items dropped since the beginning."""
        self._trace: deque[Entry[T]] = deque()
        self._trace_bytes = 0
        self._priority: deque[Entry[T]] = deque()
        self._priority_bytes = 0
        self._spilled_from: int | None = None
        self._spilled_last = 0
        self._behind = False
        self._offered = self._offered_at_take = cursor

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits, in memory or spilled."""
        return not (self._trace or self._priority or self._spilled_from)

    @property
    def num_waiting(self) -> int:
        """Items in memory in both lanes."""
        return len(self._trace) + len(self._priority)

    @property
    def is_behind(self) -> bool:
        """Whether the trace lane has overflowed since the reader was last level."""
        return self._behind

    @property
    def has_priority(self) -> bool:
        """Whether a priority item waits, in memory or spilled."""
        return bool(self._priority or self._spilled_from)

    @property
    def priority_is_full(self) -> bool:
        """Whether the next priority item would be spilled."""
        bounds = self.bounds
        return len(self._priority) >= bounds.priority_items or self._priority_bytes >= bounds.priority_bytes

    @property
    def spilled_from(self) -> int | None:
        """First position whose priority items must be read back before anything past it can be taken."""
        return self._spilled_from

    @property
    def spilled_last(self) -> int:
        """Last position known to be spilled. Meaningless while `spilled_from` is None."""
        return self._spilled_last

    def offer_trace(self, entries: Sequence[Entry[T]]) -> None:
        """Add trace items; drop the oldest beyond the bound."""
        self._trace.extend(entries)
        if entries:
            self._offered = entries[-1].position
        self._trace_bytes += sum(entry.size for entry in entries)
        self._trim(self.bounds.trace_items)

    def offer_priority(self, entry: Entry[T], *, past_bound: bool = False) -> None:
        """Add a priority item, or remember that it is spilled. `past_bound` keeps it: there is no log to refill from.

        A reader that is behind, one whose trace lane has overflowed since it was last level, and that reads all the
        same, keeps only a few trace items ahead of a priority item: else the item would wait for a thousand that are
        stale anyway. For one that does not read at all nothing waits longer by keeping them.
        """
        if self._spilled_from is not None or (self.priority_is_full and not past_bound):
            self._spill(entry.position)
        else:
            self._priority.append(entry)
            self._priority_bytes += entry.size
        self._offered = entry.position
        if self._behind and self._is_reading and not self.keeps_stale:
            self._trim(_STALE_ITEMS)

    def refill(self, entries: Iterable[Entry[T]], *, covered: int) -> None:
        """Give back spilled priority items: all those from `spilled_from` up to and including position `covered`."""
        for entry in entries:
            self._priority.append(entry)
            self._priority_bytes += entry.size
        self._spilled_from = None if covered >= self._spilled_last else covered + 1

    def take(self, *, max_items: int, max_bytes: int) -> list[Hole | Entry[T]]:
        """Take what comes next in order, each hole in its place. At least one item if any can be taken.

        Stops early at `spilled_from`; an empty list then means that `refill` must come first.
        """
        self._offered_at_take = self._offered
        taken: list[Hole | Entry[T]] = []
        num_items = num_bytes = 0
        while num_items < max_items and (entry := self._peek()) is not None:
            if num_items and num_bytes + entry.size > max_bytes:
                break
            self._pop(entry)
            if entry.position > self.cursor + 1:
                taken.append(Hole(self.cursor + 1, entry.position - 1))
            taken.append(entry)
            self.cursor = entry.position
            num_items += 1
            num_bytes += entry.size
        if not taken and self.is_empty:
            # Not as soon as the last item is taken: where little is kept, that happens to a reader that is far behind.
            self._behind = False
        return taken

    @property
    def _is_reading(self) -> bool:
        """Whether something was taken within the last lane's length of offers."""
        return self._offered - self._offered_at_take <= self.bounds.trace_items

    def _peek(self) -> Entry[T] | None:
        trace = self._trace[0] if self._trace else None
        if self._priority:
            head = self._priority[0]
            return trace if trace is not None and trace.position < head.position else head
        if self._spilled_from is not None and (trace is None or trace.position > self._spilled_from):
            return None
        return trace

    def _pop(self, entry: Entry[T]) -> None:
        if self._trace and self._trace[0] is entry:
            self._trace.popleft()
            self._trace_bytes -= entry.size
        else:
            self._priority.popleft()
            self._priority_bytes -= entry.size

    def _spill(self, position: int) -> None:
        if self._spilled_from is None:
            self._spilled_from = position
        self._spilled_last = position

    def _trim(self, max_items: int) -> None:
        trace, num_bytes, max_bytes = self._trace, self._trace_bytes, self.bounds.trace_bytes
        num_before = len(trace)
        while len(trace) > max_items or (num_bytes > max_bytes and len(trace) > 1):
            num_bytes -= trace.popleft().size
        if dropped := num_before - len(trace):
            self._trace_bytes = num_bytes
            self.dropped += dropped
            self._behind = True
