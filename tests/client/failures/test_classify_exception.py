import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anthropic
import httpx
import openai
import pytest
from classification_rows import ROWS, Row

from compass.failures import Category, Verdict, classify_exception

C = Category


@dataclass
class Answer:
    """What the loopback server says to the next request."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    is_cut: bool = False


class Server(ThreadingHTTPServer):
    daemon_threads = True
    answer = Answer()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        answer = self.server.answer
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(answer.status)
        for name, value in {"content-type": "application/json", **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(answer.body) + (100 if answer.is_cut else 0)))
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(answer.body)
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def server(running: Server) -> Server:
    running.answer = Answer()
    return running


def raised(call) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever the SDK makes of it
        call()
    return caught.value


@pytest.fixture(scope="module")
def openai_client(running: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=running.url, api_key="k", max_retries=0, timeout=5) as client:
        yield client


@pytest.fixture(scope="module")
def anthropic_client(running: Server) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=running.url, api_key="k", max_retries=0, timeout=5) as client:
        yield client


def ask_openai(client: openai.OpenAI, *, stream: bool = False) -> None:
    answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}], stream=stream)
    if stream:
        list(answer)


def ask_anthropic(client: anthropic.Anthropic, *, stream: bool = False) -> None:
    messages = [{"role": "user", "content": "hi"}]
    answer = client.messages.create(model="m", max_tokens=1, messages=messages, stream=stream)
    if stream:
        list(answer)


def ask_httpx(server: Server) -> None:
    httpx.post(server.url, json={}).raise_for_status()


def is_http(row: Row, *providers: str) -> bool:
    return row.provider in providers and row.status is not None


@pytest.mark.parametrize("row", [r for r in ROWS if is_http(r, "openai-chat")], ids=lambda row: row.name)
def test_an_exception_of_the_openai_sdk_is_classified_like_the_response(row, server, openai_client):
    server.answer = Answer(row.status, row.text.encode(), row.headers)
    verdict = Verdict(row.category, row.retryable, row.wait_ms)
    assert classify_exception(raised(lambda: ask_openai(openai_client))) == verdict
    assert classify_exception(raised(lambda: ask_openai(openai_client, stream=True))) == verdict


@pytest.mark.parametrize("row", [r for r in ROWS if is_http(r, "anthropic")], ids=lambda row: row.name)
def test_an_exception_of_the_anthropic_sdk_is_classified_like_the_response(row, server, anthropic_client):
    server.answer = Answer(row.status, row.text.encode(), row.headers)
    assert classify_exception(raised(lambda: ask_anthropic(anthropic_client))) == Verdict(
        row.category, row.retryable, row.wait_ms
    )


@pytest.mark.parametrize("row", [r for r in ROWS if r.status is not None], ids=lambda row: row.name)
def test_an_exception_of_httpx_is_classified_like_the_response(row, server):
    server.answer = Answer(row.status, row.text.encode(), row.headers)
    verdict = classify_exception(raised(lambda: ask_httpx(server)), provider=row.provider)
    assert verdict == Verdict(row.category, row.retryable, row.wait_ms)


def test_an_in_band_error_that_the_openai_sdk_raises_has_its_code(server, openai_client):
    server.answer = Answer(
        200, b'data: {"error":{"type":"insufficient_quota","message":"x"}}\n\n', {"content-type": "text/event-stream"}
    )
    failure = raised(lambda: ask_openai(openai_client, stream=True))
    assert type(failure) is openai.APIError
    assert classify_exception(failure).category is C.QUOTA_EXHAUSTED


def test_an_in_band_error_that_the_anthropic_sdk_raises_at_status_200_has_its_type(server, anthropic_client):
    frame = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"x"}}\n\n'
    server.answer = Answer(200, frame, {"content-type": "text/event-stream"})
    failure = raised(lambda: ask_anthropic(anthropic_client, stream=True))
    assert failure.status_code == 200
    assert classify_exception(failure) == Verdict(C.OVERLOADED, retryable=True)


def test_a_stream_that_breaks_under_an_sdk_is_a_network_failure(server, openai_client):
    frame = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\n'
    server.answer = Answer(200, frame, {"content-type": "text/event-stream"}, is_cut=True)
    assert classify_exception(raised(lambda: ask_openai(openai_client, stream=True))) == Verdict(
        C.NETWORK, retryable=True
    )


def unused_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.parametrize(
    "ask",
    [
        lambda url: openai.OpenAI(base_url=url, api_key="k", max_retries=0).models.list(),
        lambda url: anthropic.Anthropic(base_url=url, api_key="k", max_retries=0).models.list(),
        httpx.get,
    ],
    ids=["openai", "anthropic", "httpx"],
)
def test_no_answer_at_all_is_a_network_failure(ask):
    failure = raised(lambda: ask(f"http://127.0.0.1:{unused_port()}"))
    assert classify_exception(failure) == Verdict(C.NETWORK, retryable=True)


def test_our_own_timeout_is_a_network_failure():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert classify_exception(raised(lambda: httpx.get(url, timeout=0.05))).category is C.NETWORK


def test_a_response_that_was_never_read_is_classified_by_its_status():
    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(429, stream=httpx.ByteStream(b"{}"), headers={"retry-after": "2"})

    def ask() -> None:
        with httpx.Client(transport=httpx.MockTransport(answer)).stream("GET", "http://h") as response:
            response.raise_for_status()

    assert classify_exception(raised(ask)) == Verdict(C.RATE_LIMITED, retryable=True, retry_after_ms=2_000)


@pytest.mark.parametrize(
    ("failure", "category"),
    [
        (httpx.DecodingError("bad gzip"), C.MALFORMED_RESPONSE),
        (httpx.RemoteProtocolError("peer closed"), C.NETWORK),
        (httpx.ReadError(""), C.NETWORK),
        (ConnectionResetError(104, "reset"), C.NETWORK),
        (TimeoutError(), C.NETWORK),
        (socket.gaierror(-2, "Name or service not known"), C.NETWORK),
        (asyncio.IncompleteReadError(b"", 5), C.NETWORK),
        (json.JSONDecodeError("Expecting value", "", 0), C.MALFORMED_RESPONSE),
        (ValueError("the flux capacitor is out of tune"), C.UNKNOWN),
        (ValueError("429 Rate limit reached"), C.RATE_LIMITED),
        (KeyError("choices"), C.UNKNOWN),
    ],
    ids=repr,
)
def test_an_exception_without_an_answer_is_known_by_its_classes(failure, category):
    verdict = classify_exception(failure)
    assert verdict.category is category
    assert verdict.retryable is category.retryable


# The shapes of SDKs that are not installed here, as they are built: what counts is the structure.


def sdk_error(package: str, name: str, **facts: object) -> Exception:
    failure = type(name, (Exception,), {"__module__": f"{package}.errors"})(str(facts.pop("text", "failed")))
    for fact, value in facts.items():
        setattr(failure, fact, value)
    return failure


@pytest.mark.parametrize(
    ("failure", "category"),
    [
        (
            sdk_error(
                "google.genai",
                "ClientError",
                code=429,
                status="RESOURCE_EXHAUSTED",
                details={"error": {"code": 429, "details": [{"violations": [{"quotaId": "XPerDayY"}]}]}},
            ),
            C.QUOTA_EXHAUSTED,
        ),
        (sdk_error("google.genai", "ServerError", code=503, status="UNAVAILABLE", details={}), C.OVERLOADED),
        (
            sdk_error("cohere", "BadRequestError", status_code=400, body={"message": "too many tokens: 5"}, headers={}),
            C.CONTEXT_TOO_LONG,
        ),
        (sdk_error("mistralai", "SDKError", status_code=429, body='{"code":"3505","message":"no"}'), C.OVERLOADED),
        (
            sdk_error("groq", "APIStatusError", status_code=413, body={"error": {"code": "rate_limit_exceeded"}}),
            C.INVALID_REQUEST,
        ),
        (
            sdk_error("together", "PermissionDeniedError", status_code=403, body={"error": {"message": "no"}}),
            C.CONTEXT_TOO_LONG,
        ),
        (sdk_error("ollama", "ResponseError", status_code=404, error="model 'x' not found"), C.MODEL_NOT_FOUND),
        (sdk_error("ollama", "ResponseError", status_code=-1, error="it broke"), C.SERVER_ERROR),
        (sdk_error("openai", "APIError", code="rate_limit_exceeded", body=None), C.RATE_LIMITED),
    ],
    ids=lambda value: type(value).__module__ if isinstance(value, Exception) else value.name,
)
def test_exceptions_of_other_sdks_are_told_by_their_structure(failure, category):
    assert classify_exception(failure).category is category


def test_the_cause_decides_when_the_exception_itself_says_nothing():
    failed = RuntimeError("agent step failed")
    failed.__cause__ = httpx.ConnectError("refused")
    assert classify_exception(failed).category is C.NETWORK
    hidden = RuntimeError("agent step failed")
    hidden.__context__, hidden.__suppress_context__ = httpx.ConnectError("refused"), True
    assert classify_exception(hidden).category is C.UNKNOWN
    assert classify_exception(ExceptionGroup("both", [ValueError("x"), TimeoutError()])).category is C.NETWORK


def test_an_endless_chain_ends():
    first, second = RuntimeError("a"), RuntimeError("b")
    first.__cause__, second.__cause__ = second, first
    assert classify_exception(first).category is C.UNKNOWN


def test_an_error_that_carries_its_verdict_keeps_it():
    failure = sdk_error("compass.stream", "ModelStreamError", category=C.OVERLOADED, retryable=False, retry_after_ms=5)
    assert classify_exception(failure) == Verdict(C.OVERLOADED, retryable=False, retry_after_ms=5)


@pytest.mark.parametrize("abort", [asyncio.CancelledError(), GeneratorExit(), KeyboardInterrupt()])
def test_an_abort_is_never_classified(abort):
    with pytest.raises(TypeError, match="abort"):
        classify_exception(abort)


async def test_a_cancellation_inside_a_chain_is_no_evidence():
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0):
            await asyncio.Event().wait()
    failure = RuntimeError("stopped")
    failure.__cause__ = asyncio.CancelledError("429 rate limit")
    assert classify_exception(failure).category is C.UNKNOWN


def test_no_sdk_is_imported():
    code = (
        "import sys, compass.failures\n"
        "assert not {'httpx', 'httpx2', 'openai', 'anthropic', 'google.genai'} & set(sys.modules), sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})
