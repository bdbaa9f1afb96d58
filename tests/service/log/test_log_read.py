import asyncio
import time

import pytest
from log_samples import ALL, held, record

from compass_service.log import SqliteLog
from compass_service.log.protocol import Page, Record


def spans(page: Page) -> list[tuple[int, int]]:
    return [(kept.first_seq, kept.end_seq) for kept in page.records]


@pytest.fixture
async def filled(log: SqliteLog) -> SqliteLog:
    """Records at 1-3 (trace), 4-4 (priority), 5-7 (trace), 8-9 (both)."""
    for one in (record(1, "ttt"), record(4, "P"), record(5, "ttt"), record(8, "tP")):
        await log.append(one)
    return log


@pytest.mark.parametrize(
    ("first_seq", "end_seq", "expected", "next_seq"),
    [
        (1, ALL, [(1, 4), (4, 5), (5, 8), (8, 10)], 10),
        (2, 4, [(1, 4)], 4),
        (3, 5, [(1, 4), (4, 5)], 5),
        (4, 5, [(4, 5)], 5),
        (6, 7, [(5, 8)], 8),
        (9, ALL, [(8, 10)], 10),
        (10, ALL, [], 10),
        (50, ALL, [], 50),
        (5, 5, [], 5),
    ],
)
async def test_a_read_returns_whole_records_that_hold_the_seqs(filled, first_seq, end_seq, expected, next_seq):
    page = await filled.read("s", first_seq, end_seq=end_seq, max_bytes=ALL)

    assert (spans(page), page.next_seq) == (expected, next_seq)


async def test_a_read_record_is_what_was_appended_less_its_checkpoint(filled: SqliteLog):
    page = await filled.read("s", 8, end_seq=ALL, max_bytes=ALL)

    assert list(page.records) == [record(8, "tP", checkpoint=b"")]


@pytest.mark.parametrize(
    ("first_seq", "end_seq", "expected", "next_seq"),
    [(1, ALL, [(4, 5), (8, 10)], 10), (5, 8, [], 8), (5, 9, [(8, 10)], 10), (4, 6, [(4, 5)], 6)],
)
async def test_a_priority_read_passes_over_records_without_any(filled, first_seq, end_seq, expected, next_seq):
    page = await filled.read("s", first_seq, end_seq=end_seq, max_bytes=ALL, priority_only=True)

    assert (spans(page), page.next_seq) == (expected, next_seq)


async def test_pages_join_without_hole_or_overlap(log: SqliteLog):
    await asyncio.gather(*(log.append(record(seq, "ttttt")) for seq in range(1, 500, 5)))

    seen: list[Record] = []
    next_seq = 1
    while next_seq <= 500:
        page = await log.read("s", next_seq, end_seq=ALL, max_bytes=700)
        assert sum(len(frame) for kept in page.records for frame in kept.frames) <= 700
        seen.extend(page.records)
        next_seq = page.next_seq

    assert [kept.first_seq for kept in seen] == list(range(1, 500, 5))


async def test_a_page_holds_at_least_one_record(filled: SqliteLog):
    page = await filled.read("s", 1, end_seq=ALL, max_bytes=1)

    assert (spans(page), page.next_seq) == ([(1, 4)], 4)


async def test_an_unknown_session_has_nothing_to_read(log: SqliteLog):
    assert await log.read("nobody", 3, end_seq=ALL, max_bytes=ALL) == Page((), 3)
    assert await log.load("nobody") is None


async def test_sessions_do_not_see_each_other(log: SqliteLog):
    await asyncio.gather(*(log.append(record(1, "t" * n, session_id=f"s{n}")) for n in range(1, 9)))

    for n in range(1, 9):
        assert await held(log, f"s{n}") == [(1, "t" * n)]


async def test_a_cancelled_read_leaves_the_log_usable(filled: SqliteLog):
    reads = [asyncio.create_task(filled.read("s", 1, end_seq=ALL, max_bytes=ALL)) for _ in range(20)]
    await asyncio.sleep(0)
    for read in reads:
        read.cancel()
    await asyncio.wait(reads)

    assert len(await held(filled)) == 4


async def test_sessions_are_listed_newest_change_first_page_by_page(log: SqliteLog):
    for at, name in [(10, "c"), (30, "a"), (20, "b"), (20, "d")]:
        await log.append(record(1, "t", session_id=name, at=at))
    await log.append(record(2, "t", session_id="c", at=40))

    listed: list[str] = []
    before: tuple[int, str] | None = None
    while page := await log.list(limit=2, before=before):
        listed += [stored.session_id for stored in page]
        before = (page[-1].updated_unix_ms, page[-1].session_id)

    assert listed == ["c", "a", "d", "b"]


async def test_listing_is_quick_among_ten_thousand_sessions(log: SqliteLog):
    await asyncio.gather(*(log.append(record(1, "t", session_id=f"s{n}", at=n)) for n in range(10_000)))

    began = time.perf_counter()
    page = await log.list(limit=100, before=(5_000, "s5000"))
    took_s = time.perf_counter() - began

    assert [stored.session_id for stored in page[:2]] == ["s4999", "s4998"]
    assert took_s < 0.1
