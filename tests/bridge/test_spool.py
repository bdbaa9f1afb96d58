"""The spool: what was appended is read back, once and in order, over kills; what is acknowledged goes."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from compass.bridge import Spool, SpoolBusyError
from compass.bridge import spool as spools
from compass.bridge.orphan import Orphan
from compass.errors import InvalidSessionIdError


@pytest.fixture
def open_spool(tmp_path: Path):
    opened: list[Spool] = []

    def open_() -> Spool:
        for spool in opened:
            spool.close()
        opened.append(Spool(tmp_path, "s", max_bytes=1_000))
        return opened[-1]

    yield open_
    for spool in opened:
        spool.close()


def read(spool: Spool) -> list[tuple[str, str]]:
    events = []
    while (spooled := spool.take()) is not None:
        events.append((spooled.event.decode(), spooled.prompt_id))
    return events


async def test_events_come_back_in_order_with_their_prompts_also_after_a_kill(open_spool):
    spool = open_spool()
    spool.begin()
    await spool.append('{"text":"\u2028 \u0085"}')
    await spool.append('{"n":2}', "p7")
    again = open_spool()

    assert (again.identity.producer_id, again.identity.epoch) == (spool.identity.producer_id, spool.identity.epoch)
    assert (again.acked_seq, again.num_kept) == (0, 2)
    assert read(again) == [('{"text":"\u2028 \u0085"}', ""), ('{"n":2}', "p7")]


async def test_a_line_that_a_kill_cut_is_as_if_it_was_never_written(open_spool, tmp_path):
    spool = open_spool()
    spool.begin()
    await spool.append('{"n":1}')
    [path] = (tmp_path / "s").glob("*.events")
    with path.open("ab") as file:
        file.write(b' {"n":2')
    again = open_spool()

    assert read(again) == [('{"n":1}', "")]


async def test_what_is_acknowledged_goes_by_whole_segments_and_the_count_goes_on(open_spool, tmp_path, monkeypatch):
    monkeypatch.setattr(spools, "SEGMENT_BYTES", 1)
    spool = open_spool()
    spool.begin()
    for number in range(5):
        await spool.append(f'{{"n":{number}}}')
    assert len(read(spool)) == 5
    spool.settle(3)
    again = open_spool()

    assert (again.acked_seq, read(again)) == (3, [('{"n":3}', ""), ('{"n":4}', "")])


async def test_whoever_appends_waits_while_it_is_full(open_spool):
    spool = open_spool()
    spool.begin()
    await spool.append("x" * 1_000)
    waiting = asyncio.create_task(spool.append("y"))
    await asyncio.sleep(0)
    assert not waiting.done()
    spool.settle(1)
    await waiting
    assert spool.num_kept == 1


async def test_a_new_epoch_is_higher_and_forgets_the_one_before(open_spool):
    spool = open_spool()
    spool.begin()
    first = spool.identity.epoch
    await spool.append("{}")
    spool.begin()

    assert spool.identity.epoch > first
    assert (spool.num_kept, spool.take()) == (0, None)


def test_one_bridge_at_a_time_holds_a_session(open_spool, tmp_path):
    open_spool()
    with pytest.raises(SpoolBusyError):
        Spool(tmp_path, "s")


@pytest.mark.parametrize("session", ["../s", "a/b", "", ".hidden", "x" * 129])
def test_a_session_id_is_never_another_path(tmp_path, session):
    with pytest.raises(InvalidSessionIdError):
        Spool(tmp_path / "root", session)
    assert not (tmp_path / "root").exists()


def test_only_its_owner_can_look_into_it(open_spool, tmp_path):
    open_spool()
    assert os.stat(tmp_path / "s").st_mode & 0o077 == 0


def test_an_orphan_is_ended_and_another_process_of_its_number_is_not():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True) as process:
        orphan = Orphan.from_json(Orphan.of(process.pid).to_json())
        assert not Orphan(process.pid, "another start").end()
        assert process.poll() is None
        assert orphan.end()
        process.wait()
    assert not orphan.end()
