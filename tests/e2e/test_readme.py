"""What the README tells a newcomer to type works against a real server, word for word but for the address."""

import asyncio
import os
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ADDRESS = "127.0.0.1:7420"
BIN = Path(sys.executable).parent


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)


def commands(start: str) -> list[str]:
    return [line for block in blocks("sh") for line in block.splitlines() if line.startswith(start)]


async def run(words: Sequence[str], address: str) -> str:
    """Run a command to its end against the server at an address, and return what it printed."""
    process = await asyncio.create_subprocess_exec(
        *(word.replace(ADDRESS, address) for word in words),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "COMPASS_SERVER": address, "PYTHONPATH": str(ROOT / "client")},
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, words
    return output.decode()


@pytest.mark.skipif(shutil.which("grpcurl") is None, reason="grpcurl is not installed; buf curl below does the same")
async def test_grpcurl_lists_describes_pushes_and_tails(serve) -> None:
    address = (await serve()).addresses[0]

    outputs = [await run(shlex.split(command), address) for command in commands("grpcurl ")]

    listed, described, pushed, pushed_struct, tailed = outputs
    assert {"compass.v1.CompassService", "compass.v1.AgentGateway"} <= set(listed.split())
    assert "rpc SubscribeAgentSession" in described
    assert '"headSeq": "' in pushed
    assert '"headSeq": "' in pushed_struct
    assert all(word in tailed for word in ("AGENT_SESSION_STATE_WORKING", "typed by hand", "SESSION_END_REASON_HEAD"))


async def test_buf_curl_lists_pushes_and_tails(serve) -> None:
    address = (await serve()).addresses[0]

    outputs = [await run(_with_bin(command), address) for command in commands(".venv/bin/buf ")]

    listed, pushed, tailed = outputs
    assert "compass.v1.AgentGateway/PushEvent" in listed
    assert '"headSeq"' in pushed
    assert all(word in tailed for word in ("AGENT_SESSION_STATE_WORKING", "SESSION_END_REASON_HEAD"))


async def test_the_command_pushes_tails_and_reports(serve) -> None:
    address = (await serve()).addresses[0]

    outputs = [await run(_as_module(command), address) for command in commands(".venv/bin/compass-trace ")]

    _, tailed, transcript, sessions = outputs
    assert all(word in tailed for word in ("List files", "Hello from the fake model.", "stopped"))
    assert "Hello from the fake model." in transcript
    assert "demo" in sessions


async def test_the_python_examples_publish_and_tail(serve) -> None:
    address = (await serve()).addresses[0]

    published, tailed = [await run([sys.executable, "-c", program], address) for program in blocks("python")]

    assert (published, tailed) == ("", "Hello from Python\nfailed: 529 overloaded\n")


def _with_bin(command: str) -> list[str]:
    """Take the programs that the README takes from .venv from the environment that runs the tests."""
    program, *rest = shlex.split(command)
    return [str(BIN / Path(program).name), *rest]


def _as_module(command: str) -> list[str]:
    """Run the command from the sources, installed or not."""
    return [sys.executable, "-m", "compass.cli", *shlex.split(command)[1:]]
