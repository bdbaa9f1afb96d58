import asyncio
import random
from pathlib import Path

import pytest
from log_samples import frame, held, record

from compass_service.log import Retention, SqliteLog
from compass_service.log.protocol import LogClosedError, Page, Record

SIZE = len(frame(1))


async def fill(log: SqliteLog, *records: Record) -> None:
    for one in records:
        await log.append(one)


async def test_old_trace_frames_go_and_the_priority_frames_beside_them_stay(open_log):
    log = open_log(retention=Retention(trace_age_ms=100))
    await fill(log, record(1, "tPtP", at=10), record(5, "tt", at=20), record(7, "P", at=30), record(8, "tP", at=500))

    assert await log.trim(now_unix_ms=550) == []

    assert await held(log) == [(1, ".P.P"), (7, "P"), (8, "tP")]


async def test_old_records_go_whole_and_the_seqs_go_on(open_log):
    log = open_log(retention=Retention(age_ms=100))
    await fill(log, record(1, "tP", at=10), record(3, "PP", at=20), record(5, "t", at=500))

    await log.trim(now_unix_ms=550)
    await log.append(record(6, "P", at=551))

    assert await held(log) == [(5, "t"), (6, "P")]


async def test_a_record_as_old_as_the_limit_stays(open_log):
    log = open_log(retention=Retention(age_ms=100, trace_age_ms=100))
    await fill(log, record(1, "tP", at=10), record(3, "tP", at=11))

    await log.trim(now_unix_ms=111)

    assert await held(log) == [(3, "tP")]


async def test_without_limits_nothing_goes(open_log):
    log = open_log()
    await fill(log, record(1, "tP", at=1), record(3, "t", at=2))

    assert await log.trim(now_unix_ms=1 << 50) == []

    assert await held(log) == [(1, "tP"), (3, "t")]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (9, [(1, "tP"), (3, "tt"), (5, "Pt"), (7, "ttP")]),
        (8, [(1, ".P"), (3, "tt"), (5, "Pt"), (7, "ttP")]),
        (7, [(1, ".P"), (5, "Pt"), (7, "ttP")]),
        (5, [(1, ".P"), (5, "P."), (7, "ttP")]),
        (3, [(1, ".P"), (5, "P."), (7, "..P")]),
        (2, [(5, "P."), (7, "..P")]),
        (1, [(7, "..P")]),
    ],
)
async def test_a_session_over_its_bytes_loses_trace_first_then_its_oldest_records(open_log, limit, expected):
    log = open_log(retention=Retention(session_bytes=limit * SIZE))
    await fill(log, record(1, "tP"), record(3, "tt"), record(5, "Pt"), record(7, "ttP"))
    await fill(log, record(1, "t", session_id="small"))

    await log.trim(now_unix_ms=1_000)

    assert await held(log) == expected
    assert await held(log, "small") == [(1, "t")]


async def test_trace_is_found_behind_many_priority_records(open_log):
    log = open_log(retention=Retention(session_bytes=200 * SIZE))
    await asyncio.gather(*(log.append(record(seq, "P")) for seq in range(1, 201)))
    await fill(log, record(201, "tt"), record(203, "tP"))

    await log.trim(now_unix_ms=1_000)

    assert (await held(log))[-3:] == [(199, "P"), (200, "P"), (203, ".P")]


async def test_a_read_from_within_a_hole_begins_after_it(open_log):
    log = open_log(retention=Retention(trace_age_ms=100))
    await fill(log, record(1, "P", at=10), record(2, "ttt", at=10), record(5, "tP", at=10))

    await log.trim(now_unix_ms=550)
    page = await log.read("s", 3, end_seq=6, max_bytes=1 << 20)

    assert [(one.first_seq, one.lanes) for one in page.records] == [(5, b"\x02\x01")]
    assert page.next_seq == 7
    assert await log.read("s", 2, end_seq=5, max_bytes=1 << 20) == Page([], 5)


async def test_a_session_that_lost_everything_to_bytes_keeps_its_head(open_log):
    log = open_log(retention=Retention(session_bytes=1, age_ms=1_000))
    await fill(log, record(1, "tP", at=999), record(3, "P", at=1_000))

    assert await log.trim(now_unix_ms=1_500) == []
    assert await held(log) == []
    await log.append(record(4, "P", at=1_600))

    assert await held(log) == [(4, "P")]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (8, {"a": [(1, "tP"), (3, "t")], "b": [(1, "tP"), (3, "tPt")]}),
        (7, {"a": [(1, "tP"), (3, "t")], "b": [(1, ".P"), (3, "tPt")]}),
        (6, {"a": [(1, ".P"), (3, "t")], "b": [(1, ".P"), (3, "tPt")]}),
        (5, {"a": [(1, ".P")], "b": [(1, ".P"), (3, "tPt")]}),
        (3, {"a": [(1, ".P")], "b": [(1, ".P"), (3, ".P.")]}),
        (2, {"a": [(1, ".P")], "b": [(3, ".P.")]}),
        (1, {"a": [], "b": [(3, ".P.")]}),
    ],
)
async def test_over_the_total_the_oldest_of_all_sessions_goes_first(open_log, limit, expected):
    log = open_log(retention=Retention(total_bytes=limit * SIZE))
    await fill(log, record(1, "tP", session_id="b", at=1_000), record(1, "tP", session_id="a", at=20_000))
    await fill(log, record(3, "t", session_id="a", at=40_000), record(3, "tPt", session_id="b", at=60_000))

    await log.trim(now_unix_ms=80_000)

    assert {name: await held(log, name) for name in "ab"} == expected


@pytest.mark.parametrize(
    "retention",
    [Retention(age_ms=100), Retention(session_bytes=1), Retention(total_bytes=1)],
    ids=["age", "session", "total"],
)
async def test_what_is_protected_loses_its_trace_only_until_it_is_let_go(open_log, retention: Retention):
    log = open_log(retention=retention)
    await fill(log, record(1, "tP", at=10), record(3, "tP", at=10), record(5, "tPt", at=10, protected=4))

    assert await log.trim(now_unix_ms=550) == []
    assert await held(log) == [(3, ".P"), (5, ".P.")]

    await log.append(record(8, "", at=550))
    await log.trim(now_unix_ms=550)
    assert await held(log) == []


async def test_a_session_is_removed_when_all_of_it_is_too_old(open_log):
    log = open_log(retention=Retention(age_ms=100))
    await fill(log, record(1, "tP", session_id="old", at=10), record(1, "", session_id="bare", at=10))
    await fill(log, record(1, "tP", session_id="live", at=10), record(3, "", session_id="live", at=500))

    assert sorted(await log.trim(now_unix_ms=550)) == ["bare", "old"]
    assert await log.trim(now_unix_ms=550) == []

    assert [stored.session_id for stored in await log.list(limit=10)] == ["live"]
    await log.append(record(3, "t", session_id="live", at=600))
    await log.append(record(1, "t", session_id="old", at=600))
    assert await held(log, "old") == [(1, "t")]


async def test_a_removed_session_is_told_of_even_if_nobody_waited_for_the_trim(open_log):
    log = open_log(retention=Retention(age_ms=100))
    await log.append(record(1, "t", at=10))
    trim = asyncio.create_task(log.trim(now_unix_ms=550))
    await asyncio.sleep(0)
    trim.cancel()

    assert await log.trim(now_unix_ms=550) == ["s"]


async def test_counts_stay_exact_through_any_mixture(open_log):
    rng = random.Random(7)
    log = open_log(retention=Retention(trace_age_ms=300, age_ms=900, session_bytes=60 * SIZE, total_bytes=150 * SIZE))
    heads = dict.fromkeys("abcd", 0)
    for now in range(0, 3_000, 50):
        for name in rng.sample("abcd", 3):
            lanes = "".join(rng.choices("tP", (4, 1), k=rng.randrange(9)))
            await log.append(record(heads[name] + 1, lanes, session_id=name, at=now))
            heads[name] += len(lanes)
        assert await log.trim(now_unix_ms=now) == []
        spans = {name: await held(log, name) for name in heads}
        assert sum(len(lanes) - lanes.count(".") for held_ in spans.values() for _, lanes in held_) <= 150

    stored = [await log.load(name) for name in heads]
    assert [one.head_seq for one in stored if one] == list(heads.values())


async def test_appends_go_on_while_a_long_trim_runs(open_log):
    log = open_log(retention=Retention(age_ms=100))
    await asyncio.gather(*(log.append(record(seq, "t", at=10)) for seq in range(1, 20_001)))

    trim = asyncio.create_task(log.trim(now_unix_ms=550))
    await asyncio.sleep(0)
    await log.append(record(20_001, "P", at=551))
    assert not trim.done()
    await trim

    assert await held(log) == [(20_001, "P")]


async def test_a_close_ends_a_trim_that_runs(open_log):
    log = open_log(retention=Retention(age_ms=100))
    await asyncio.gather(*(log.append(record(seq, "t", at=10)) for seq in range(1, 20_001)))
    trim = asyncio.create_task(log.trim(now_unix_ms=550))
    await asyncio.sleep(0)

    await log.close()
    with pytest.raises(LogClosedError):
        await trim

    await open_log().load("s")


async def test_the_file_shrinks_when_much_was_taken(open_log, tmp_path: Path):
    log = open_log(retention=Retention(age_ms=100))
    big = b"x" * 200_000
    for seq in range(1, 151):
        await log.append(record(seq, "t", at=10)._replace(frames=(big,)))
    await log.trim(now_unix_ms=20)
    await log.close()
    before = (tmp_path / "data" / "sessions.db").stat().st_size

    log = open_log(retention=Retention(age_ms=100))
    await log.trim(now_unix_ms=550)
    await log.close()

    after = (tmp_path / "data" / "sessions.db").stat().st_size
    assert before > 30_000_000
    assert after < 18_000_000
