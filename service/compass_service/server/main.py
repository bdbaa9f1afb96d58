"""The command `compass-trace-server`."""

import asyncio
import gc
import json
import os
import signal
import sys
import tomllib
from collections.abc import Coroutine
from typing import NoReturn

import structlog
import uvloop
from pydantic import ValidationError

from compass_service.log.protocol import LogError
from compass_service.server import logs
from compass_service.server.config import Config, load
from compass_service.server.server import serving

_EXIT_FAILED = 1
_EXIT_USAGE = 2
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_logger = structlog.get_logger(__name__)


def main() -> NoReturn:
    """Serve until SIGTERM or SIGINT; a second one ends at once. Exits 0 after a drain, 2 for a wrong configuration."""
    config = _config()
    logs.configure(config.log_format, config.log_level)
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    try:
        uvloop.run(_serve(config))
    except (LogError, OSError, RuntimeError) as failure:
        _logger.critical("cannot_serve", problem=str(failure))
        sys.exit(_EXIT_FAILED)
    sys.exit(0)


def _config() -> Config:
    try:
        return load(sys.argv[1:])
    except ValidationError as refusal:
        problems = [f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in refusal.errors()]
    except (OSError, tomllib.TOMLDecodeError) as failure:
        problems = [f"config: {failure}"]
    for problem in problems:
        print(f"compass-trace-server: {problem}", file=sys.stderr)  # noqa: T201 # a usage error, before there is a log
    sys.exit(_EXIT_USAGE)


async def _serve(config: Config) -> None:
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, _ask, asked)
    async with serving(config) as server:
        # A full garbage collection looks at all that was imported, 57,000 objects in 14 ms, and everybody waits for it.
        gc.collect()
        gc.freeze()
        _say_ready(server.addresses)
        _logger.info("serving", listen=server.addresses, data_dir=str(config.data_dir))
        await _first(asked.wait(), server.failed())
        _logger.info("draining", grace_s=config.grace_s)
    _logger.info("stopped")


def _ask(asked: asyncio.Event) -> None:
    if asked.is_set():
        os._exit(128 + signal.SIGTERM)  # what is acknowledged is durable already
    asked.set()


def _say_ready(addresses: list[str]) -> None:
    sys.stdout.write(json.dumps({"event": "ready", "listen": addresses}) + "\n")
    sys.stdout.flush()


async def _first(*waits: Coroutine[object, object, object]) -> None:
    """Wait for the first to end, and raise what it raised."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
