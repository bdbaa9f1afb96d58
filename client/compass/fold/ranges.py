"""A set of seqs as disjoint ranges: which frames a fold has, and which it was told are missing."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator


class SeqRanges:
    """A set of seqs. Adding in order is constant time; ranges are half-open and never touch."""

    __slots__ = ("_ends", "_firsts")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._ends: list[int] = []

    def __bool__(self) -> bool:
        return bool(self._firsts)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._firsts, self._ends, strict=True)

    @property
    def end(self) -> int:
        """One past the last seq, 0 when empty."""
        return self._ends[-1] if self._ends else 0

    def add(self, seq: int) -> bool:
        """Add one seq. Returns False if it was there already."""
        ends = self._ends
        if ends and seq == ends[-1]:
            ends[-1] = seq + 1
            return True
        if self.covers(seq, seq + 1):
            return False
        self.add_range(seq, seq + 1)
        return True

    def add_range(self, first: int, end: int) -> None:
        """Add all seqs of [first, end)."""
        firsts, ends = self._firsts, self._ends
        at = bisect_left(ends, first)  # the first range that touches or follows
        to = bisect_right(firsts, end)
        if at < to:
            first, end = min(first, firsts[at]), max(end, ends[to - 1])
        firsts[at:to] = [first]
        ends[at:to] = [end]

    def covers(self, first: int, end: int) -> bool:
        """Tell whether all seqs of [first, end) are in the set."""
        at = bisect_right(self._firsts, first) - 1
        return at >= 0 and end <= self._ends[at]

    def missing(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield what [first, end) holds beyond this set, as ranges in order."""
        at = bisect_right(self._ends, first)
        while first < end:
            if at == len(self._firsts) or self._firsts[at] >= end:
                yield first, end
                return
            if first < self._firsts[at]:
                yield first, self._firsts[at]
            first = self._ends[at]
            at += 1

    def overlaps(self, first: int, end: int) -> bool:
        """Tell whether any seq of [first, end) is in the set."""
        at = bisect_right(self._ends, first)
        return at < len(self._firsts) and self._firsts[at] < end

    def range_of(self, seq: int) -> int:
        """Return the first seq of the range that holds `seq`, which is in the set."""
        return self._firsts[bisect_right(self._firsts, seq) - 1]
