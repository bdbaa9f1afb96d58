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
    protected: int | None = None,
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
        protected_from_seq=protected,
    )


def lanes_of(kept: Record) -> str:
    """The lanes of a record as letters: t, P, and a point for what retention took."""
    return "".join("tP."[lane] for lane in kept.lanes)


async def held(log: SessionLog, session_id: str = "s") -> list[tuple[int, str]]:
    """First seq and lanes of every record that a log holds of a session, after checking frames and counts."""
    records = await read_all(log, session_id)
    kept = {seq: body for one in records for seq, body in zip(kept_seqs(one), one.frames, strict=True)}
    assert all(body.endswith(frame(seq)[-6:]) for seq, body in kept.items())
    stored = await log.load(session_id)
    assert (stored is not None) or not records
    if stored is not None and stored.head_seq:
        assert stored.num_bytes == sum(map(len, kept.values()))
        assert stored.num_trimmed == stored.head_seq - len(kept)
        assert stored.first_kept_seq == min(kept, default=stored.head_seq + 1)
    return [(one.first_seq, lanes_of(one)) for one in records]


async def read_all(log: SessionLog, session_id: str = "s") -> list[Record]:
    """Every record that a log holds of a session, read page by page."""
    records: list[Record] = []
    next_seq = 1
    while (page := await log.read(session_id, next_seq, end_seq=ALL, max_bytes=1 << 20)).records:
        records += page.records
        next_seq = page.next_seq
    return records


def kept_seqs(one: Record) -> list[int]:
    """Seqs of the frames that a record still has."""
    return [one.first_seq + at for at, lane in enumerate(lanes_of(one)) if lane != "."]
