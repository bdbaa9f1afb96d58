"""The real agent `pi`, installed once into a cache, and a provider on loopback that says what a test scripts."""

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from client.stream.provider import Provider, Reply, chunked, refusal, until_close
from client.stream.provider import provider as providing

PACKAGE = "@mariozechner/pi-coding-agent"
VERSION = "0.73.1"
MODEL = "scripted"


@dataclass(frozen=True)
class Pi:
    """An installed pi, set up for one provider."""

    command: list[str]
    env: dict[str, str]
    provider: Provider

    def replies(self, *replies: Reply) -> None:
        """Script what the provider does with the requests to come, the last one for all further."""
        self.provider.url(*replies, path="/v1/chat/completions")


def _installed() -> Path:
    if (given := os.environ.get("COMPASS_TEST_PI")) is not None:
        return Path(given)
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("the real agent needs Node 20 and npm")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "compass-trace-tests" / f"pi-{VERSION}"
    cache.mkdir(parents=True, exist_ok=True)
    program = cache / "node_modules" / PACKAGE / "dist" / "cli.js"
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (cache / "installed").exists():
            _install(cache)
            (cache / "installed").touch()
    return program


def _install(cache: Path) -> None:
    command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(cache)]
    try:
        subprocess.run([*command, f"{PACKAGE}@{VERSION}"], check=True, capture_output=True, timeout=120)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"{PACKAGE} {VERSION} cannot be installed: {error}")


@pytest.fixture(scope="session")
def pi_program() -> Path:
    """Install the agent, unless it is."""
    return _installed()


@pytest.fixture
async def pi(pi_program: Path, tmp_path: Path) -> AsyncIterator[Pi]:
    """Set the agent up in a home of its own."""
    async with providing() as provider:
        home = tmp_path / "pi"
        home.mkdir()
        model = {"id": MODEL, "contextWindow": 100_000, "maxTokens": 1_000}
        fake = {"baseUrl": f"{provider.base}/v1", "api": "openai-completions", "apiKey": "none", "models": [model]}
        (home / "models.json").write_text(json.dumps({"providers": {"fake": fake}}))
        retry = {"enabled": True, "maxRetries": 2, "baseDelayMs": 20, "provider": {"maxRetries": 0}}
        compaction = {"enabled": True, "reserveTokens": 10_000, "keepRecentTokens": 10}
        (home / "settings.json").write_text(json.dumps({"retry": retry, "compaction": compaction}))
        command = ["node", str(pi_program), "--mode", "rpc", "--no-session", "--provider", "fake", "--model", MODEL]
        env = {"PI_CODING_AGENT_DIR": str(home), "HOME": str(home), "PI_OFFLINE": "1", "PI_TELEMETRY": "0"}
        yield Pi(command, env, provider)


def chunk(delta: dict[str, object], finish: str | None = None, tokens: int = 0) -> bytes:
    """Write one chunk of a streamed answer, with the usage so far if there is any."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    usage = {"prompt_tokens": tokens, "completion_tokens": 2, "total_tokens": tokens + 2}
    body = {"id": "c", "object": "chat.completion.chunk", "model": MODEL, "choices": [choice]}
    return b"data: " + json.dumps({**body, "usage": usage} if tokens else body).encode() + b"\n\n"


def answered(text: str, *, tokens: int = 10) -> Reply:
    """Answer whole."""
    return _whole(*(chunk({"content": word}) for word in text.split(" ")), chunk({}, "stop", tokens))


def broken(text: str, *, end: str, pause_s: float = 0.02, tokens: int = 0) -> Reply:
    """Answer slowly and in part, then `close` or `reset` the connection, `hang`, or `end` as one should after all."""
    packets = [chunked(b"", is_ended=False)]
    packets += [chunk_of_body(chunk({"content": word}, tokens=tokens)) for word in text.split(" ")]
    if end == "end":
        packets.append(chunk_of_body(chunk({}, "stop", tokens=10) + b"data: [DONE]\n\n") + b"0\r\n\r\n")
        end = "close"
    return Reply(tuple(packets), end=end, pause_s=pause_s)


def chunk_of_body(body: bytes) -> bytes:
    """Frame a part of a chunked body."""
    return f"{len(body):x}\r\n".encode() + body + b"\r\n"


def empty() -> Reply:
    """Answer whole, and say nothing."""
    return _whole(chunk({}, "stop"))


def refused(status: int, message: str, *headers: str) -> Reply:
    """Answer with a status other than 200."""
    return refusal(status, json.dumps({"error": {"message": message}}).encode(), *headers)


def _whole(*chunks: bytes) -> Reply:
    return Reply((until_close(b"".join(chunks) + b"data: [DONE]\n\n"),))


def asked_for_tool(command: str) -> Reply:
    """Ask for a bash call."""
    function = {"name": "bash", "arguments": json.dumps({"command": command})}
    call = {"index": 0, "id": "call1", "type": "function", "function": function}
    return _whole(chunk({"tool_calls": [call]}), chunk({}, "tool_calls"))
