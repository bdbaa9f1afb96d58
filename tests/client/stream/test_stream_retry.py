"""The one retry policy: only what is retryable, only before the first chunk, as long as the provider asks to wait."""

import asyncio
import time

import httpx
import pytest

from client.stream.frames import DONE, choice, sse, text
from client.stream.outcome import outcome_of
from client.stream.provider import Provider, Reply, refusal, with_length
from compass.failures import Category
from compass.stream import ModelStreamError, Retry, open_stream, retrying

WHOLE = Reply((with_length(sse(choice({"content": "ok"}, "stop"), DONE)),))
EMPTY = Reply((with_length(sse(DONE)),))
BUSY = refusal(503, b"")
BAD_KEY = refusal(401, b'{"error":{"code":"invalid_api_key","message":"no"}}')
CUT = Reply((with_length(sse(choice({"content": "half"}))),))


def again(url: str, client: httpx.AsyncClient, **kwargs: object):
    kwargs = {"first_wait_s": 0.01, **kwargs}
    return retrying(lambda: open_stream("openai-chat", url=url, json={"model": "m"}, client=client), **kwargs)


async def test_what_is_retryable_is_tried_again_until_it_succeeds(served: Provider, client: httpx.AsyncClient) -> None:
    stream = again(served.url(BUSY, EMPTY, WHOLE), client)
    outcome = await outcome_of(stream)
    assert (text("ok"), None) == (outcome.chunks, outcome.error)
    assert len(served.requests) == 3
    assert (stream.answer.provider, stream.answer.model, stream.answer.stop_reason) == ("openai-chat", "m", "stop")


async def test_after_the_last_attempt_its_own_error_is_raised(served: Provider, client: httpx.AsyncClient) -> None:
    error = (await outcome_of(again(served.url(EMPTY, BUSY), client, max_attempts=3))).error
    assert (error.category, error.status) == (Category.OVERLOADED, 503)
    assert len(served.requests) == 3


async def test_what_is_not_retryable_is_not_tried_again(served: Provider, client: httpx.AsyncClient) -> None:
    assert (await outcome_of(again(served.url(BAD_KEY), client))).error.category is Category.AUTH_INVALID
    assert len(served.requests) == 1


async def test_after_the_first_chunk_nothing_is_tried_again(served: Provider, client: httpx.AsyncClient) -> None:
    outcome = await outcome_of(again(served.url(BUSY, CUT, WHOLE), client))
    assert (text("half"), False) == (outcome.chunks, outcome.error.retryable)
    assert len(served.requests) == 2


async def test_without_retrying_one_call_is_one_request(served: Provider, client: httpx.AsyncClient) -> None:
    await outcome_of(open_stream("openai-chat", url=served.url(BUSY, WHOLE), client=client))
    assert len(served.requests) == 1


async def test_the_wait_is_what_the_provider_asks_for(served: Provider, client: httpx.AsyncClient) -> None:
    stream = again(served.url(refusal(429, b"", "retry-after-ms: 300"), WHOLE), client)
    retries: list[Retry] = []

    async def note(retry: Retry) -> None:
        retries.append(retry)

    stream.on_retry = note
    began = time.monotonic()
    assert (await outcome_of(stream)).is_whole
    assert time.monotonic() - began >= 0.3
    (retry,) = retries
    assert (retry.number, retry.max_retries, retry.failure.category) == (1, 3, Category.RATE_LIMITED)
    assert 0.3 <= retry.wait_s <= 0.33


async def test_waits_that_nobody_asked_for_are_random_below_a_bound_that_doubles(
    served: Provider, client: httpx.AsyncClient
) -> None:
    waits: list[list[float]] = []
    for _ in range(5):
        stream = again(served.url(BUSY), client, max_attempts=4, first_wait_s=0.02, max_wait_s=0.04)
        waits.append([])

        async def note(retry: Retry) -> None:
            waits[-1].append(retry.wait_s)

        stream.on_retry = note
        await outcome_of(stream)
    for first, second, third in waits:
        assert first <= 0.02
        assert max(second, third) <= 0.04
    assert len({wait for series in waits for wait in series}) > 5


async def test_a_provider_that_asks_for_too_long_a_wait_is_not_waited_for(
    served: Provider, client: httpx.AsyncClient
) -> None:
    stream = again(served.url(refusal(429, b"", "retry-after: 61"), WHOLE), client)
    async with asyncio.timeout(5):
        error = (await outcome_of(stream)).error
    assert (error.retryable, error.retry_after_ms) == (True, 61_000)
    assert len(served.requests) == 1


async def test_a_failed_retrying_stream_raises_again_and_sends_nothing_more(
    served: Provider, client: httpx.AsyncClient
) -> None:
    stream = again(served.url(BAD_KEY), client)
    await outcome_of(stream)
    with pytest.raises(ModelStreamError):
        await anext(stream)
    assert len(served.requests) == 1


async def test_max_attempts_must_be_positive() -> None:
    with pytest.raises(ValueError, match="max_attempts"):
        retrying(lambda: open_stream("openai-chat", url="http://127.0.0.1:9/"), max_attempts=0)
