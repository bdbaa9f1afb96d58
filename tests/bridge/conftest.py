"""Bridges as processes against servers that can be killed."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

import compass
from bridge.pi import pi, pi_program  # noqa: F401 - fixtures
from compass.v1 import compass_pb2 as pb
from e2e.conftest import ROOT, dial, doors, serve, serve_process  # noqa: F401 - fixtures

FAKE = Path(__file__).with_name("fake_agent.py")
STATES = pb.AgentSessionState


def scripted(**script: object) -> list[str]:
    """Return the command of a scripted agent."""
    return [sys.executable, str(FAKE), "--mode", "rpc", json.dumps(script)]


class Run:
    """One `compass-trace run`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def kill(self) -> None:
        """Kill the bridge without warning."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()

    async def terminate(self, number: int = signal.SIGTERM) -> int:
        """Ask the bridge to stop."""
        self.process.send_signal(number)
        return await self.process.wait()

    async def ended(self) -> tuple[int, str]:
        """Wait for its end: exit code and standard error."""
        _, err = await self.process.communicate()
        return self.process.returncode, err.decode()

    @property
    def agent_pids(self) -> list[int]:
        """The agent's process."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        with contextlib.suppress(OSError):
            return [int(pid) for pid in children.read_text().split()]
        return []


@pytest.fixture
async def bridge(tmp_path: Path) -> AsyncIterator[Callable[..., object]]:
    """Start bridges: `run = await bridge(address, "session", command, *flags)`."""
    started: list[Run] = []

    async def start(
        address: str, session: str, command: list[str], *flags: str, env: dict[str, str] | None = None
    ) -> Run:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "compass.cli",
            "--server",
            address,
            "run",
            session,
            "--spool",
            str(tmp_path / "spool"),
            *flags,
            "--",
            *command,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT / "client"), **(env or {})},
        )
        run = Run(process)
        started.append(run)
        return run

    yield start
    for run in started:
        pids = run.agent_pids
        if run.process.returncode is None:
            await run.kill()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        run.process._transport.close()


async def until_state(client: compass.Client, session: str, *states: str) -> pb.SessionInfo:
    """Wait until the session is in one of some states."""
    wanted = {STATES.Value(f"AGENT_SESSION_STATE_{state}") for state in states}
    async for response in client.watch_sessions():
        for info in response.sessions:
            if info.session_id == session and info.state in wanted:
                return info
    raise AssertionError


async def until_frame(
    client: compass.Client, session: str, holds: Callable[[compass.Frame], bool]
) -> list[compass.Frame]:
    """Tail the session from its start until a frame comes; returns the frames up to it."""
    frames = []
    async with client.tail(session) as tail:
        async for item in tail:
            frames.append(item)
            if holds(item):
                return frames
    raise AssertionError(f"the tail ended first: {frames}")


async def frames_of(client: compass.Client, session: str) -> list[compass.Frame]:
    """Read all frames."""
    return [item async for item in client.tail(session, follow=False)]


def is_recorded(prompt_id: str) -> Callable[[compass.Frame], bool]:
    """Tell the frame that says that a prompt is recorded."""
    return lambda frame: (
        frame.event.prompt.prompt_id == prompt_id and frame.event.prompt.state == pb.SESSION_PROMPT_STATE_RECORDED
    )


def prompt_states(frames: list[compass.Frame], prompt_id: str) -> list[str]:
    """List what became of a prompt."""
    return [
        pb.SessionPromptState.Name(frame.event.prompt.state).removeprefix("SESSION_PROMPT_STATE_")
        for frame in frames
        if frame.event.HasField("prompt") and frame.event.prompt.prompt_id == prompt_id
    ]


def entered(state: str) -> Callable[[compass.Frame], bool]:
    """Tell the frame with which a state is entered."""
    number = STATES.Value(f"AGENT_SESSION_STATE_{state}")
    return lambda frame: frame.state == number


async def submit(client: compass.Client, session: str, text: str, **more: object) -> str:
    """Submit a prompt as soon as the session is there."""
    await until_state(client, session, "STARTING", "READY", "WORKING", "ERRORED")
    return (await client.submit_prompt(session, text, **more)).prompt_id
