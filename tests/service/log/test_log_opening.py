import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import apsw
import pytest
from log_samples import held, record
from structlog.testing import capture_logs

from compass_service.log import Retention, SqliteLog
from compass_service.log.lock import DataDirLock
from compass_service.log.protocol import DataDirLockedError
from compass_service.log.schema import DB_NAME, DataDirUnusableError, SchemaVersionError

HOLD = """
import sys
from pathlib import Path
from compass_service.log.lock import DataDirLock
lock = DataDirLock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


async def test_one_process_opens_a_data_directory_once(open_log, tmp_path: Path):
    open_log()

    with pytest.raises(DataDirLockedError) as refused:
        open_log()

    assert refused.value.data_dir == str(tmp_path / "data")
    assert refused.value.holder == f"pid {os.getpid()}"


async def test_another_process_is_named_and_its_death_lets_go(open_log, tmp_path: Path):
    (tmp_path / "data").mkdir()
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLD, str(tmp_path / "data"), stdin=PIPE, stdout=PIPE, env=env
    )
    assert other.stdout is not None
    assert await other.stdout.readline() == b"held\n"

    with pytest.raises(DataDirLockedError, match=f"pid {other.pid}"):
        open_log()

    other.kill()
    await other.wait()
    await open_log().append(record(1))


async def test_a_refused_opening_leaves_the_holder_undisturbed(open_log):
    log = open_log()
    with pytest.raises(DataDirLockedError):
        open_log()

    await log.append(record(1))

    assert await held(log) == [(1, "t")]


async def test_a_log_of_a_newer_service_is_refused_and_left_alone(open_log, tmp_path: Path):
    await open_log().close()
    path = tmp_path / "data" / DB_NAME
    with apsw.Connection(str(path)) as connection:
        connection.pragma("user_version", 99)
    connection.close()

    with pytest.raises(SchemaVersionError, match="schema version 99, this service knows up to 1"):
        open_log()

    DataDirLock(tmp_path / "data").release()  # the refusal has let go of the directory


async def test_files_that_are_no_log_are_refused_without_saying_why_to_callers(open_log, tmp_path: Path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / DB_NAME).write_bytes(b"not a database" * 1_000)

    with capture_logs() as logged, pytest.raises(DataDirUnusableError, match="cannot be opened as a session log"):
        open_log()

    assert "NotADBError" in logged[0]["internal_cause"]
    DataDirLock(tmp_path / "data").release()


async def test_the_data_directory_is_made_for_its_owner_only(open_log, tmp_path: Path):
    open_log(tmp_path / "deep" / "down")

    assert (tmp_path / "deep" / "down").stat().st_mode & 0o777 == 0o700


async def test_the_backend_is_named(log: SqliteLog):
    assert log.backend == "sqlite"


@pytest.mark.parametrize("field", ["age_ms", "session_bytes", "total_bytes", "trace_age_ms"])
def test_a_limit_that_keeps_nothing_is_refused(field: str):
    with pytest.raises(ValueError, match=f"{field} must be at least 1 or None, got 0"):
        Retention(**{field: 0})
