"""Transcripts over a real log: long ones leave the loop alone, and one fold serves all who ask at once."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from compass.v1 import compass_pb2 as pb
from compass_service import frames
from compass_service.hub import transcript
from compass_service.hub.transcript import Transcripts
from compass_service.log import Retention, SqliteLog
from compass_service.log.protocol import Page, Record


class CountedLog(SqliteLog):
    """A log that counts its reads, and tells when one begins."""

    num_reads = 0
    is_read: asyncio.Event

    async def read(self, *args: object, **options: object) -> Page:
        self.num_reads += 1
        self.is_read.set()
        return await super().read(*args, **options)


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[CountedLog]:
    log = CountedLog.open(tmp_path, retention=Retention(), reserve_bytes=0)
    log.is_read = asyncio.Event()
    yield log
    await log.close()


async def add_messages(log: SqliteLog, first_seq: int, num_messages: int) -> None:
    bodies = [
        pb.AgentSessionFrame(
            session_id="s",
            event=pb.SessionEvent(user_message=pb.SessionUserMessage(text="hi", message_id=f"m{seq}")),
        ).SerializeToString()
        for seq in range(first_seq, first_seq + num_messages)
    ]
    numbered = tuple(frames.number(body, seq) for seq, body in enumerate(bodies, first_seq))
    await log.append(Record("s", first_seq, bytes([1]) * num_messages, numbered, b"", 1))


async def test_rows_are_made_off_the_loop(log, monkeypatch):
    makers = []
    make_rows = transcript.transcript_rows

    def noted(view):
        makers.append(threading.current_thread())
        return make_rows(view)

    monkeypatch.setattr(transcript, "transcript_rows", noted)
    await add_messages(log, 1, 10)

    rows, head_seq = await Transcripts(log).rows("s")

    assert (len(rows), head_seq) == (10, 10)
    assert len(makers) == 1
    assert threading.current_thread() not in makers


async def test_those_who_ask_at_once_share_one_fold(log):
    await add_messages(log, 1, 10)
    transcripts = Transcripts(log)

    asked = await asyncio.gather(*(transcripts.rows("s") for _ in range(5)))

    assert [len(rows) for rows, _ in asked] == [10] * 5
    assert log.num_reads == 1


async def test_a_caller_that_goes_away_leaves_the_fold_whole(log):
    await add_messages(log, 1, 10)
    transcripts = Transcripts(log)
    leaving = asyncio.create_task(transcripts.rows("s"))
    await log.is_read.wait()
    leaving.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await leaving
    await add_messages(log, 11, 5)

    rows, head_seq = await transcripts.rows("s")

    assert [row.message_id for row in rows] == [f"m{seq}" for seq in range(1, 16)]
    assert (head_seq, log.num_reads) == (15, 2)
