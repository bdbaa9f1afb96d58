import asyncio
from pathlib import Path

import apsw
import pytest
from log_samples import ALL, held, record
from structlog.testing import capture_logs

from compass_service.frames import delimit
from compass_service.log import SqliteLog
from compass_service.log.protocol import LogClosedError, LogReadError, Record
from compass_service.log.reserve import wal_limit_bytes
from compass_service.log.schema import DB_NAME

MIB = 1024 * 1024


@pytest.fixture
async def log(open_log) -> SqliteLog:
    """A log whose WAL may grow to 4 MiB."""
    return open_log(reserve_bytes=16 * MIB)


def big(seq: int) -> Record:
    return record(seq)._replace(frames=(delimit(bytes(MIB)),))


def wal_bytes(data_dir: Path) -> int:
    return (data_dir / f"{DB_NAME}-wal").stat().st_size


async def test_every_connection_that_writes_syncs_and_only_the_checkpointer_moves_the_wal(log: SqliteLog):
    writer = log._store._connection
    checkpointer = log._writer._committer._checkpointer._connection

    full = 2
    assert [one.pragma("synchronous") for one in (writer, checkpointer)] == [full, full]
    assert [one.pragma("wal_autocheckpoint") for one in (writer, checkpointer)] == [0, 0]


async def test_the_wal_stays_bounded_under_a_writer_that_never_rests(log: SqliteLog, tmp_path: Path):
    largest = 0
    for seq in range(1, 101):
        await log.append(big(seq))
        largest = max(largest, wal_bytes(tmp_path / "data"))

    assert largest < 7 * MIB


async def test_the_wal_stays_bounded_while_others_read(log: SqliteLog, tmp_path: Path):
    async def read_on() -> None:
        while True:
            await log.read("s", 1, end_seq=ALL, max_bytes=4 * MIB)

    readers = [asyncio.create_task(read_on()) for _ in range(4)]
    for seq in range(1, 101):
        await log.append(big(seq))
    for reader in readers:
        reader.cancel()

    assert wal_bytes(tmp_path / "data") < 12 * MIB


@pytest.mark.parametrize(
    ("reserve_bytes", "expected"),
    [(0, 16 * MIB), (1, MIB // 4), (2 * MIB, MIB // 2), (64 * MIB, 16 * MIB), (1024 * MIB, 16 * MIB)],
)
def test_the_wal_may_grow_to_a_quarter_of_the_reserve(reserve_bytes: int, expected: int):
    assert wal_limit_bytes(reserve_bytes) == expected


async def test_the_wal_is_emptied_in_a_quiet_moment(log: SqliteLog, tmp_path: Path):
    for seq in range(1, 11):
        await log.append(big(seq))
    assert wal_bytes(tmp_path / "data") > MIB

    async with asyncio.timeout(5):
        while wal_bytes(tmp_path / "data"):  # noqa: ASYNC110 - the file system tells nobody
            await asyncio.sleep(0.05)
    await log.append(big(11))

    assert len((await log.read("s", 1, end_seq=ALL, max_bytes=ALL)).records) == 11


async def test_a_storage_that_fails_ends_the_log_and_hangs_nobody(log: SqliteLog):
    await log.append(record(1))
    with apsw.Connection(log._store._connection.filename) as other:
        other.execute("ALTER TABLE records RENAME TO lost")
    other.close()

    with capture_logs() as logged:
        fates = await asyncio.gather(
            *(log.append(record(2, session_id=name)) for name in "sab"), return_exceptions=True
        )

    assert {type(fate) for fate in fates} == {LogClosedError}
    assert [entry["event"] for entry in logged] == ["session_log_failed"]
    assert "no such table" in logged[0]["internal_cause"]
    with pytest.raises(LogClosedError):
        await log.trim(now_unix_ms=1)
    with capture_logs() as logged, pytest.raises(LogReadError, match="could not be read"):
        await held(log)
    assert "no such table" in logged[0]["internal_cause"]


async def test_a_fault_of_the_checkpointer_ends_the_log(log: SqliteLog):
    await log.append(record(1))
    log._writer._committer._checkpointer._error = apsw.IOError("fsync")

    fates = []
    for seq in (2, 3, 4):
        fates += await asyncio.gather(log.append(record(seq)), return_exceptions=True)

    # The writer looks after a commit, so that one append at most is still stored.
    assert [type(fate) for fate in fates[1:]] == [LogClosedError, LogClosedError]
    assert len(await held(log)) == 1 + (fates[0] is None)
