"""Processes of a benchmark: the server, and clients that share neither loop nor lock with anybody."""

import asyncio
import contextlib
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from harness import SOURCES

_STOP_S = 30
_LOOK_S = 0.02


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """A server that runs."""

    address: str
    process: psutil.Process

    def rss_bytes(self) -> int:
        """Return what it has in memory now."""
        return int(self.process.memory_info().rss)


@contextlib.contextmanager
def serving(*flags: str) -> Iterator[ServerProcess]:
    """Run a server on a free port, with a data directory that goes away with it."""
    with tempfile.TemporaryDirectory(prefix="compass-bench-") as data_dir:
        command = [sys.executable, "-m", "compass_service", "--listen", "127.0.0.1:0", "--data-dir", data_dir]
        server = subprocess.Popen(
            [*command, "--log-level", "warning", "--grace-s", "1", *flags],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(SOURCES)},
        )
        try:
            assert server.stdout is not None
            ready = json.loads(server.stdout.readline())
            yield ServerProcess(ready["listen"][0], psutil.Process(server.pid))
        finally:
            _stop(server)


def _stop(server: "subprocess.Popen[bytes]") -> None:
    server.terminate()
    try:
        server.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    if server.stdout is not None:
        server.stdout.close()


class Apart:
    """Runs coroutine functions of the calling script in processes of their own."""

    def __init__(self, pool: ProcessPoolExecutor, folder: Path) -> None:
        self._pool = pool
        self._folder = folder
        self._num_flags = 0

    def start(self, work: Callable[..., Awaitable[Any]], *args: object) -> "Future[Any]":
        """Begin to run `work(*args)`."""
        return self._pool.submit(_run, work, args)

    def run(self, work: Callable[..., Awaitable[Any]], *args: object) -> Any:
        """Run `work(*args)` and return its result."""
        return self.start(work, *args).result()

    def flag(self) -> "Flag":
        """Make a flag that processes can be given."""
        self._num_flags += 1
        return Flag(self._folder / str(self._num_flags))


@dataclass(frozen=True, slots=True)
class Flag:
    """Something that one process says once and another waits for."""

    path: Path

    def set(self) -> None:
        """Say it."""
        self.path.touch()

    @property
    def is_set(self) -> bool:
        """Whether it was said."""
        return self.path.exists()

    async def wait(self) -> None:
        """Wait until it is said."""
        while not self.is_set:  # noqa: ASYNC110 # an Event is of one process only
            await asyncio.sleep(_LOOK_S)


@contextlib.contextmanager
def apart(num_processes: int = 1) -> Iterator[Apart]:
    """Give so many processes, which go away with the block."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(num_processes, mp_context=context) as pool:
        yield Apart(pool, Path(folder))


def _run(work: Callable[..., Awaitable[Any]], args: Sequence[object]) -> Any:
    async def run() -> Any:
        return await work(*args)

    return asyncio.run(run())
