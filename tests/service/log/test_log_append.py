import asyncio
import sqlite3
from pathlib import Path

import pytest
from log_samples import ALL, held, record
from structlog.testing import capture_logs

from compass_service.log import SqliteLog
from compass_service.log.protocol import HeadMovedError, LogClosedError, Record


async def test_an_append_is_durable_when_it_returns(log: SqliteLog, tmp_path: Path):
    await log.append(record(1, "tPt"))

    with sqlite3.connect(f"file:{tmp_path}/data/sessions.db?mode=ro", uri=True) as other:
        assert other.execute("SELECT head_seq, checkpoint FROM sessions").fetchall() == [(3, b"after 3")]
        assert other.execute("SELECT end_seq, num_trace, num_priority FROM records").fetchall() == [(4, 2, 1)]
    other.close()


async def test_what_was_appended_is_there_after_reopening(open_log):
    first = open_log()
    await first.append(record(1, "tP", at=5))
    await first.append(record(3, "t", at=7))
    await first.close()

    second = open_log()

    assert await held(second) == [(1, "tP"), (3, "t")]
    stored = await second.load("s")
    assert stored is not None
    assert (stored.head_seq, stored.first_kept_seq, stored.checkpoint) == (3, 1, b"after 3")
    assert (stored.created_unix_ms, stored.updated_unix_ms) == (5, 7)


async def test_a_record_without_frames_moves_only_the_checkpoint(log: SqliteLog):
    await log.append(record(1, "", checkpoint=b"hello", at=1))
    await log.append(record(1, "tt", at=2))
    await log.append(record(3, "", checkpoint=b"cursor", at=3))

    assert await held(log) == [(1, "tt")]
    stored = await log.load("s")
    assert stored is not None
    assert (stored.head_seq, stored.checkpoint, stored.updated_unix_ms) == (2, b"cursor", 3)


async def test_a_session_without_frames_has_no_head_and_nothing_kept(log: SqliteLog):
    await log.append(record(1, ""))

    stored = await log.load("s")

    assert stored is not None
    assert (stored.head_seq, stored.first_kept_seq, stored.num_bytes, stored.num_trimmed) == (0, 0, 0, 0)


@pytest.mark.parametrize("first_seq", [1, 2, 4, 9])
async def test_a_record_that_does_not_continue_the_head_is_refused(log: SqliteLog, first_seq: int):
    await log.append(record(1, "tt"))

    with pytest.raises(HeadMovedError) as refused:
        await log.append(record(first_seq, "P"))

    assert (refused.value.session_id, refused.value.head_seq, refused.value.first_seq) == ("s", 2, first_seq)
    assert await held(log) == [(1, "tt")]


async def test_a_new_session_begins_at_seq_1(log: SqliteLog):
    with pytest.raises(HeadMovedError):
        await log.append(record(2, "t"))

    assert await log.load("s") is None


async def test_a_refused_session_costs_the_rest_of_its_group_nothing(log: SqliteLog):
    await log.append(record(1, "t", session_id="a"))

    fates = await asyncio.gather(
        log.append(record(1, "t", session_id="b")),
        log.append(record(5, "t", session_id="a")),
        log.append(record(6, "t", session_id="a")),
        log.append(record(2, "t", session_id="b")),
        return_exceptions=True,
    )

    assert [type(fate) for fate in fates] == [type(None), HeadMovedError, HeadMovedError, type(None)]
    assert await held(log, "a") == [(1, "t")]
    assert await held(log, "b") == [(1, "t"), (2, "t")]


async def test_appends_of_one_session_commit_in_the_order_of_the_calls(log: SqliteLog):
    await asyncio.gather(*(log.append(record(seq, "t")) for seq in range(1, 1_001)))

    assert await held(log) == [(seq, "t") for seq in range(1, 1_001)]


async def test_listeners_have_every_record_before_its_append_returns(log: SqliteLog):
    heard: list[Record] = []
    log.listen("s", heard.append)
    other: list[Record] = []
    log.listen("other", other.append)

    first, empty, second = record(1, "tP"), record(3, ""), record(3, "t")
    for one in (first, empty, second):
        await log.append(one)
        assert heard[-1] is one

    assert heard == [first, empty, second]
    assert other == []


async def test_a_listener_hears_nothing_of_what_was_refused(log: SqliteLog):
    heard: list[Record] = []
    log.listen("s", heard.append)

    with pytest.raises(HeadMovedError):
        await log.append(record(7, "t"))

    assert heard == []


async def test_a_listener_that_stopped_hears_no_more(log: SqliteLog):
    heard: list[int] = []
    stop = log.listen("s", lambda heard_record: heard.append(heard_record.first_seq))
    log.listen("s", lambda heard_record: stop())
    await log.append(record(1))

    await log.append(record(2))
    stop()

    assert heard == [1]


async def test_a_listener_that_fails_costs_nobody_the_record(log: SqliteLog):
    def fail(heard: Record) -> None:
        raise RuntimeError("of the listener")

    heard: list[Record] = []
    log.listen("s", fail)
    log.listen("s", heard.append)

    with capture_logs() as logged:
        await log.append(record(1))

    assert [entry["internal_cause"] for entry in logged] == ["RuntimeError('of the listener')"]
    assert heard == [record(1)]


async def test_a_cancelled_append_still_commits_and_is_heard(log: SqliteLog):
    heard: list[Record] = []
    log.listen("s", heard.append)
    waiting = asyncio.create_task(log.append(record(1)))
    await asyncio.sleep(0)

    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await log.append(record(2))

    assert heard == [record(1), record(2)]
    assert await held(log) == [(1, "t"), (2, "t")]


async def test_frames_and_lanes_must_be_of_one_number(log: SqliteLog):
    with pytest.raises(ValueError, match="a record of 2 lanes has 1 frames"):
        await log.append(record(1, "tt")._replace(frames=(b"x",)))


async def test_close_commits_what_was_appended(open_log):
    log = open_log()
    waiting = [asyncio.create_task(log.append(record(seq))) for seq in range(1, 600)]
    await asyncio.sleep(0)

    await asyncio.gather(log.close(), log.close())
    await asyncio.gather(*waiting)

    assert len(await held(open_log())) == 599


async def test_a_closed_log_refuses_and_closes_again_in_peace(open_log):
    log = open_log()
    await log.close()

    with pytest.raises(LogClosedError):
        await log.append(record(1))
    with pytest.raises(LogClosedError):
        await log.read("s", 1, end_seq=ALL, max_bytes=1)
    await log.close()


async def test_a_close_that_was_cancelled_goes_on_to_its_end(open_log):
    log = open_log()
    closing = asyncio.create_task(log.close())
    await asyncio.sleep(0)
    closing.cancel()

    await log.close()

    assert await open_log().load("s") is None


async def test_closing_leaves_no_wal_behind(open_log, tmp_path: Path):
    log = open_log()
    await log.append(record(1))
    await log.close()

    assert not (tmp_path / "data" / "sessions.db-wal").exists()
