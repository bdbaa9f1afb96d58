"""A cancellation at any await arrives unchanged, closes what was open, and is told by nothing but one abort."""

import asyncio
import contextlib
from typing import Any

import httpx
import pytest

from client.stream.cancelling import cancel_at
from client.stream.frames import DONE, choice, sse
from client.stream.provider import Provider, Reply, refusal, with_length
from compass.stream import ChunkStream, StreamClosedError, guard, open_stream, retrying, traced

WHOLE = with_length(sse(choice({"content": "a"}), choice({"content": "b"}, "stop"), DONE))
SLOW_PACKETS = (WHOLE[:90], WHOLE[90:170], WHOLE[170:])


class Recorder:
    """A publisher that waits at every push and keeps what it took."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.saw_retry = asyncio.Event()

    async def push(self, event: dict[str, Any]) -> None:
        await asyncio.sleep(0)
        self.push_nowait(event)

    def push_nowait(self, event: dict[str, Any]) -> bool:
        self.events.append(event)
        if event["type"] == "auto_retry_start":
            self.saw_retry.set()
        return True


def types_of(told: Recorder) -> list[str]:
    return [event["type"] for event in told.events]


async def read(stream: ChunkStream) -> None:
    async with stream as chunks:
        async for _ in chunks:
            await asyncio.sleep(0)


async def test_cancelled_at_any_await_a_stream_lets_the_cancellation_through(served: Provider) -> None:
    url = served.url(Reply(SLOW_PACKETS, pause_s=0.001))
    num_awaits = 1
    while await cancel_at(read(open_stream("openai-chat", url=url, client=None)), num_awaits):
        num_awaits += 1
    assert num_awaits > 5


async def test_cancelled_at_any_await_a_traced_stream_tells_one_abort(
    served: Provider, client: httpx.AsyncClient
) -> None:
    url = served.url(Reply(SLOW_PACKETS, pause_s=0.001))
    num_awaits = 1
    while True:
        told = Recorder()
        stream = open_stream("openai-chat", url=url, client=client)
        if not await cancel_at(read(traced(stream, told, prompt="hi")), num_awaits):
            break
        ends = [event["message"]["stopReason"] for event in told.events if "stopReason" in event.get("message", {})]
        assert ends in (["aborted"], ["stop"])
        assert told.events[-1]["type"] == ("message_end" if ends == ["aborted"] else "agent_end")
        assert "errorMessage" not in str(told.events)
        num_awaits += 1
    assert types_of(told) == [
        "agent_start",
        *["message_start", "message_end", "message_start"],
        *["message_update"] * 2,
        "message_end",
        "agent_end",
    ]
    assert num_awaits > 10


async def test_cancelled_at_any_await_a_guarded_call_lets_the_cancellation_through(served: Provider) -> None:
    openai = pytest.importorskip("openai")
    url = served.url(Reply(SLOW_PACKETS, pause_s=0.001), path="/chat/completions").removesuffix("/chat/completions")
    num_awaits, is_cancelled = 1, True
    while is_cancelled:
        async with openai.AsyncOpenAI(api_key="k", base_url=url, max_retries=0) as sdk:
            call = sdk.chat.completions.create(model="m", messages=[], stream=True)
            is_cancelled = await cancel_at(read(guard(call)), num_awaits)
        num_awaits += 1
    assert num_awaits > 5


async def test_cancelled_at_any_await_a_retrying_stream_lets_the_cancellation_through(
    served: Provider, client: httpx.AsyncClient
) -> None:
    num_awaits, is_cancelled = 1, True
    while is_cancelled:
        url = served.url(refusal(503, b""), Reply(SLOW_PACKETS))

        def again(url: str = url) -> ChunkStream:
            return open_stream("openai-chat", url=url, client=client)

        is_cancelled = await cancel_at(read(retrying(again, first_wait_s=0.001)), num_awaits)
        num_awaits += 1
    assert num_awaits > 5


async def test_cancelled_while_it_waits_for_a_retry_a_traced_stream_tells_that_the_retry_is_given_up(
    served: Provider, client: httpx.AsyncClient
) -> None:
    url = served.url(refusal(503, b"", "retry-after: 30"))
    told = Recorder()
    task = asyncio.create_task(read(traced(retrying(lambda: open_stream("openai-chat", url=url, client=client)), told)))
    async with asyncio.timeout(5):
        await told.saw_retry.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert told.events[-1] == {"type": "auto_retry_end", "success": False, "finalError": "Retry cancelled"}
    assert len(served.requests) == 1


async def test_a_reader_that_leaves_a_traced_stream_tells_one_abort(
    served: Provider, client: httpx.AsyncClient
) -> None:
    url = served.url(Reply(SLOW_PACKETS))
    for leave in (asyncio.CancelledError, ValueError, None):
        told = Recorder()
        with contextlib.suppress(asyncio.CancelledError, ValueError):
            async with traced(open_stream("openai-chat", url=url, client=client), told) as chunks:
                async for _ in chunks:
                    if leave is not None:
                        raise leave
                    break
        assert types_of(told) == ["agent_start", "message_start", "message_update", "message_end"]
        assert told.events[-1]["message"]["stopReason"] == "aborted"
        assert told.events[-1]["message"]["content"] == [{"type": "text", "text": "a"}]


async def test_a_stream_that_was_cancelled_never_looks_finished(served: Provider, client: httpx.AsyncClient) -> None:
    stream = open_stream("openai-chat", url=served.url(Reply((), end="hang")), client=client)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await anext(stream)
    with pytest.raises(StreamClosedError):
        await anext(stream)
