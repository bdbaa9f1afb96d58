"""From records to what a subscription sends: picking frames by seq, and telling what retention took. Pure."""

from typing import NamedTuple

from compass.v1 import compass_pb2 as pb
from compass_service import frames
from compass_service.log.protocol import Record
from compass_service.log.records import kept_frames

REASON_LAG = pb.SESSION_GAP_REASON_SUBSCRIBER_LAG
REASON_RETENTION = pb.SESSION_GAP_REASON_RETENTION


def gap_frame(session_id: str, first_seq: int, last_seq: int, reason: pb.SessionGapReason.ValueType) -> bytes:
    """Build the delimited frame that tells one reader what it was not given. Both ends are inclusive."""
    gap = pb.SessionGap(first_seq=first_seq, last_seq=last_seq, dropped=last_seq - first_seq + 1, reason=reason)
    return frames.delimit(pb.AgentSessionFrame(session_id=session_id, gap=gap).SerializeToString())


class Laps:
    """Tells whether a reader of history gains on the head.

    A lap ends where the head was when the lap began. A reader whose next lap is no shorter is slower than the producer:
    it would read history for ever, further behind the head with each lap.
    """

    def __init__(self, *, cursor: int, head_seq: int) -> None:
        self._end = head_seq
        self._num_frames = head_seq - cursor

    def is_losing(self, *, cursor: int, head_seq: int) -> bool:
        """Judge the lap if it has ended, and begin the next one."""
        if cursor < self._end:
            return False
        last_frames, self._num_frames = self._num_frames, head_seq - cursor
        self._end = head_seq
        return self._num_frames >= max(1, last_frames)


class Picked(NamedTuple):
    """What a record gave."""

    frames: list[bytes]
    num_bytes: int
    is_exhausted: bool
    """False when the byte budget ended it: take from the same record again."""


class History:
    """Turns records, read in order, into frames and RETENTION gaps from one cursor on.

    A hole in what the log returns is what retention took. It is told once, whole, in its place: when the next frame
    comes, or when the caller knows that the log was read up to some seq.
    """

    def __init__(self, session_id: str, cursor: int) -> None:
        self.cursor = cursor
        """Everything up to here was given or told as a gap."""
        self._session_id = session_id

    def take(self, record: Record, *, end_seq: int, max_bytes: int) -> Picked:
        """Return the delimited frames of a record that lie in (cursor, end_seq), gaps in their places.

        Stops before max_bytes is passed, but gives at least one frame if there is one.
        """
        num_bytes = sum(map(len, record.frames))
        is_whole = len(record.frames) == len(record.lanes) and num_bytes <= max_bytes
        if is_whole and record.first_seq == self.cursor + 1 and record.end_seq <= end_seq:
            self.cursor = record.end_seq - 1
            return Picked(list(record.frames), num_bytes, is_exhausted=True)
        return self._pick(record, end_seq, max_bytes)

    def cover(self, last_seq: int) -> list[bytes]:
        """Tell that nothing more is kept up to and including last_seq."""
        if last_seq <= self.cursor:
            return []
        gap = gap_frame(self._session_id, self.cursor + 1, last_seq, REASON_RETENTION)
        self.cursor = last_seq
        return [gap]

    def _pick(self, record: Record, end_seq: int, max_bytes: int) -> Picked:
        picked: list[bytes] = []
        num_bytes = 0
        for seq, _, frame in kept_frames(record):
            if not self.cursor < seq < end_seq:
                continue
            if picked and num_bytes + len(frame) > max_bytes:
                return Picked(picked, num_bytes, is_exhausted=False)
            for given in (*self.cover(seq - 1), frame):
                picked.append(given)
                num_bytes += len(given)
            self.cursor = seq
        return Picked(picked, num_bytes, is_exhausted=True)
