"""A provider's answer on one side, a pane on the other: a traced stream through the SDK and a real server."""

import asyncio
import os
import re
import sys
import textwrap
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import anthropic
import httpx
import openai
import pytest

import compass
from client.stream.frames import DONE, choice, sse
from client.stream.provider import Provider, Reply, provider, refusal, until_close, with_length
from client.stream.whole import WHOLE
from compass.stream import ModelStreamError, open_stream, traced
from compass.v1 import compass_pb2 as pb

ROOT = Path(__file__).parents[2]
MESSAGE = next(sample.body for sample in WHOLE if sample.dialect == "anthropic")


@pytest.fixture
async def served():
    async with provider() as made:
        yield made


async def seen(address: str, session: str) -> list[compass.Frame]:
    async with compass.connect(address) as client:
        return [item async for item in client.tail(session) if isinstance(item, compass.Frame)]


def texts(frames: list[compass.Frame]) -> str:
    return "".join(frame.event.assistant_text.text for frame in frames)


def errors(frames: list[compass.Frame]) -> list[pb.SessionError]:
    return [frame.event.session_error for frame in frames if frame.event.HasField("session_error")]


def outcomes(frames: list[compass.Frame]) -> list[int]:
    return [frame.event.message_end.outcome for frame in frames if frame.event.HasField("message_end")]


async def test_a_pane_sees_a_whole_answer_a_failed_one_and_a_cancelled_one(serve, served: Provider) -> None:
    address = (await serve()).addresses[0]
    whole = served.url(
        Reply((with_length(sse(choice({"content": "all "}), choice({"content": "of it"}, "stop"), DONE)),))
    )
    cut = served.url(Reply((until_close(sse(choice({"content": "half"}))),)))
    endless = served.url(Reply((until_close(sse(choice({"content": "some"}))),), end="hang"))
    came = asyncio.Event()

    async def read(url: str, publisher: compass.Publisher) -> None:
        async with httpx.AsyncClient(verify=False) as http:
            stream = open_stream("openai-chat", url=url, client=http)
            async with traced(stream, publisher, prompt="Why?") as chunks:
                async for _ in chunks:
                    came.set()

    async with compass.connect(address) as client, client.publish("s") as publisher:
        await read(whole, publisher)
        with pytest.raises(ModelStreamError):
            await read(cut, publisher)
        came.clear()
        task = asyncio.create_task(read(endless, publisher))
        await came.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    frames = await seen(address, "s")
    assert texts(frames) == "all of ithalfsome"
    complete, incomplete = pb.SESSION_MESSAGE_OUTCOME_COMPLETE, pb.SESSION_MESSAGE_OUTCOME_INCOMPLETE
    assert outcomes(frames) == [complete, incomplete, incomplete]
    failed, aborted = errors(frames)
    assert (failed.kind, aborted.kind) == (pb.SESSION_ERROR_KIND_ERROR, pb.SESSION_ERROR_KIND_ABORTED)
    assert (failed.message, failed.retryable) == ("the stream ended without its end mark", False)
    assert frames[-1].state == pb.AGENT_SESSION_STATE_STOPPED


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("way", "is_whole"), [("openai", True), ("anthropic", True), ("httpx", True), ("openai", False)]
)
async def test_the_example_prints_and_traces_what_a_provider_answers(
    way: str, is_whole: bool, serve, served: Provider
) -> None:
    address = (await serve()).addresses[0]
    bad_key = (
        b'{"type":"error","error":{"type":"authentication_error","code":"invalid_api_key","message":"no such key"}}'
    )
    chat = sse(choice({"content": "So"}, "stop"), DONE)
    for path, body in (("/chat/completions", chat), ("/v1/messages", MESSAGE)):
        served.url(Reply((with_length(body),)) if is_whole else refusal(401, bad_key), path=path)
    example = await asyncio.create_subprocess_exec(
        *(sys.executable, "examples/traced_stream.py", way, "Why?"),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "client"),
            "COMPASS_SERVER": address,
            "OPENAI_API_KEY": "k",
            "ANTHROPIC_API_KEY": "k",
            "OPENAI_BASE_URL": served.base,
            "ANTHROPIC_BASE_URL": served.base,
        },
    )
    stdout, stderr = await example.communicate()
    assert example.returncode == (0 if is_whole else 1), stderr.decode()
    frames = await seen(address, stderr.decode().split()[1])
    assert texts(frames) == ("So" if is_whole else "")
    assert ("So" in stdout.decode()) == is_whole
    assert [error.message for error in errors(frames)] == ([] if is_whole else ["no such key"])
    assert frames[-1].state == pb.AGENT_SESSION_STATE_STOPPED
    assert len(served.requests) == 1


def snippets(page: str) -> str:
    return "\n".join(re.findall(r"^```py\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("page", ["README.md", "docs/stream.md"])
async def test_the_lines_in_the_docs_do_what_they_say(
    page: str, served: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    class Publisher:
        events: ClassVar[list[dict[str, Any]]] = []

        async def push(self, event: dict[str, Any]) -> None:
            self.push_nowait(event)

        def push_nowait(self, event: dict[str, Any]) -> bool:
            self.events.append(event)
            return True

    chat = with_length(sse(choice({"content": "So"}, "stop"), DONE))
    url = served.url(Reply((chat,)), path="/chat/completions")
    served.url(Reply((with_length(MESSAGE),)), path="/v1/messages")
    code = re.sub(r"https://api\.(?:openai\.com/v1|anthropic\.com)", served.base, snippets(page))
    given = {
        "openai": SimpleNamespace(AsyncOpenAI=partial(openai.AsyncOpenAI, base_url=served.base, api_key="k")),
        "anthropic": SimpleNamespace(
            AsyncAnthropic=partial(anthropic.AsyncAnthropic, base_url=served.base, api_key="k")
        ),
        "sdk": anthropic.AsyncAnthropic(base_url=served.base, api_key="k", max_retries=0),
        "publisher": Publisher(),
        "question": "Why?",
        "url": url,
        **{name: getattr(compass.stream, name) for name in compass.stream.__all__},
        **dict.fromkeys(("key", "model"), "k"),
        **dict.fromkeys(("messages", "headers", "body")),
    }
    scope: dict[str, Any] = {}
    exec(f"async def program():\n{textwrap.indent(code, '    ')}", given, scope)
    await scope["program"]()
    assert "So" in capsys.readouterr().out
    assert Publisher.events[-1]["type"] == "agent_end"
    assert not any("errorMessage" in str(event) for event in Publisher.events)
