"""What a tail yields in the place of frames that this reader was not given."""

from dataclasses import dataclass
from typing import Self

from compass.v1 import compass_pb2 as pb


@dataclass(frozen=True, slots=True)
class Gap:
    """Frames that are missing here, and why."""

    first_seq: int
    """First missing seq. 0 for PRODUCER_OVERFLOW, whose inner events never had one."""
    last_seq: int
    """Last missing seq, inclusive. 0 for PRODUCER_OVERFLOW."""
    dropped: int
    """How many frames are missing; for PRODUCER_OVERFLOW, how many inner events."""
    reason: pb.SessionGapReason.ValueType
    seq: int | None = None
    """Its own place in the log: set for PRODUCER_OVERFLOW only, the other reasons belong to one reader."""

    @classmethod
    def from_frame(cls, frame: pb.AgentSessionFrame) -> Self:
        """Read the gap of a frame that has one."""
        gap = frame.gap
        return cls(gap.first_seq, gap.last_seq, gap.dropped, gap.reason, frame.seq or None)

    def to_frame(self, session_id: str) -> pb.AgentSessionFrame:
        """Build the frame that carries this gap on the wire."""
        return pb.AgentSessionFrame(
            session_id=session_id,
            seq=self.seq or 0,
            gap=pb.SessionGap(
                first_seq=self.first_seq,
                last_seq=self.last_seq,
                dropped=self.dropped,
                reason=self.reason,
            ),
        )
