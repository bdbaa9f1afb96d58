"""One request over real HTTP: refusals, broken transports, limits on waiting, and who closes what."""

import asyncio
import gzip
import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from client.stream.frames import DONE, ERROR_TEXT, choice, sse, text
from client.stream.outcome import outcome_of
from client.stream.provider import Provider, Reply, chunked, head, refusal, until_close, with_length
from compass.failures import Category, Verdict
from compass.stream import ModelStreamError, StreamClosedError, Usage, open_stream

CLIENT = str(Path(__file__).parents[3] / "client")
WHOLE = sse(choice({"content": "ok"}, "stop"), DONE)
PAGE = b"<!DOCTYPE html><html><body><h1>Bad gateway</h1>" + b"x" * 300_000
FIRST = sse(choice({"content": "a"}))


def chat(url: str, client: httpx.AsyncClient | None = None, **kwargs: object):
    return open_stream("openai-chat", url=url, json={"model": "gpt", "stream": True}, client=client, **kwargs)


@pytest.mark.parametrize(
    ("dialect", "reply", "verdict"),
    [
        (
            "openai-chat",
            refusal(401, b'{"error":{"code":"invalid_api_key","message":"no"}}'),
            Verdict(Category.AUTH_INVALID, retryable=False),
        ),
        (
            "openai-chat",
            refusal(
                429,
                b'{"error":{"code":"rate_limit_exceeded","message":"slow"}}',
                "retry-after-ms: 1200",
                "retry-after: 2",
            ),
            Verdict(Category.RATE_LIMITED, retryable=True, retry_after_ms=1_200),
        ),
        ("openai-chat", refusal(503, b"", content_type="text/plain"), Verdict(Category.OVERLOADED, retryable=True)),
        (
            "anthropic",
            refusal(529, b'{"type":"error","error":{"type":"overloaded_error","message":"busy"}}'),
            Verdict(Category.OVERLOADED, retryable=True),
        ),
        (
            "gemini",
            refusal(403, b'[{"error":{"status":"PERMISSION_DENIED","message":"no"}}]'),
            Verdict(Category.PERMISSION_DENIED, retryable=False),
        ),
        ("groq", refusal(502, PAGE, content_type="text/html"), Verdict(Category.SERVER_ERROR, retryable=True)),
        (
            "copilot",
            refusal(401, b"unauthorized: token expired", content_type="text/plain"),
            Verdict(Category.AUTH_INVALID, retryable=False),
        ),
        (
            "mistral",
            refusal(422, b'{"detail":[{"loc":["body"],"msg":"bad","type":"x"}]}'),
            Verdict(Category.INVALID_REQUEST, retryable=False),
        ),
        (
            "ollama",
            refusal(404, b'{"error":"model \'x\' not found"}'),
            Verdict(Category.MODEL_NOT_FOUND, retryable=False),
        ),
        ("openai-compatible", refusal(418, b""), Verdict(Category.UNKNOWN, retryable=False)),
        ("openai-chat", refusal(302, b"", "location: http://127.0.0.1:1/"), Verdict(Category.UNKNOWN, retryable=False)),
    ],
)
async def test_an_unsuccessful_response_is_classified_by_status_headers_and_body(
    dialect: str, reply: Reply, verdict: Verdict, served: Provider, client: httpx.AsyncClient
) -> None:
    error = (await outcome_of(open_stream(dialect, url=served.url(reply), client=client))).error
    assert verdict == Verdict(error.category, error.retryable, error.retry_after_ms)
    assert (dialect, int(reply.packets[0].split()[1])) == (error.provider, error.status)
    assert error.message
    assert "<" not in error.message
    assert len(error.message.encode()) <= 2_048


async def test_what_a_refusal_says_is_redacted_and_readable(served: Provider, client: httpx.AsyncClient) -> None:
    body = {
        "error": {
            "code": "invalid_api_key",
            "message": "Incorrect API key provided: sk-proj-abcdefghijklmnop1234567890",
        }
    }
    error = (await outcome_of(chat(served.url(refusal(401, json.dumps(body).encode())), client))).error
    assert error.message.startswith("Incorrect API key provided: ")
    assert "abcdefghijklmnop" not in f"{error!r} {error} {error.message}"


async def test_a_refusal_whose_body_breaks_off_keeps_what_status_and_headers_say(
    served: Provider, client: httpx.AsyncClient
) -> None:
    cut = head(status=429, headers=("content-length: 500", "retry-after: 3")) + b'{"error":{"message":"sl'
    for end in ("close", "reset"):
        error = (await outcome_of(chat(served.url(Reply((cut,), end=end)), client))).error
        assert (
            error.category, error.retryable, error.retry_after_ms, error.status,
        ) == (Category.RATE_LIMITED, True, 3_000, 429)  # fmt: skip


async def test_a_refusal_whose_body_never_comes_is_not_waited_for_for_ever(
    served: Provider, client: httpx.AsyncClient
) -> None:
    hanging = Reply((head(status=503, headers=("content-length: 500",)),), end="hang")
    error = (await outcome_of(chat(served.url(hanging), client, idle_timeout_s=0.1))).error
    assert (error.category, error.status) == (Category.OVERLOADED, 503)


async def test_row_120_a_refused_connection_is_network(client: httpx.AsyncClient) -> None:
    error = (await outcome_of(chat("http://127.0.0.1:9/", client))).error
    assert (error.category, error.retryable, error.status) == (Category.NETWORK, True, None)


@pytest.mark.parametrize(
    ("reply", "retryable"),
    [
        (Reply(()), True),  # no response at all
        (Reply((), end="reset"), True),
        (Reply((chunked(b"", is_ended=False),)), True),
        (Reply((chunked(FIRST, is_ended=False),)), False),
        (Reply((head(headers=("content-length: 1000",)) + FIRST,)), False),
    ],
)
async def test_a_broken_transport_is_network_and_retryable_only_before_the_first_chunk(
    reply: Reply, retryable: bool, served: Provider, client: httpx.AsyncClient
) -> None:
    error = (await outcome_of(chat(served.url(reply), client))).error
    assert (Category.NETWORK, retryable, None) == (error.category, error.retryable, error.status)


async def test_row_128_a_reset_in_the_body_is_network(served: Provider, client: httpx.AsyncClient) -> None:
    reply = Reply((until_close(FIRST), b": more\n"), end="reset", pause_s=0.05)
    outcome = await outcome_of(chat(served.url(reply), client))
    assert (text("a"), Category.NETWORK, False) == (outcome.chunks, outcome.error.category, outcome.error.retryable)


async def test_row_129_silence_longer_than_the_idle_limit_is_network(
    served: Provider, client: httpx.AsyncClient
) -> None:
    reply = Reply((until_close(FIRST),), end="hang")
    outcome = await outcome_of(chat(served.url(reply), client, idle_timeout_s=0.1))
    assert (text("a"), Category.NETWORK, False) == (outcome.chunks, outcome.error.category, outcome.error.retryable)
    assert outcome.error.message == "nothing came for 0.1 s"


async def test_comments_reset_the_idle_limit(served: Provider, client: httpx.AsyncClient) -> None:
    reply = Reply((until_close(b""), *[b": keep-alive\n\n"] * 8, WHOLE), pause_s=0.1)
    outcome = await outcome_of(chat(served.url(reply), client, idle_timeout_s=0.5))
    assert (text("ok"), None) == (outcome.chunks, outcome.error)


async def test_comments_do_not_reset_the_limit_on_the_first_chunk(served: Provider, client: httpx.AsyncClient) -> None:
    reply = Reply((until_close(b""), *[b": keep-alive\n\n"] * 100), end="hang", pause_s=0.02)
    error = (await outcome_of(chat(served.url(reply), client, first_chunk_timeout_s=0.3))).error
    assert (error.category, error.retryable) == (Category.NETWORK, True)
    assert error.message == "no chunk came within 0.3 s"


async def test_the_limit_on_the_first_chunk_holds_before_there_is_a_response(
    served: Provider, client: httpx.AsyncClient
) -> None:
    error = (await outcome_of(chat(served.url(Reply((), end="hang")), client, first_chunk_timeout_s=0.1))).error
    assert (error.category, error.retryable) == (Category.NETWORK, True)


async def test_the_limit_on_the_first_chunk_does_not_hold_after_it(served: Provider, client: httpx.AsyncClient) -> None:
    reply = Reply((until_close(FIRST), *[b": keep-alive\n\n"] * 6, WHOLE), pause_s=0.05)
    outcome = await outcome_of(chat(served.url(reply), client, first_chunk_timeout_s=0.2))
    assert outcome.is_whole


async def test_the_time_that_the_reader_takes_counts_for_no_limit(served: Provider, client: httpx.AsyncClient) -> None:
    reply = Reply((until_close(FIRST), WHOLE))
    async with chat(served.url(reply), client, first_chunk_timeout_s=0.3, idle_timeout_s=0.3) as chunks:
        async for _ in chunks:
            await asyncio.sleep(0.4)


async def test_a_limit_of_the_callers_own_client_holds_and_httpx_default_does_not(served: Provider) -> None:
    url = served.url(Reply((with_length(WHOLE),)))
    limits: list[object] = []

    async def note(request: httpx.Request) -> None:
        limits.append(request.extensions["timeout"]["read"])

    for own in ({}, {"timeout": 7}, {"timeout": None}):
        async with httpx.AsyncClient(verify=False, event_hooks={"request": [note]}, **own) as client:
            assert (await outcome_of(chat(url, client))).is_whole
    assert limits == [None, 7, None]


async def test_a_limit_of_httpx_that_passes_is_network(served: Provider) -> None:
    async with httpx.AsyncClient(verify=False, timeout=0.1) as impatient:
        error = (await outcome_of(chat(served.url(Reply((), end="hang")), impatient))).error
    assert (error.category, error.retryable) == (Category.NETWORK, True)


async def test_limits_must_be_positive() -> None:
    for name in ("first_chunk_timeout_s", "idle_timeout_s"):
        with pytest.raises(ValueError, match=name):
            chat("http://127.0.0.1:9/", **{name: 0})


async def test_the_request_is_one_post_with_the_callers_headers_and_json(
    served: Provider, client: httpx.AsyncClient
) -> None:
    url = served.url(Reply((with_length(WHOLE),)))
    stream = open_stream(
        "openai-chat", url=url, headers={"Authorization": "Bearer k", "Accept": "*/*"}, json={"a": "é"}, client=client,
    )  # fmt: skip
    assert (await outcome_of(stream)).is_whole
    (request,) = served.requests
    assert request.startswith(b"POST ")
    assert b"\r\nAuthorization: Bearer k\r\n" in request
    assert request.lower().count(b"\r\naccept: ") == 1
    assert json.loads(request.partition(b"\r\n\r\n")[2]) == {"a": "é"}


async def test_a_redirect_is_not_followed_whatever_the_client_was_made_for(served: Provider) -> None:
    elsewhere = served.url(Reply((with_length(WHOLE),)))
    moved = head(status=307, headers=(f"location: {elsewhere}", "content-length: 0"))
    async with httpx.AsyncClient(verify=False, follow_redirects=True) as client:
        outcome = await outcome_of(chat(served.url(Reply((moved,))), client))
    assert outcome.error is not None
    assert outcome.error.status == 307
    assert len(served.requests) == 1


async def test_a_client_that_is_passed_in_stays_open_and_its_connection_is_given_back(
    served: Provider, client: httpx.AsyncClient
) -> None:
    for reply in (Reply((with_length(WHOLE),)), Reply((until_close(FIRST),), end="hang")):
        async with chat(served.url(reply), client) as chunks:
            async for _ in chunks:
                break
        assert not client.is_closed
        assert not client._transport._pool.connections


async def test_without_a_client_one_is_made_and_closed(served: Provider) -> None:
    assert (await outcome_of(chat(served.url(Reply((with_length(WHOLE),)))))).is_whole


async def test_leaving_the_block_early_lets_go_of_the_response(served: Provider, client: httpx.AsyncClient) -> None:
    async with chat(served.url(Reply((until_close(FIRST),), end="hang")), client) as chunks:
        await anext(chunks)
    async with asyncio.timeout(5):
        await served.was_left.wait()


async def test_a_stream_that_was_left_never_looks_finished(served: Provider, client: httpx.AsyncClient) -> None:
    stream = chat(served.url(Reply((with_length(FIRST + WHOLE),))), client)
    await anext(stream)
    await stream.aclose()
    with pytest.raises(StreamClosedError):
        await anext(stream)


async def test_a_failed_stream_raises_the_same_error_when_it_is_read_again(
    served: Provider, client: httpx.AsyncClient
) -> None:
    stream = chat(served.url(Reply((with_length(FIRST),))), client)
    first = (await outcome_of(stream)).error
    again = (await outcome_of(stream)).error
    assert first is again
    assert len(served.requests) == 1


async def test_a_finished_stream_stays_finished(served: Provider, client: httpx.AsyncClient) -> None:
    stream = chat(served.url(Reply((with_length(WHOLE),))), client)
    assert (await outcome_of(stream)).is_whole
    await stream.aclose()
    assert [chunk async for chunk in stream] == []


async def test_what_comes_after_the_end_mark_is_not_waited_for(served: Provider, client: httpx.AsyncClient) -> None:
    reply = Reply((until_close(WHOLE + sse({"error": {"message": ERROR_TEXT}})),), end="hang")
    async with asyncio.timeout(5):
        assert (await outcome_of(chat(served.url(reply), client))).is_whole


async def test_a_lenient_end_takes_a_stop_reason_and_a_clean_end(served: Provider, client: httpx.AsyncClient) -> None:
    stopped = sse(choice({"content": "ok"}, "stop"), {"choices": [], "usage": {"prompt_tokens": 1}})
    for body, is_whole in ((stopped, True), (FIRST, False), (stopped + FIRST, False), (sse(choice({}, "stop")), False)):
        outcome = await outcome_of(chat(served.url(Reply((with_length(body),))), client, lenient_end=True))
        assert outcome.is_whole == is_whole, body
    assert not (await outcome_of(chat(served.url(Reply((with_length(stopped),))), client))).is_whole
    assert not (
        await outcome_of(chat(served.url(Reply((chunked(stopped, is_ended=False),))), client, lenient_end=True))
    ).is_whole


async def test_a_lenient_end_takes_a_cut_frame_after_the_answer_is_over(
    served: Provider, client: httpx.AsyncClient
) -> None:
    body = sse(choice({"content": "ok"}, "stop")) + b'data: {"choices":[],"usa'
    outcome = await outcome_of(chat(served.url(Reply((until_close(body),))), client, lenient_end=True))
    assert outcome.is_whole
    assert not (await outcome_of(chat(served.url(Reply((until_close(body),))), client))).is_whole


async def test_a_compressed_body_is_read_and_a_corrupt_one_is_malformed(
    served: Provider, client: httpx.AsyncClient
) -> None:
    compressed = gzip.compress(WHOLE)
    whole = Reply((until_close(compressed, headers=("content-encoding: gzip",)),))
    assert (await outcome_of(chat(served.url(whole), client))).is_whole
    corrupt = Reply((until_close(WHOLE, headers=("content-encoding: gzip",)),))
    error = (await outcome_of(chat(served.url(corrupt), client))).error
    assert (error.category, error.retryable) == (Category.MALFORMED_RESPONSE, False)


async def test_the_answer_tells_model_stop_reason_and_usage(served: Provider, client: httpx.AsyncClient) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 8}}
    body = sse({"model": "gpt-0601", **choice({"content": "ok"}, "length")}, {"choices": [], "usage": usage}, DONE)
    stream = chat(served.url(Reply((with_length(body),))), client)
    await outcome_of(stream)
    answer = stream.answer
    assert (answer.provider, answer.model, answer.stop_reason) == ("openai-chat", "gpt", "length")
    assert Usage(input_tokens=2, output_tokens=4, cache_read_tokens=8) == answer.usage


async def test_what_the_caller_got_wrong_is_told_at_once_by_its_own_exception() -> None:
    with pytest.raises(ValueError, match="unknown dialect 'openai'; there are anthropic, cohere"):
        open_stream("openai", url="http://127.0.0.1:9/")
    with pytest.raises(TypeError):
        open_stream("openai-chat", url="http://127.0.0.1:9/", json={"a": object()})
    with pytest.raises(httpx.InvalidURL):
        open_stream("openai-chat", url="http://[::1")


async def test_no_traceback_shows_what_the_transport_said(served: Provider, client: httpx.AsyncClient) -> None:
    with pytest.raises(ModelStreamError) as caught:
        async for _ in chat(served.url(Reply(())), client):
            pass
    assert caught.value.__suppress_context__
    assert isinstance(caught.value.__context__, httpx.RemoteProtocolError)


def test_importing_compass_needs_neither_httpx_nor_tenacity_and_using_them_names_the_extra() -> None:
    code = """
import sys
sys.modules["httpx"] = sys.modules["tenacity"] = None
import compass, compass.stream as stream
for use in (lambda: stream.open_stream("openai-chat", url="http://x/"), lambda: stream.retrying(lambda: None)):
    try:
        use()
    except ImportError as error:
        print(error)
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": CLIENT}
    )
    assert ran.stdout.splitlines() == [
        f"compass.stream needs {name}: pip install 'compass-trace[stream]'" for name in ("httpx", "tenacity")
    ]
