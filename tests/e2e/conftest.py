"""Real servers for end-to-end tests: inside this loop, or as a process that can be killed."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import grpc
import pytest

from compass.v1 import agent_gateway_pb2_grpc, compass_pb2_grpc
from compass_service.server.config import Config
from compass_service.server.server import Server, serving

ROOT = Path(__file__).parents[2]


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Callable[..., object]]:
    """Start servers in this loop: `server = await serve(**config)`. Port 0, a data directory of the test's own."""
    async with contextlib.AsyncExitStack() as stack:

        async def start(**config: object) -> Server:
            given = {"listen": ["127.0.0.1:0"], "data_dir": tmp_path / "data", "grace_s": 1.0, **config}
            return await stack.enter_async_context(serving(Config.model_validate(given)))

        yield start


@pytest.fixture
async def dial() -> AsyncIterator[Callable[..., grpc.aio.Channel]]:
    """Open channels: `channel = dial(address)`."""
    channels: list[grpc.aio.Channel] = []

    def open_channel(address: str, *options: tuple[str, int]) -> grpc.aio.Channel:
        channel = grpc.aio.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1), *options])
        channels.append(channel)
        return channel

    yield open_channel
    for channel in channels:
        await channel.close()


@pytest.fixture
def doors(dial: Callable[..., grpc.aio.Channel]) -> Callable[..., object]:
    """Open both doors of a server: `compass, gateway = doors(address)`."""

    def open_doors(address: str, *options: tuple[str, int]) -> object:
        channel = dial(address, *options)
        return compass_pb2_grpc.CompassServiceStub(channel), agent_gateway_pb2_grpc.AgentGatewayStub(channel)

    return open_doors


class ServerProcess:
    """One server process."""

    def __init__(self, process: asyncio.subprocess.Process, addresses: list[str]) -> None:
        self.process = process
        self.addresses = addresses
        self.address = addresses[0]

    async def kill(self) -> None:
        """Kill it without warning."""
        self.process.kill()
        await self.process.wait()

    async def terminate(self) -> int:
        """Ask it to drain, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return await self.process.wait()


@pytest.fixture
async def serve_process(tmp_path: Path) -> AsyncIterator[Callable[..., object]]:
    """Start server processes: `server = await serve_process("--flag", "value")`."""
    started: list[asyncio.subprocess.Process] = []

    async def start(*flags: str, listen: str = "127.0.0.1:0", data_dir: Path | None = None) -> ServerProcess:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "compass_service",
            "--listen",
            listen,
            "--data-dir",
            str(data_dir or tmp_path / "data"),
            *flags,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "client"), str(ROOT / "service")))},
        )
        started.append(process)
        line = await process.stdout.readline()
        assert line, "the server ended before it was ready"
        ready = json.loads(line)
        assert ready["event"] == "ready"
        return ServerProcess(process, ready["listen"])

    yield start
    for process in started:
        if process.returncode is None:
            process.kill()
        await process.wait()
