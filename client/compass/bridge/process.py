"""The agent's process: starting it, its three streams, ending it, and how it ended."""

import asyncio
import contextlib
import logging
import os
import signal
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import msgspec

from compass.failures import redact
from compass.limits import MAX_PROSE_BYTES
from compass.lines import split_lines

_log = logging.getLogger("compass.bridge")

_CHUNK_BYTES = 1024 * 1024
_LAST_LINES = 20
_MAX_LINE_CHARS = 1_000


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended."""

    code: int | None
    """None when a signal ended it."""
    signal: str
    """Name of the signal, empty when none did."""
    last_stderr: str
    """The last lines that it wrote to standard error, redacted and bounded."""

    @property
    def is_clean(self) -> bool:
        """Whether it ended by itself and without a failure."""
        return self.code == 0

    def __str__(self) -> str:
        return f"exit code {self.code}" if self.code is not None else self.signal


class _Streams(asyncio.subprocess.SubprocessStreamProtocol):
    """The streams of a process, and its end, which asyncio tells else only once nobody holds the streams open."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=_CHUNK_BYTES, loop=loop)
        self.has_exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.has_exited.set()


class AgentProcess:
    """One agent process, the leader of its own group, so that Ctrl-C reaches the bridge alone."""

    def __init__(self, transport: asyncio.SubprocessTransport, streams: _Streams) -> None:
        self._transport = transport
        self._has_exited = streams.has_exited
        self._process = asyncio.subprocess.Process(transport, streams, asyncio.get_running_loop())
        self._last_lines: deque[str] = deque(maxlen=_LAST_LINES)
        self._stderr = asyncio.create_task(self._read_stderr())

    @classmethod
    async def start(cls, command: Sequence[str], *, takes_commands: bool) -> Self:
        """Start the agent. Raises OSError when it cannot be started."""
        loop = asyncio.get_running_loop()
        transport, streams = await loop.subprocess_exec(
            lambda: _Streams(loop),
            *command,
            stdin=asyncio.subprocess.PIPE if takes_commands else None,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        return cls(transport, streams)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def write(self, command: Mapping[str, Any]) -> None:
        """Write one line to its standard input. A process that has ended or closed it hears nothing any more."""
        stdin = self._process.stdin
        if stdin is not None and not stdin.is_closing():
            stdin.write(msgspec.json.encode(command) + b"\n")

    def end_input(self) -> None:
        """Close its standard input."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield the lines of its standard output."""
        async for line in split_lines(_chunks(self._process.stdout)):
            if line.strip():
                yield line

    async def wait(self) -> Exit:
        """Wait until it has ended."""
        await self._has_exited.wait()
        code = self._process.returncode or 0
        # Somebody it has started may hold the pipe open; what they say is not what ended the agent.
        await asyncio.wait([self._stderr], timeout=1.0)
        self._stderr.cancel()
        said = "\n".join(self._last_lines).encode()[-MAX_PROSE_BYTES:].decode(errors="ignore")
        return Exit(code if code >= 0 else None, "" if code >= 0 else _name_of(-code), said)

    async def terminate(self, *, grace_s: float) -> None:
        """Ask it to end, and kill it if it has not within the grace. Idempotent."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._process.returncode is not None:
                return
            self._signal(number)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace_s):
                    await self._has_exited.wait()

    def kill(self) -> None:
        """Kill it. Nothing happens if it has ended."""
        if self._process.returncode is None:
            self._signal(signal.SIGKILL)

    def close(self) -> None:
        """Let go of its streams, which somebody it has started may hold open. Kills it if it lives."""
        self._transport.close()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    async def _read_stderr(self) -> None:
        async for line in split_lines(_chunks(self._process.stderr)):
            said = redact(line.decode(errors="replace"))[:_MAX_LINE_CHARS]
            self._last_lines.append(said)
            _log.info("agent: %s", said)


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


async def _chunks(stream: asyncio.StreamReader | None) -> AsyncIterator[bytes]:
    while stream is not None and (chunk := await stream.read(_CHUNK_BYTES)):
        yield chunk
