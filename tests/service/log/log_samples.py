"""Records to append and ways to read back what a log holds."""

from compass_service.frames import LANE_PRIORITY, LANE_TRACE, number
from compass_service.log.protocol import Record, SessionLog

ALL = 1 << 62


def frame(seq: int, *, size: int = 20) -> bytes:
    """A delimited frame that can be told from every other one of its session."""
    return number(b"\x0a" + bytes((size,)) + f"{seq:0{size}d}".encode(), seq)


def record(
    first_seq: int,
    lanes: str = "t",
    *,
    session_id: str = "s",
    at: int = 1_000,
    checkpoint: bytes | None = None,
    size: int = 20,
) -> Record:
    """A record with one frame for each letter: t is trace, P is priority."""
    seqs = range(first_seq, first_seq + len(lanes))
    return Record(
        session_id=session_id,
        first_seq=first_seq,
        lanes=bytes(LANE_PRIORITY if lane == "P" else LANE_TRACE for lane in lanes),
        frames=tuple(frame(seq, size=size) for seq in seqs),
        checkpoint=f"after {seqs.stop - 1}".encode() if checkpoint is None else checkpoint,
        at_unix_ms=at,
    )


def lanes_of(kept: Record) -> str:
    """The lanes of a record as letters: t, P, and a point for what retention took."""
    return "".join("tP."[lane] for lane in kept.lanes)


async def held(log: SessionLog, session_id: str = "s") -> list[tuple[int, str]]:
    """First seq and lanes of every record that a log holds of a session, after checking that the frames fit them."""
    page = await log.read(session_id, 1, end_seq=ALL, max_bytes=ALL)
    for kept in page.records:
        seqs = [kept.first_seq + at for at, lane in enumerate(lanes_of(kept)) if lane != "."]
        sizes = [len(got) for got in kept.frames]
        assert [got[-12:] for got in kept.frames] == [frame(seq, size=30)[-12:] for seq in seqs], (seqs, sizes)
    return [(kept.first_seq, lanes_of(kept)) for kept in page.records]
