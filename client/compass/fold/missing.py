"""What is missing still: the gaps of a view, and which messages they may have taken something from."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from compass.fold.entries import MessageEntry
from compass.fold.gathered import Gathered
from compass.fold.ranges import SeqRanges
from compass.gap import Gap


def remaining_gaps(gathered: Gathered) -> tuple[Gap, ...]:
    """List what was told as missing and has not come since, in order."""
    gaps = [*gathered.overflows, *_remaining_ranges(gathered)]
    return tuple(sorted(gaps, key=lambda gap: gap.seq or gap.first_seq))


def _remaining_ranges(gathered: Gathered) -> Iterator[Gap]:
    """Yield ranges. What is told twice counts once, for the reason of the higher number: RETENTION is final."""
    settled = SeqRanges()
    for reason in sorted(gathered.told_missing, reverse=True):
        told = gathered.told_missing[reason]
        for first_told, end_told in told:
            for first_open, end_open in gathered.known.missing(first_told, end_told):
                for first, end in settled.missing(first_open, end_open):
                    yield Gap(first, end - 1, end - first, reason)
        for first, end in told:
            settled.add_range(first, end)


class GapFinder:
    """Tells which messages may have lost something to a gap.

    A gap touches a message where a frame of that message could have been: after the last known frame of something else
    before it, and up to its end, or for an open message up to the first known frame of something else after it.
    """

    def __init__(self, gathered: Gathered, gaps: tuple[Gap, ...]) -> None:
        self._holes = SeqRanges()
        for gap in gaps:
            self._holes.add_range(gap.seq or gap.first_seq, (gap.seq or gap.last_seq) + 1)
        self._marks = sorted(_marks(gathered)) if gaps else []

    def touches(self, entry: MessageEntry) -> bool:
        """Tell whether a gap touches this message."""
        if not self._holes:
            return False
        if not entry.is_assistant:
            return self._holes.overlaps(entry.first_seq, entry.last_seq)
        return self._holes.overlaps(self._mark_before(entry.first_seq) + 1, self._end_of(entry))

    def _mark_before(self, seq: int) -> int:
        at = bisect_left(self._marks, seq)
        return self._marks[at - 1] if at else 0

    def _end_of(self, entry: MessageEntry) -> int:
        if entry.has_ended:
            return entry.end.seq
        at = bisect_right(self._marks, entry.last_seq)
        return self._marks[at] if at < len(self._marks) else self._holes.end


def _marks(gathered: Gathered) -> Iterator[int]:
    """Yield seqs at which no assistant message but the mark's own can be going on."""
    for extent in (*gathered.messages.values(), *gathered.tools.values()):
        yield extent.first_seq
        yield extent.last_seq
    for error in gathered.errors:
        yield error.seq
