"""The stream contract: an iterator of chunks that ends normally only when the answer is whole, and else raises.

There is no third outcome. Whatever breaks becomes one `ModelStreamError`; a cancellation is not touched.
"""

from collections.abc import AsyncGenerator, Coroutine
from contextlib import AbstractAsyncContextManager, aclosing
from types import TracebackType
from typing import Self

from compass.errors import CompassError
from compass.stream.chunks import Answer, Chunk
from compass.stream.errors import ModelStreamError, raised


class StreamClosedError(CompassError):
    """A stream was read on after it was closed or cancelled before its end. The caller's own doing."""

    def __init__(self) -> None:
        super().__init__("the stream was closed before its end: what came of the answer is not whole")


class ChunkStream:
    """An answer as it streams: `async with` it and iterate, once.

    The request goes out with the first chunk that is asked for. The iteration ends normally only if the provider's end
    mark was seen and at least one chunk came; else it raises ModelStreamError, again on every later attempt to read.
    Leaving the block closes the response. A `CancelledError` passes through unchanged.
    """

    def __init__(self, chunks: AsyncGenerator[Chunk, None], answer: Answer, *, unread: object = None) -> None:
        self.answer = answer
        """What is known beside the chunks: provider and model, and at the end stop reason and usage."""
        self._chunks = chunks
        self._unread = unread
        self._failure: ModelStreamError | None = None
        self._is_over = False
        self._is_interrupted = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Chunk:
        if self._failure is not None:
            raise self._failure
        if self._is_interrupted:
            raise StreamClosedError
        # Until this read comes back. Cancelled, it leaves a generator behind that says it has ended; it has not.
        self._is_interrupted, self._unread = True, None
        try:
            chunk = await anext(self._chunks)
        except StopAsyncIteration:
            self._is_over, self._is_interrupted = True, False
            raise
        except ModelStreamError as error:
            self._failure = error
            raise
        self._is_interrupted = False
        return chunk

    async def aclose(self) -> None:
        """Close the stream and what it reads from. Safe to call again."""
        self._is_interrupted = not self._is_over
        await self._chunks.aclose()
        unread, self._unread = self._unread, None
        if isinstance(unread, Coroutine):
            unread.close()
        elif isinstance(unread, AbstractAsyncContextManager):
            await unread.__aexit__(None, None, None)


async def keep(source: AsyncGenerator[Chunk, None], answer: Answer) -> AsyncGenerator[Chunk, None]:
    """Pass chunks on, and turn whatever breaks into one ModelStreamError: not retryable once a chunk was given out."""
    has_chunks = False
    try:
        async with aclosing(source):
            async for chunk in source:
                has_chunks = True
                yield chunk
    except ModelStreamError as error:
        _settle(error, answer, may_retry=not has_chunks)
        raise
    except Exception as cause:  # noqa: BLE001 - httpx and the SDKs share no root; what broke is told by the classifier
        # The cause's own text may quote credentials and pages, so no traceback prints it; `__context__` keeps it.
        told = raised(answer.provider, cause)
        _settle(told, answer, may_retry=not has_chunks)
        raise told from None


def _settle(error: ModelStreamError, answer: Answer, *, may_retry: bool) -> None:
    error.provider = error.provider or answer.provider
    error.retryable = error.retryable and may_retry
