"""Looking into records: which frame has which seq. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from compass_service import frames
from compass_service.log.protocol import Record


class Kept(NamedTuple):
    """One frame of a record that is still there."""

    seq: int
    is_priority: bool
    frame: bytes


def kept_frames(record: Record) -> Iterator[Kept]:
    """Yield the frames of a record with their seqs; seqs that retention took are skipped."""
    stored = iter(record.frames)
    for seq, lane in enumerate(record.lanes, record.first_seq):
        if lane != frames.LANE_TRIMMED:
            yield Kept(seq, lane == frames.LANE_PRIORITY, next(stored))
