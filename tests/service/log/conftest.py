from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from compass_service.log import Retention, SqliteLog

OpenLog = Callable[..., SqliteLog]


@pytest.fixture
async def open_log(tmp_path: Path) -> AsyncIterator[OpenLog]:
    """Open logs that are closed at the end, in one directory unless another is named."""
    opened: list[SqliteLog] = []

    def open_one(
        data_dir: Path = tmp_path / "data",
        *,
        retention: Retention | None = None,
        reserve_bytes: int = 64 * 1024,
        now_unix_ms: int = 1_000,
    ) -> SqliteLog:
        log = SqliteLog.open(
            data_dir,
            retention=retention or Retention(),
            reserve_bytes=reserve_bytes,
            now_unix_ms=lambda: now_unix_ms,
        )
        opened.append(log)
        return log

    yield open_one
    for log in opened:
        await log.close()


@pytest.fixture
async def log(open_log: OpenLog) -> SqliteLog:
    return open_log()
