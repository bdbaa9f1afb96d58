import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from log_samples import held, read_all, record

from compass_service.log import Retention, SqliteLog
from compass_service.log.protocol import HeadMovedError, LogFullError, Record
from compass_service.log.reserve import RESERVE_NAME
from compass_service.log.schema import DB_NAME

PAYLOAD = b"x" * 20_000


def big(seq: int, *, session_id: str = "s", at: int = 1_000) -> Record:
    return record(seq, "t", session_id=session_id, at=at)._replace(frames=(PAYLOAD,))


async def fill_up(log: SqliteLog, *, session_id: str = "s", first_seq: int = 1, at: int = 1_000) -> int:
    """Append until the disk is full. Returns the head."""
    for seq in range(first_seq, 10_000):
        try:
            await log.append(big(seq, session_id=session_id, at=at))
        except LogFullError:
            return seq - 1
    pytest.fail("the disk did not become full")


async def append_when_there_is_room(log: SqliteLog, one: Record) -> None:
    """Append as a caller does that was told that the disk is full: again and again, for five seconds."""
    async with asyncio.timeout(5):
        while True:
            try:
                return await log.append(one)
            except LogFullError:
                await asyncio.sleep(0.02)


def allow_pages(log: SqliteLog, more: int) -> None:
    """Let the database grow by so many pages and no further: SQLite then says that the disk is full."""
    connection = log._store._connection
    connection.pragma("max_page_count", connection.pragma("page_count") + more)


@pytest.fixture
async def small(open_log) -> SqliteLog:
    """A log with room for a few dozen records."""
    log = open_log()
    await log.append(record(1, "tP", session_id="first"))
    allow_pages(log, 200)
    return log


async def test_a_full_disk_refuses_and_keeps_what_it_has(small: SqliteLog):
    heard: list[Record] = []
    small.listen("s", heard.append)

    head = await fill_up(small)

    assert head > 10
    assert [one.end_seq for one in await read_all(small)] == list(range(2, head + 2))
    assert [one.first_seq for one in heard] == list(range(1, head + 1))
    assert await held(small, "first") == [(1, "tP")]
    stored = await small.load("s")
    assert stored is not None
    assert (stored.head_seq, stored.checkpoint) == (head, f"after {head}".encode())


async def test_what_waits_behind_a_refused_append_is_refused_as_well(small: SqliteLog):
    head = await fill_up(small)

    fates = await asyncio.gather(*(small.append(big(head + n)) for n in (1, 2, 3)), return_exceptions=True)

    assert [type(fate) for fate in fates] == [LogFullError, HeadMovedError, HeadMovedError]


async def test_a_group_that_does_not_fit_is_refused_whole(small: SqliteLog):
    fates = await asyncio.gather(
        *(small.append(big(seq, session_id=name)) for seq in range(1, 101) for name in "ab"),
        return_exceptions=True,
    )

    assert set(map(type, fates)) == {LogFullError, HeadMovedError}
    assert [stored.session_id for stored in await small.list(limit=10)] == ["first"]


async def test_appends_go_on_by_themselves_once_there_is_room(small: SqliteLog, tmp_path: Path):
    head = await fill_up(small)
    assert not (tmp_path / "data" / RESERVE_NAME).exists()

    allow_pages(small, 200)
    await append_when_there_is_room(small, big(head + 1))

    assert (tmp_path / "data" / RESERVE_NAME).stat().st_size == 64 * 1024
    assert len(await read_all(small)) == head + 1


async def test_a_full_disk_is_not_looked_at_for_every_append(small: SqliteLog, monkeypatch):
    head = await fill_up(small)
    reserve = small._writer._committer._reserve
    looks: list[None] = []
    monkeypatch.setattr(reserve, "take", lambda: (looks.append(None), reserve.give_up()))

    began = time.monotonic()
    for _ in range(200):
        with pytest.raises(LogFullError):
            await small.append(big(head + 1))

    assert len(looks) <= (time.monotonic() - began) / 0.25 + 1


async def test_retention_makes_room_when_the_disk_is_full(open_log):
    log = open_log(retention=Retention(age_ms=100), now_unix_ms=5_000)
    allow_pages(log, 400)
    for seq in range(1, 41):
        await log.append(big(seq, session_id="old", at=1_000))

    head = await fill_up(log, at=5_000)
    await append_when_there_is_room(log, big(head + 1, at=5_000))

    assert await log.trim(now_unix_ms=5_000) == ["old"]
    assert len(await read_all(log)) == head + 1


async def test_a_trim_without_room_even_to_delete_ends_early_and_a_later_one_goes_on(open_log, monkeypatch):
    log = open_log(retention=Retention(age_ms=100))
    await log.append(record(1, "tP", at=1_000))

    with monkeypatch.context() as patched:
        patched.setattr("compass_service.log.trim.cut", raise_full)
        assert await log.trim(now_unix_ms=5_000) == []
    assert await held(log) == [(1, "tP")]

    assert await log.trim(now_unix_ms=5_000) == ["s"]


def raise_full(*_: object, **__: object) -> None:
    raise apsw.FullError


async def test_the_reserve_follows_its_setting(open_log, tmp_path: Path):
    for reserve_bytes in (4_096, 64 * 1024, 8_192):
        log = open_log(reserve_bytes=reserve_bytes)
        assert (tmp_path / "data" / RESERVE_NAME).stat().st_size == reserve_bytes
        await log.close()

    open_log(reserve_bytes=0)
    assert not (tmp_path / "data" / RESERVE_NAME).exists()


def test_a_negative_reserve_is_refused(tmp_path: Path):
    with pytest.raises(ValueError, match="reserve_bytes must not be negative, got -1"):
        asyncio.run(open_and_close(tmp_path, reserve_bytes=-1))


async def open_and_close(data_dir: Path, *, reserve_bytes: int) -> None:
    await SqliteLog.open(data_dir, retention=Retention(), reserve_bytes=reserve_bytes).close()


# The same on a disk that is really full.

DISK_BYTES = 8 * 1024 * 1024
RESERVE_BYTES = 2 * 1024 * 1024


def resize(disk: Path, num_bytes: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={num_bytes}", str(disk)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system takes root; the page limit above is the same without it")
    path = tmp_path / "disk"
    path.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(path)], check=False)
    if mounted.returncode != 0:
        pytest.skip("this environment does not let root mount a tmpfs")
    yield path
    subprocess.run(["umount", "--lazy", str(path)], check=True)


async def test_a_really_full_disk_loses_nothing_and_recovers_when_it_grows(open_log, disk: Path):
    log = open_log(disk / "data", reserve_bytes=RESERVE_BYTES)

    head = await fill_up(log)
    assert not (disk / "data" / RESERVE_NAME).exists()
    assert len(await read_all(log)) == head > 100
    resize(disk, 2 * DISK_BYTES)
    await append_when_there_is_room(log, big(head + 1))
    await log.close()

    assert len(await read_all(open_log(disk / "data"))) == head + 1
    assert check_integrity(disk / "data") == "ok"


async def test_a_really_full_disk_recovers_by_retention(open_log, disk: Path):
    log = open_log(disk / "data", reserve_bytes=RESERVE_BYTES, retention=Retention(age_ms=100), now_unix_ms=5_000)
    for seq in range(1, 101):
        await log.append(big(seq, session_id="old", at=1_000))

    head = await fill_up(log, at=5_000)
    await append_when_there_is_room(log, big(head + 1, at=5_000))

    assert await log.load("old") is None
    assert len(await read_all(log)) == head + 1


async def test_a_log_opens_on_a_full_disk_and_can_be_read(open_log, disk: Path):
    log = open_log(disk / "data", reserve_bytes=RESERVE_BYTES)
    await log.append(record(1, "tP"))
    await log.close()
    (disk / "data" / RESERVE_NAME).unlink()
    (disk / "other").write_bytes(bytes(DISK_BYTES - 1024 * 1024))

    log = open_log(disk / "data", reserve_bytes=RESERVE_BYTES)
    assert await held(log) == [(1, "tP")]
    with pytest.raises(LogFullError):
        await log.append(record(3, "t"))
    (disk / "other").unlink()
    await append_when_there_is_room(log, record(3, "t"))

    assert await held(log) == [(1, "tP"), (3, "t")]


def check_integrity(data_dir: Path) -> str:
    with apsw.Connection(str(data_dir / DB_NAME), flags=apsw.SQLITE_OPEN_READONLY) as connection:
        result = connection.pragma("integrity_check")
    connection.close()
    assert isinstance(result, str)
    return result
