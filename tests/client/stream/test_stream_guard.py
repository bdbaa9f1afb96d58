"""The official SDKs against the same provider: what they take for a finished stream, and what guard makes of it."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anthropic
import openai
import pytest

from client.stream.frames import DONE, ERROR_TEXT, call, choice, named, reasoning, sse, text
from client.stream.outcome import Outcome, outcome_of
from client.stream.provider import Provider, Reply, chunked, refusal, until_close, with_length
from client.stream.whole import WHOLE
from compass.failures import Category, Verdict
from compass.stream import guard

Sdk = Callable[[Reply], Callable[[], Awaitable[Any]]]


@pytest.fixture
async def chat(served: Provider) -> AsyncIterator[Sdk]:
    async with openai.AsyncOpenAI(api_key="k", base_url=served.base, max_retries=0) as sdk:

        def reply_with(reply: Reply) -> Callable[[], Awaitable[Any]]:
            served.url(reply, path="/chat/completions")
            return lambda: sdk.chat.completions.create(model="m", messages=[], stream=True)

        yield reply_with


@pytest.fixture
async def responses(served: Provider) -> AsyncIterator[Sdk]:
    async with openai.AsyncOpenAI(api_key="k", base_url=served.base, max_retries=0) as sdk:

        def reply_with(reply: Reply) -> Callable[[], Awaitable[Any]]:
            served.url(reply, path="/responses")
            return lambda: sdk.responses.create(model="m", input="hi", stream=True)

        yield reply_with


@pytest.fixture
async def messages(served: Provider) -> AsyncIterator[Sdk]:
    async with anthropic.AsyncAnthropic(api_key="k", base_url=served.base, max_retries=0) as sdk:

        def reply_with(reply: Reply) -> Callable[[], Awaitable[Any]]:
            served.url(reply, path="/v1/messages")
            return lambda: sdk.messages.create(model="m", max_tokens=9, messages=[], stream=True)

        yield reply_with


async def read_alone(open_call: Callable[[], Awaitable[Any]]) -> list[Any]:
    """Read a stream as the SDK gives it, without guard."""
    return [event async for event in await open_call()]


def body_of(dialect: str, index: int = 0) -> bytes:
    return [sample for sample in WHOLE if sample.dialect == dialect][index].body


CHAT, CHAT_CALL = body_of("openai-chat"), body_of("openai-chat", 1)
RESPONSES = body_of("openai-responses")
MESSAGES = body_of("anthropic")


async def test_a_whole_chat_completion_gives_its_chunks(chat: Sdk) -> None:
    stream = guard(chat(Reply((with_length(CHAT),))))
    assert text("Hi", " there") == (await outcome_of(stream)).chunks
    assert (stream.answer.provider, stream.answer.stop_reason) == ("openai-chat", "length")
    assert (
        call("c1", "w", '{"city": "Ulm"}') == (await outcome_of(guard(chat(Reply((with_length(CHAT_CALL),)))))).chunks
    )


async def test_a_whole_response_gives_its_chunks(responses: Sdk) -> None:
    outcome = await outcome_of(guard(responses(Reply((with_length(RESPONSES),)))))
    assert [*reasoning("hm"), *text("Hi", "no"), *call("c1", "w", '{"city": "Ulm"}')] == outcome.chunks
    assert outcome.is_whole


async def test_a_whole_message_gives_its_chunks(messages: Sdk) -> None:
    stream = guard(messages(Reply((with_length(MESSAGES),))))
    outcome = await outcome_of(stream)
    assert [*reasoning("hm"), *text("So"), *call("c1", "w", '{"city": "Ulm"}')] == outcome.chunks
    assert outcome.is_whole
    assert (stream.answer.provider, stream.answer.model, stream.answer.stop_reason) == ("anthropic", "m", "tool_use")


CUT_CHATS = [
    sse(choice({"content": "Hi"})),
    sse(choice({"content": "Hi"}), DONE),
    sse(DONE),
    b"",
    b"<html><body>no</body></html>",
    json.dumps({"error": {"message": ERROR_TEXT}}).encode(),
]


@pytest.mark.parametrize("body", CUT_CHATS)
async def test_a_cut_chat_completion_is_finished_to_the_sdk_alone_and_raises_through_guard(
    body: bytes, chat: Sdk
) -> None:
    open_call = chat(Reply((until_close(body),)))
    assert len(await read_alone(open_call)) == body.count(b'"Hi"')
    outcome = await outcome_of(guard(open_call))
    assert (Category.MALFORMED_RESPONSE, not outcome.chunks) == (outcome.error.category, outcome.error.retryable)
    assert (outcome.error.provider, outcome.error.status) == ("openai-chat", None)


@pytest.mark.parametrize(
    ("body", "category"),
    [
        (named({"type": "response.output_text.delta", "delta": "Hi"}), Category.MALFORMED_RESPONSE),
        (
            named({"type": "error", "code": "rate_limit_exceeded", "message": ERROR_TEXT, "param": None}),
            Category.RATE_LIMITED,
        ),
        (
            named({"type": "response.failed", "response": {"error": {"code": "server_error", "message": ERROR_TEXT}}}),
            Category.SERVER_ERROR,
        ),
        (
            named({"type": "response.incomplete", "response": {"incomplete_details": {"reason": "content_filter"}}}),
            Category.CONTENT_FILTERED,
        ),
    ],
)
async def test_a_failed_response_is_finished_to_the_sdk_alone_and_raises_through_guard(
    body: bytes, category: Category, responses: Sdk
) -> None:
    open_call = responses(Reply((until_close(body),)))
    assert len(await read_alone(open_call)) == 1
    outcome = await outcome_of(guard(open_call))
    assert (category, "openai-responses") == (outcome.error.category, outcome.error.provider)


async def test_a_cut_message_is_finished_to_the_sdk_alone_and_raises_through_guard(messages: Sdk) -> None:
    lines = MESSAGES.splitlines(keepends=True)
    for num_events in range(1, MESSAGES.count(b"\n\n")):
        open_call = messages(Reply((until_close(b"".join(lines[: 3 * num_events])),)))
        assert len(await read_alone(open_call)) == num_events - (num_events > 1)  # all but the ping
        outcome = await outcome_of(guard(open_call))
        assert (Category.MALFORMED_RESPONSE, not outcome.chunks) == (outcome.error.category, outcome.error.retryable)


async def test_an_error_without_its_event_line_is_nothing_to_the_sdk_alone_and_raises_through_guard(
    messages: Sdk,
) -> None:
    body = sse({"type": "error", "error": {"type": "overloaded_error", "message": ERROR_TEXT}})
    open_call = messages(Reply((until_close(body),)))
    assert await read_alone(open_call) == []
    assert not (await outcome_of(guard(open_call))).is_whole


@pytest.mark.slow
@pytest.mark.timeout(60)
async def test_cut_at_any_byte_a_chat_completion_is_whole_only_with_its_finish_reason(chat: Sdk) -> None:
    for num_bytes in range(len(CHAT)):
        outcome = await outcome_of(guard(chat(Reply((until_close(CHAT[:num_bytes]),)))))
        assert outcome.chunks == text("Hi", " there")[: len(outcome.chunks)]
        assert not outcome.is_whole or b'"finish_reason":"length"}]}' in CHAT[:num_bytes]


@pytest.mark.slow
@pytest.mark.timeout(60)
async def test_cut_at_any_byte_a_message_is_whole_only_with_its_message_stop(messages: Sdk) -> None:
    for num_bytes in range(0, len(MESSAGES), 3):
        outcome = await outcome_of(guard(messages(Reply((until_close(MESSAGES[:num_bytes]),)))))
        assert not outcome.is_whole or b'"type":"message_stop"}' in MESSAGES[:num_bytes]


async def test_errors_that_the_sdk_raises_in_band_are_classified_without_a_status(chat: Sdk, messages: Sdk) -> None:
    half = sse(
        choice({"content": "Half"}), {"error": {"type": "tokens", "code": "rate_limit_exceeded", "message": "slow"}}
    )
    outcome = await outcome_of(guard(chat(Reply((until_close(half),)))))
    assert (text("Half"), Category.RATE_LIMITED, False) == (
        outcome.chunks,
        outcome.error.category,
        outcome.error.retryable,
    )
    assert (outcome.error.message, outcome.error.status, outcome.error.provider) == ("slow", None, "openai-chat")
    busy = named({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})
    outcome = await outcome_of(guard(messages(Reply((until_close(busy),)))))
    assert (outcome.error.category, outcome.error.retryable, outcome.error.status) == (Category.OVERLOADED, True, None)
    assert (outcome.error.message, outcome.error.provider) == ("busy", "anthropic")


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        (
            refusal(401, b'{"error":{"code":"invalid_api_key","type":"authentication_error","message":"no"}}'),
            Verdict(Category.AUTH_INVALID, retryable=False),
        ),
        (
            refusal(429, b'{"error":{"type":"rate_limit_error","message":"slow"}}', "retry-after: 7"),
            Verdict(Category.RATE_LIMITED, retryable=True, retry_after_ms=7_000),
        ),
        (
            refusal(502, b"<html><body>bad gateway</body></html>", content_type="text/html"),
            Verdict(Category.SERVER_ERROR, retryable=True),
        ),
    ],
)
async def test_what_the_call_raises_is_classified(
    reply: Reply, verdict: Verdict, chat: Sdk, messages: Sdk, served: Provider
) -> None:
    for sdk, provider in ((chat, "openai-chat"), (messages, "anthropic")):
        error = (await outcome_of(guard(sdk(reply)))).error
        assert verdict == Verdict(error.category, error.retryable, error.retry_after_ms)
        assert (provider, int(reply.packets[0].split()[1])) == (error.provider, error.status)
        assert error.message
        assert "<" not in error.message
    assert len(served.requests) == 2


async def test_broken_transports_are_network(chat: Sdk, messages: Sdk) -> None:
    for reply in (Reply(()), Reply((chunked(b"", is_ended=False),))):
        for sdk in (chat, messages):
            error = (await outcome_of(guard(sdk(reply)))).error
            assert (error.category, error.retryable, error.status) == (Category.NETWORK, True, None)


async def test_every_way_to_hand_over_a_stream_works(served: Provider) -> None:
    served.url(Reply((with_length(MESSAGES),)), path="/v1/messages")
    fields = b'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m",'  # the helper insists on them
    served.url(Reply((with_length(CHAT.replace(b"data: {", fields)),)), path="/chat/completions")
    async with (
        anthropic.AsyncAnthropic(api_key="k", base_url=served.base, max_retries=0) as claude,
        openai.AsyncOpenAI(api_key="k", base_url=served.base, max_retries=0) as gpt,
    ):
        create = {"model": "m", "max_tokens": 9, "messages": []}
        for given in (
            await claude.messages.create(**create, stream=True),  # an open stream
            claude.messages.create(**create, stream=True),  # the coroutine that opens it
            asyncio.ensure_future(claude.messages.create(**create, stream=True)),
            lambda: claude.messages.create(**create, stream=True),
            claude.messages.stream(**create),  # the manager of the high-level helper
        ):
            outcome = await outcome_of(guard(given))
            assert ([*reasoning("hm"), *text("So")], None) == (outcome.chunks[:2], outcome.error)
        outcome = await outcome_of(guard(gpt.chat.completions.stream(model="m", messages=[])))
        assert (text("Hi", " there"), None) == (outcome.chunks, outcome.error)


async def test_iterated_without_a_block_it_works_too(chat: Sdk) -> None:
    assert text("Hi", " there") == [chunk async for chunk in guard(chat(Reply((with_length(CHAT),))))]


async def test_another_providers_dialect_is_read_through_the_openai_sdk(chat: Sdk) -> None:
    body = body_of("deepseek")
    outcome = await outcome_of(guard(chat(Reply((with_length(body),))), provider="deepseek"))
    assert [*reasoning("r"), *text("ok")] == outcome.chunks
    cut = sse(choice({}, "insufficient_system_resource"), DONE)
    error = (await outcome_of(guard(chat(Reply((with_length(cut),))), provider="deepseek"))).error
    assert (error.category, error.provider) == (Category.OVERLOADED, "deepseek")


async def test_silence_is_network(chat: Sdk) -> None:
    hanging = Reply((until_close(sse(choice({"content": "a"}))),), end="hang")
    outcome = await outcome_of(guard(chat(hanging), idle_timeout_s=0.2))
    assert (text("a"), Category.NETWORK, False) == (outcome.chunks, outcome.error.category, outcome.error.retryable)
    outcome = await outcome_of(guard(chat(Reply((), end="hang")), first_chunk_timeout_s=0.2))
    assert (outcome.error.category, outcome.error.retryable) == (Category.NETWORK, True)


async def test_what_was_never_read_is_closed(chat: Sdk, served: Provider) -> None:
    open_call = chat(Reply((until_close(sse(choice({"content": "a"}))),), end="hang"))
    for given in (open_call(), await open_call()):  # a coroutine that nobody awaited would warn, which fails the test
        async with guard(given):
            pass
    async with asyncio.timeout(5):
        await served.was_left.wait()


async def test_what_is_no_stream_of_an_async_client_is_refused(served: Provider) -> None:
    with pytest.raises(TypeError, match="async client, got list"):
        guard([])
    with pytest.raises(ValueError, match="unknown dialect 'nobody'"):
        guard(lambda: None, provider="nobody")
    outcome: Outcome = await outcome_of(guard(lambda: asyncio.sleep(0, "an answer that was not streamed")))
    assert Category.INVALID_REQUEST is outcome.error.category
    assert "stream=True" in outcome.error.message
