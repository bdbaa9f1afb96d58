"""What a tail yields: frames, and gaps in the place where frames are missing. Pure: no I/O, no state."""

from collections.abc import Iterable
from typing import TypeAlias

from compass.gap import Gap
from compass.v1 import compass_pb2 as pb

Frame: TypeAlias = pb.AgentSessionFrame
TailItem: TypeAlias = Frame | Gap


def position(item: TailItem) -> int:
    """Return the seq up to which everything is delivered or covered once this item is. 0 for a snapshot frame."""
    if isinstance(item, Gap):
        return item.seq or item.last_seq
    return item.seq


def unpack(frames: Iterable[Frame], *, after: int) -> list[TailItem]:
    """Return what is new in a response to a reader whose cursor is `after`: repeats left out, gaps read."""
    items: list[TailItem] = []
    for frame in frames:
        seq = frame.seq
        if seq:
            if seq <= after:
                continue
            after = seq
        if not frame.HasField("gap"):
            items.append(frame)
        elif (gap := _rest_of(Gap.from_frame(frame), after=after)) is not None:
            items.append(gap)
            after = max(after, gap.last_seq)
    return items


def _rest_of(gap: Gap, *, after: int) -> Gap | None:
    """Return the part of a gap that a reader has not been told yet, None when there is none."""
    if gap.seq is not None or gap.first_seq > after:
        return gap
    if gap.last_seq <= after:
        return None
    first_seq = after + 1
    return Gap(first_seq, gap.last_seq, min(gap.dropped, gap.last_seq - first_seq + 1), gap.reason)
