"""A provider's stream over real HTTP: one request, its response read by the dialect's framing and table.

Needs httpx, which the extra `stream` brings; importing this module does not.
"""

import json as json_text
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, cast

from compass.failures import Category
from compass.stream.chunks import Answer, Chunk
from compass.stream.contract import ChunkStream, keep
from compass.stream.dialects import Dialect, dialect_named
from compass.stream.errors import ModelStreamError, failure, reported
from compass.stream.extras import required
from compass.stream.framing import Framing, RawEvent
from compass.stream.patience import FIRST_CHUNK_TIMEOUT_S, IDLE_TIMEOUT_S, Patience
from compass.stream.reader import AnswerReader

if TYPE_CHECKING:
    import httpx

MAX_ERROR_BODY_BYTES = 256 * 1024
"""How much of an unsuccessful response is read: its error fits, the rest of a page is not needed."""
_ACCEPT = {Framing.SSE: "text/event-stream", Framing.NDJSON: "application/x-ndjson"}


def open_stream(
    dialect: str,
    *,
    url: str,
    headers: Mapping[str, str] | None = None,
    json: object = None,
    client: "httpx.AsyncClient | None" = None,
    first_chunk_timeout_s: float | None = FIRST_CHUNK_TIMEOUT_S,
    idle_timeout_s: float | None = IDLE_TIMEOUT_S,
    lenient_end: bool = False,
) -> ChunkStream:
    """Stream an answer from a provider.

        async with open_stream("openai-chat", url=..., headers=..., json=...) as chunks:
            async for chunk in chunks: ...

    Sends one POST of `json` to `url`, the whole endpoint, when the first chunk is asked for, and never a second one.
    `dialect` is one of `DIALECTS`. A `client` that is passed in stays open; limits of its own hold too. The two limits
    bound waiting, None lifts one; comments reset the second only. `lenient_end` takes a stop reason and a clean end of
    the body for the end mark, for servers that leave it out.
    """
    httpx = _httpx()
    table = dialect_named(dialect)
    # What the caller got wrong is told here, by its own exception: only what happens on the wire is a ModelStreamError.
    call = _Call(
        dialect=table,
        url=httpx.URL(url),
        headers=_headers(table, headers),
        content=b"" if json is None else json_text.dumps(json, allow_nan=False).encode(),
        client=client,
        patience=Patience(first_chunk_timeout_s=first_chunk_timeout_s, idle_timeout_s=idle_timeout_s),
        lenient_end=lenient_end,
    )
    model = json.get("model") if isinstance(json, Mapping) else None
    answer = Answer(provider=table.name, model=model if isinstance(model, str) else None)
    return ChunkStream(keep(_chunks(call, answer), answer), answer)


def _headers(dialect: Dialect, headers: Mapping[str, str] | None) -> "httpx.Headers":
    merged: httpx.Headers = _httpx().Headers({"accept": _ACCEPT[dialect.framing], "content-type": "application/json"})
    merged.update(headers)
    return merged


@dataclass(frozen=True, slots=True)
class _Call:
    dialect: Dialect
    url: "httpx.URL"
    headers: "httpx.Headers"
    content: bytes
    client: "httpx.AsyncClient | None"
    patience: Patience
    lenient_end: bool


async def _chunks(call: _Call, answer: Answer) -> AsyncGenerator[Chunk, None]:
    reader = AnswerReader(call.dialect, answer, lenient_end=call.lenient_end)
    async with aclosing(_events(call)) as events:
        async for event in events:
            for chunk in reader.read_event(event):
                call.patience.chunk_came()
                yield chunk
            if reader.is_over:
                return
    reader.close()


async def _events(call: _Call) -> AsyncGenerator[RawEvent, None]:
    decoder = call.dialect.framing.decoder()
    async with _body(call) as body:
        while data := await call.patience.wait(anext(body, b"")):
            for event in decoder.feed(data):
                yield event
    for event in decoder.close():
        yield event
    if decoder.is_foreign:
        raise failure(Category.MALFORMED_RESPONSE, f"the response is not {call.dialect.framing.value}")


@asynccontextmanager
async def _body(call: _Call) -> AsyncIterator[AsyncGenerator[bytes, None]]:
    """Send the request; give the body of its response, or raise what an unsuccessful one reports."""
    call.patience.begin()
    async with _usable(call.client) as client:
        request = client.build_request(
            "POST", call.url, headers=call.headers, content=call.content, timeout=_limits(client)
        )
        response = await call.patience.wait(client.send(request, stream=True, follow_redirects=False))
        try:
            if not response.is_success:
                raise await _refusal(call, response)
            async with _pieces(response) as body:
                yield body
        finally:
            await response.aclose()


async def _refusal(call: _Call, response: "httpx.Response") -> ModelStreamError:
    body = bytearray()
    # A body that breaks off, or never comes, takes nothing from what the status and the headers say.
    with suppress(_httpx().HTTPError, ModelStreamError):
        async with _pieces(response) as pieces:
            while len(body) < MAX_ERROR_BODY_BYTES and (data := await call.patience.wait(anext(pieces, b""))):
                body += data
    return reported(call.dialect.name, _decoded(bytes(body)), status=response.status_code, headers=response.headers)


def _decoded(body: bytes) -> object:
    text = body.decode(errors="replace").strip()
    try:
        return json_text.loads(text)
    except (ValueError, RecursionError):
        return text


def _pieces(response: "httpx.Response") -> "aclosing[AsyncGenerator[bytes, None]]":
    """Read a body, its content encoding undone. Typed as an iterator by httpx, it is a generator, to be closed."""
    return aclosing(cast("AsyncGenerator[bytes, None]", response.aiter_bytes()))


def _usable(client: "httpx.AsyncClient | None") -> "AbstractAsyncContextManager[httpx.AsyncClient]":
    """Enter a client of our own; one that was passed in stays as it is."""
    return nullcontext(client) if client is not None else _httpx().AsyncClient(timeout=None)


def _limits(client: "httpx.AsyncClient") -> "httpx.Timeout":
    """Keep the limits that a client was made with. The five seconds of one that was made with none are not meant."""
    timeout = _httpx().Timeout
    return timeout(None) if client.timeout == timeout(5.0) else client.timeout


def _httpx() -> ModuleType:
    return required("httpx")
