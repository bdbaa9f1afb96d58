"""One reader of one session over a real log: how a live reader becomes level, and what it gets when it cannot."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from compass.lanes import LaneBounds
from compass.v1 import compass_pb2 as pb
from compass_service import frames
from compass_service.hub.feed import Feed
from compass_service.hub.reading import Laps
from compass_service.hub.subscription import Part, Subscription, Wants
from compass_service.log import Retention, SqliteLog
from compass_service.log.protocol import Record
from compass_service.session import checkpoint as checkpoints
from compass_service.session.checkpoint import Checkpoint

TRACE_BOUND = 100
CHECKPOINT = checkpoints.encode(Checkpoint())


class Session:
    """A session of which only the log and the feed are real: frames are numbers."""

    def __init__(self, log: SqliteLog) -> None:
        self.feed = Feed("s")
        self._log = log
        log.listen("s", self.feed.on_record)

    async def add(self, num_frames: int, *, priority: tuple[int, ...] = ()) -> None:
        """Commit frames, those with the given seqs in the priority lane."""
        first_seq = self.feed.head_seq + 1
        seqs = range(first_seq, first_seq + num_frames)
        numbered = tuple(frames.number(b"", seq) for seq in seqs)
        await self._log.append(Record("s", first_seq, bytes(seq in priority for seq in seqs), numbered, CHECKPOINT, 1))

    def read(self, **wants: bool) -> Subscription:
        """Subscribe from the beginning, in either delivery."""
        bounds = LaneBounds(TRACE_BOUND, 1_000_000, 100, 1_000_000)
        return Subscription(
            Wants("s", **wants),
            self.feed,
            self._log,
            bounds=bounds,
            heartbeat_s=10.0,
            now=lambda: 0.0,
            is_draining=lambda: False,
        )


@pytest.fixture
async def session(tmp_path: Path) -> AsyncIterator[Session]:
    log = SqliteLog.open(tmp_path, retention=Retention(), reserve_bytes=64 * 1024, now_unix_ms=lambda: 1)
    yield Session(log)
    await log.close()


def items(part: Part | None) -> list[int | tuple[int, int]]:
    """Show frames as their seqs, and gaps as (first, last)."""
    assert part is not None
    response = pb.TailSessionResponse.FromString(b"".join(part.frames))
    return [
        (frame.gap.first_seq, frame.gap.last_seq) if frame.HasField("gap") else frame.seq for frame in response.frames
    ]


async def test_a_live_reader_that_gains_on_the_head_gets_history_without_a_gap(session: Session):
    await session.add(2_000)
    reader = session.read()

    assert items(await reader.next()) == list(range(1, 2_001))
    await session.add(1_999)
    assert items(await reader.next()) == list(range(2_001, 4_000))
    assert items(await reader.next()) == []


async def test_a_live_reader_that_loses_on_the_head_goes_live_with_the_newest_trace_and_every_priority_frame(
    session: Session,
):
    await session.add(500)
    reader = session.read()
    assert items(await reader.next()) == list(range(1, 501))
    await session.add(500, priority=(700,))
    await session.add(300)

    seen = items(await reader.next())
    while seen[-1] != 1_300:
        seen += items(await reader.next())

    newest = list(range(1_201, 1_301))
    assert seen == [(501, 699), 700, (701, 1_200), *newest]


async def test_a_lossless_reader_that_loses_on_the_head_gets_all_the_same_everything(session: Session):
    await session.add(1)
    reader = session.read(is_lossless=True)
    assert items(await reader.next()) == [1]
    await session.add(2_000)

    assert items(await reader.next()) == list(range(2, 2_002))


async def test_a_live_reader_that_is_behind_gets_small_parts_until_it_is_level(session: Session):
    await session.add(1)
    reader = session.read()
    assert [items(await reader.next()), items(await reader.next())] == [[1], []]
    await session.add(2 * TRACE_BOUND)

    assert items(await reader.next()) == [(2, TRACE_BOUND + 1), *range(TRACE_BOUND + 2, TRACE_BOUND + 18)]
    assert items(await reader.next()) == list(range(TRACE_BOUND + 18, TRACE_BOUND + 34))


async def test_a_live_reader_that_is_not_behind_gets_all_that_waits_at_once(session: Session):
    await session.add(1)
    reader = session.read()
    assert [items(await reader.next()), items(await reader.next())] == [[1], []]
    await session.add(TRACE_BOUND)

    assert items(await reader.next()) == list(range(2, TRACE_BOUND + 2))


def test_a_lap_is_judged_only_where_it_ends():
    laps = Laps(cursor=0, head_seq=100)
    assert not laps.is_losing(cursor=99, head_seq=1_000)
    assert laps.is_losing(cursor=100, head_seq=1_000)


@pytest.mark.parametrize(
    ("history", "next_head_seq", "is_losing"),
    [
        pytest.param(100, 100, False, id="level"),
        pytest.param(100, 199, False, id="a shorter lap"),
        pytest.param(100, 200, True, id="as long a lap"),
        pytest.param(0, 0, False, id="level from the start"),
        pytest.param(0, 1, True, id="no history, and not level"),
    ],
)
def test_a_reader_loses_when_a_lap_is_no_shorter_than_the_one_before(history, next_head_seq, is_losing):
    assert is_losing == Laps(cursor=0, head_seq=history).is_losing(cursor=history, head_seq=next_head_seq)
