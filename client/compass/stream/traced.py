"""A stream that tells its run to a session: what is read from it is also published, as the pi family of agents would.

Decides nothing about the stream; what the events become is the mapper's.
"""

import json
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any, Protocol

from compass.stream.chunks import Answer, Chunk, ChunkKind
from compass.stream.contract import ChunkStream
from compass.stream.dialects import LENGTH_STOPS
from compass.stream.errors import ModelStreamError
from compass.stream.guard import SdkStream, guard
from compass.stream.retry import Retry, RetryingStream

Event = dict[str, Any]
_BLOCK_NAMES = {ChunkKind.TEXT: "text", ChunkKind.REASONING: "thinking"}


class EventSink(Protocol):
    """What a traced stream is told to: a `compass` publisher."""

    async def push(self, event: Event, /) -> None:
        """Take an event, waiting for room if need be."""

    def push_nowait(self, event: Event, /) -> bool:
        """Take an event at once, past a full lane if need be. False if nothing is taken any more; never raises."""


def traced(
    stream: ChunkStream | SdkStream,
    publisher: EventSink,
    *,
    prompt: str | None = None,
    model: str | None = None,
    provider: str | None = None,
) -> ChunkStream:
    """Publish a stream's run while it is read.

        async with traced(open_stream(...), publisher, prompt="...") as chunks:
            async for chunk in chunks: ...

    Yields what `stream` yields and raises what it raises; an SDK's stream, or the call that opens it, is guarded first.
    `prompt` becomes the user's message; `model` and `provider`
    are those that the stream tells, unless given. A failure is published with the error; a stream that is cancelled, or
    left before its end, as one aborted message. A traced `retrying` stream shows each failed attempt and each retry.
    What ends the publisher for good is raised here too.
    """
    if not isinstance(stream, ChunkStream):
        stream = guard(stream)
    run = _Run(stream, publisher, model=model, provider=provider)
    return ChunkStream(run.chunks(prompt), stream.answer, unread=stream)


class _Run:
    """One run on its way to the publisher."""

    def __init__(self, stream: ChunkStream, publisher: EventSink, *, model: str | None, provider: str | None) -> None:
        self._stream = stream
        self._push = publisher.push
        self._push_nowait = publisher.push_nowait
        self._message = _Message(stream.answer, model=model, provider=provider)
        self._num_retries = 0
        self._awaits_retry = False
        self._is_told = False
        """Whether the end of the message was published."""
        if isinstance(stream, RetryingStream):
            stream.on_retry = self._tell_retry

    async def chunks(self, prompt: str | None) -> AsyncGenerator[Chunk, None]:
        try:
            await self._push({"type": "agent_start"})
            if prompt is not None:
                await self._tell_prompt(prompt)
            async with self._stream as stream:
                async for chunk in stream:
                    await self._tell_chunk(chunk)
                    yield chunk
            await self._tell_end()
        except ModelStreamError as error:
            await self._tell_failure(error)
            raise
        finally:
            # Neither waits nor catches: a cancellation goes on as it came.
            if not self._is_told:
                self._push_nowait(self._abort())

    async def _tell_prompt(self, prompt: str) -> None:
        message = {"role": "user", "content": [{"type": "text", "text": prompt}], "timestamp": _now_ms()}
        await self._push({"type": "message_start", "message": message})
        await self._push({"type": "message_end", "message": message})

    async def _tell_chunk(self, chunk: Chunk) -> None:
        await self._begin_attempt()
        if self._message.is_empty:
            await self._push({"type": "message_start", "message": self._message.body()})
        await self._push({"type": "message_update", "assistantMessageEvent": self._message.add(chunk)})

    async def _tell_end(self) -> None:
        await self._end_message(stop_reason=self._message.stop_reason)
        if self._num_retries:
            self._push_nowait({"type": "auto_retry_end", "success": True, "attempt": self._num_retries})
        self._push_nowait(_agent_end())

    async def _tell_failure(self, error: ModelStreamError) -> None:
        await self._begin_attempt()
        await self._end_message(stop_reason="error", **_error_fields(error))
        self._push_nowait(_agent_end())
        if self._num_retries:
            end = {"success": False, "attempt": self._num_retries, "finalError": error.message}
            self._push_nowait({"type": "auto_retry_end", **end})

    async def _end_message(self, *, stop_reason: str, **fields: object) -> None:
        await self._push(self._message.end(stop_reason=stop_reason, **fields))
        # What follows belongs to it, and is told without a wait: a cancellation finds the run whole, or not ended.
        self._is_told = True

    async def _tell_retry(self, retry: Retry) -> None:
        await self._begin_attempt()
        await self._push(self._message.end(stop_reason="error", **_error_fields(retry.failure)))
        self._push_nowait(_agent_end(willRetry=True))
        start = {"attempt": retry.number, "maxAttempts": retry.max_retries, "delayMs": round(retry.wait_s * 1_000)}
        self._push_nowait({"type": "auto_retry_start", **start, "errorMessage": retry.failure.message})
        self._num_retries, self._awaits_retry = retry.number, True

    async def _begin_attempt(self) -> None:
        if self._awaits_retry:
            await self._push({"type": "agent_start"})
            self._awaits_retry = False

    def _abort(self) -> Event:
        if self._awaits_retry:  # no message is open: it is the retry that is given up
            return {"type": "auto_retry_end", "success": False, "finalError": "Retry cancelled"}
        return self._message.end(stop_reason="aborted")


def _agent_end(**fields: object) -> Event:
    return {"type": "agent_end", "messages": [], **fields}


class _Message:
    """The assistant's message as it grows."""

    def __init__(self, answer: Answer, *, model: str | None, provider: str | None) -> None:
        self._answer = answer
        self._model = model
        self._provider = provider
        self._blocks: list[_Block] = []

    @property
    def is_empty(self) -> bool:
        return not self._blocks

    @property
    def stop_reason(self) -> str:
        if self._answer.stop_reason in LENGTH_STOPS:
            return "length"
        return "toolUse" if any(block.kind is ChunkKind.TOOL_CALL for block in self._blocks) else "stop"

    def add(self, chunk: Chunk) -> Event:
        """Take a chunk; return what it adds, as an inner event of the open message."""
        if chunk.kind is ChunkKind.TOOL_CALL:
            self._blocks.append(_Block(chunk.kind, call=_call(chunk)))
            return {"type": "toolcall_end", "contentIndex": len(self._blocks) - 1, "toolCall": self._blocks[-1].call}
        if not self._blocks or self._blocks[-1].kind is not chunk.kind:
            self._blocks.append(_Block(chunk.kind))
        self._blocks[-1].pieces.append(chunk.text)
        kind = _BLOCK_NAMES[chunk.kind]
        return {"type": f"{kind}_delta", "contentIndex": len(self._blocks) - 1, "delta": chunk.text}

    def end(self, *, stop_reason: str, **fields: object) -> Event:
        """Return the inner event that ends it."""
        return {"type": "message_end", "message": {**self.body(), "stopReason": stop_reason, **fields}}

    def body(self) -> Event:
        """Return it as it is, the way inner events carry a message."""
        usage = self._answer.usage
        return {
            "role": "assistant",
            "content": [block.content() for block in self._blocks],
            "provider": self._provider or self._answer.provider or "",
            "model": self._model or self._answer.model or "",
            "usage": {
                "input": usage.input_tokens,
                "output": usage.output_tokens,
                "cacheRead": usage.cache_read_tokens,
                "cacheWrite": usage.cache_write_tokens,
            },
            "timestamp": _now_ms(),
        }


@dataclass(slots=True)
class _Block:
    kind: ChunkKind
    pieces: list[str] = field(default_factory=list)
    call: Event | None = None

    def content(self) -> Event:
        if self.call is not None:
            return self.call
        name = _BLOCK_NAMES[self.kind]
        return {"type": name, name: "".join(self.pieces)}


def _call(chunk: Chunk) -> Event:
    arguments = chunk.arguments or "{}"
    call = {"type": "toolCall", "id": chunk.id or "", "name": chunk.name, "partialArgs": arguments}
    try:
        return call | {"arguments": json.loads(arguments)}
    except (ValueError, RecursionError):  # as the model wrote it; the text is beside it
        return call | {"arguments": {}}


def _error_fields(error: ModelStreamError) -> Event:
    """Say what the error says, its category included: the mapper could only guess that again from the text."""
    fields = {
        "errorMessage": error.message,
        "errorStatus": error.status,
        "errorCategory": error.category.name,
        "errorRetryable": error.retryable,
        "errorRetryAfterMs": error.retry_after_ms,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
