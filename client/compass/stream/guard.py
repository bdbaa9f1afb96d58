"""The contract around an official SDK: its stream read by the same tables, its exceptions told by the same classifier.

The SDKs take a stream that was cut for a finished one. Which SDK it is shows in what it yields; none is imported here.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, TypeAlias

from compass.failures import Category
from compass.stream.chunks import Answer, Chunk
from compass.stream.contract import ChunkStream, keep
from compass.stream.dialects import DIALECTS, DONE_MARK, Dialect, dialect_named
from compass.stream.errors import failure, sdk_dialect
from compass.stream.paths import Frame
from compass.stream.patience import FIRST_CHUNK_TIMEOUT_S, IDLE_TIMEOUT_S, Patience
from compass.stream.reader import AnswerReader

SdkStream: TypeAlias = (
    AsyncIterator[Any] | AbstractAsyncContextManager[Any] | Awaitable[Any] | Callable[[], Any]  # as the SDKs type them
)
"""A stream of an SDK's async client, the manager or the awaitable that opens it, or a callable that gives one."""


def guard(
    stream_or_call: SdkStream,
    *,
    provider: str | None = None,
    first_chunk_timeout_s: float | None = FIRST_CHUNK_TIMEOUT_S,
    idle_timeout_s: float | None = IDLE_TIMEOUT_S,
) -> ChunkStream:
    """Hold an SDK's stream to the contract.

        async with guard(client.messages.create(..., stream=True)) as chunks:
            async for chunk in chunks: ...

    Give it the call rather than the stream it opens: a refused key, a spent quota and a rate limit are raised by the
    call. Yields the same chunks as `open_stream`. The end mark is the last thing that the SDK lets through: openai's
    `finish_reason`, its responses' `response.completed`, anthropic's `message_stop`. `provider` is one of `DIALECTS`
    where the SDK talks to somebody else's server; None tells openai and anthropic apart by what they yield. Comments
    are not seen here, so `idle_timeout_s` bounds the time between events. Make the SDK's client with `max_retries=0`,
    or it sends requests that nobody sees.
    """
    if hasattr(stream_or_call, "__iter__") and not isinstance(stream_or_call, Awaitable):
        raise TypeError(f"guard takes a stream of an SDK's async client, got {type(stream_or_call).__name__}")
    dialect = None if provider in {None, "openai"} else dialect_named(str(provider))
    patience = Patience(first_chunk_timeout_s=first_chunk_timeout_s, idle_timeout_s=idle_timeout_s)
    answer = Answer(provider=dialect.name if dialect else None)
    chunks = _chunks(stream_or_call, dialect, patience, answer)
    return ChunkStream(keep(chunks, answer), answer, unread=stream_or_call)


async def _chunks(
    given: SdkStream,
    dialect: Dialect | None,
    patience: Patience,
    answer: Answer,
) -> AsyncGenerator[Chunk, None]:
    reader: AnswerReader | None = None
    patience.begin()
    async with _opened(given, patience) as stream:
        answer.provider = answer.provider or sdk_dialect(stream)
        while (event := await patience.wait(anext(stream, None))) is not None:
            frame = _frame(event)
            reader = reader or _reader_for(frame, dialect, answer)
            if reader is None:
                continue
            for chunk in reader.read(frame):
                patience.chunk_came()
                yield chunk
            if reader.is_over:
                return
    if reader is None:
        raise failure(Category.MALFORMED_RESPONSE, "the stream ended before it began", retryable=True)
    reader.close()


@asynccontextmanager
async def _opened(given: SdkStream, patience: Patience) -> AsyncIterator[AsyncIterator[Any]]:
    """Open what was given, as far as it is not open yet, and close it in the end."""
    opened = given() if callable(given) else given
    if isinstance(opened, Awaitable):
        opened = await patience.wait(opened)
    async with AsyncExitStack() as stack:
        if isinstance(opened, AbstractAsyncContextManager):
            opened = await patience.wait(stack.enter_async_context(opened))
        elif isinstance(opened, AsyncGenerator):
            stack.push_async_callback(opened.aclose)
        if not isinstance(opened, AsyncIterator):
            what = type(opened).__name__
            raise failure(
                Category.INVALID_REQUEST, f"the call gave no stream but {what}; was it made with stream=True?"
            )
        yield opened


def _reader_for(frame: Frame, dialect: Dialect | None, answer: Answer) -> AnswerReader | None:
    dialect = dialect or _shown(frame)
    # The mark [DONE] never comes out of an SDK: its last word is the stop reason, and then its stream ends.
    return AnswerReader(dialect, answer, lenient_end=DONE_MARK in dialect.ends) if dialect else None


def _shown(frame: Frame) -> Dialect | None:
    """Tell the dialect by a frame, None if this one does not show it."""
    kind = str(frame.get("type"))
    if "choices" in frame:
        return DIALECTS["openai-chat"]
    if kind.startswith("response.") or kind == "error":
        return DIALECTS["openai-responses"]
    if kind.startswith(("message_", "content_block_")):
        return DIALECTS["anthropic"]
    return None


def _frame(event: Any) -> Frame:
    """Turn an SDK's event back into the frame it was made from."""
    if isinstance(event, Mapping):
        return event
    if getattr(event, "type", None) == "chunk":  # openai's chat helper: the frame, and beside it all that came so far
        event = event.chunk
    frame: Frame = event.model_dump(exclude={"snapshot"}, exclude_unset=True, warnings=False)
    return frame
