import asyncio
import os
import random
import shutil
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import apsw
import pytest
from log_samples import read_all, record

from compass_service.log.protocol import SessionLog
from compass_service.log.schema import DB_NAME

CHILD = Path(__file__).with_name("crash_child.py")


async def head_of(log: SessionLog, session_id: str = "s") -> int:
    """The head of a session, after checking that its records are whole, dense and in step with its checkpoint."""
    stored = await log.load(session_id)
    if stored is None:
        return 0
    next_seq = 1
    for one in await read_all(log, session_id):
        assert one.first_seq == next_seq
        assert len(one.frames) == len(one.lanes)
        next_seq = one.end_seq
    assert stored.head_seq == next_seq - 1
    assert stored.checkpoint == f"after {stored.head_seq}".encode()
    return stored.head_seq


def check_integrity(data_dir: Path) -> None:
    with apsw.Connection(str(data_dir / DB_NAME), flags=apsw.SQLITE_OPEN_READONLY) as connection:
        assert connection.pragma("integrity_check") == "ok"
    connection.close()


async def run_until_killed(data_dir: Path, *, after_s: float) -> dict[str, int]:
    """Let a child append for a while and kill it. Returns the last acknowledged seq of each session."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(CHILD.parent), *sys.path])}
    child = await asyncio.create_subprocess_exec(sys.executable, str(CHILD), str(data_dir), stdout=PIPE, env=env)
    assert child.stdout is not None
    first = await child.stdout.readline()
    asyncio.get_running_loop().call_later(after_s, child.kill)
    lines = (first + await child.stdout.read()).decode().splitlines()
    await child.wait()
    return {name: int(seq) for name, seq in map(str.split, lines)}


@pytest.mark.slow
@pytest.mark.timeout(60)
async def test_a_kill_at_any_instant_loses_nothing_acknowledged(open_log, tmp_path: Path):
    acknowledged: dict[str, int] = {}
    for _ in range(6):
        acknowledged |= await run_until_killed(tmp_path / "data", after_s=random.uniform(0.02, 0.4))

        log = open_log()
        assert acknowledged
        for session_id, seq in acknowledged.items():
            assert await head_of(log, session_id) >= seq
        await log.close()
        check_integrity(tmp_path / "data")


async def copy_with_wal(open_log, tmp_path: Path) -> Path:
    """Write fifty records and copy the files as they are on the disk, before anything is moved out of the WAL."""
    log = open_log(reserve_bytes=16 * 1024 * 1024)
    for seq in range(1, 51):
        await log.append(record(seq, "t", size=100))
    copy = tmp_path / "copy"
    copy.mkdir()
    for suffix in ("", "-wal"):
        shutil.copy(tmp_path / "data" / f"{DB_NAME}{suffix}", copy)
    return copy


@pytest.mark.parametrize("lost_bytes", [1, 100, 4_096, 10_000, 60_000])
async def test_a_wal_that_was_cut_gives_what_was_committed_before_the_cut(open_log, tmp_path: Path, lost_bytes: int):
    copy = await copy_with_wal(open_log, tmp_path)
    wal = copy / f"{DB_NAME}-wal"
    os.truncate(wal, wal.stat().st_size - lost_bytes)

    log = open_log(copy)

    head = await head_of(log)
    assert 0 < head < 50
    await log.append(record(head + 1, "P"))
    assert await head_of(log) == head + 1
    await log.close()
    check_integrity(copy)


@pytest.mark.parametrize("lost_bytes", [1, 100, 4_096, 10_000, 60_000])
async def test_a_wal_with_a_garbled_end_gives_what_was_committed_before_it(open_log, tmp_path: Path, lost_bytes: int):
    copy = await copy_with_wal(open_log, tmp_path)
    wal = copy / f"{DB_NAME}-wal"
    whole = wal.read_bytes()
    garbled = bytes(byte ^ 0xA5 for byte in whole[-lost_bytes:])
    wal.write_bytes(whole[:-lost_bytes] + garbled)

    log = open_log(copy)

    assert 0 < await head_of(log) < 50
    await log.close()
    check_integrity(copy)


async def test_an_untouched_copy_has_all_of_it(open_log, tmp_path: Path):
    assert await head_of(open_log(await copy_with_wal(open_log, tmp_path))) == 50
