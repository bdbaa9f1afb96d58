"""The one retry policy of this layer: opt-in, around a stream, and only over failures that are `retryable`.

Needs tenacity, which the extra `stream` brings; importing this module does not.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from compass.stream.chunks import Answer, Chunk
from compass.stream.contract import ChunkStream
from compass.stream.errors import ModelStreamError
from compass.stream.extras import required

if TYPE_CHECKING:
    import tenacity

MAX_ATTEMPTS = 4
MAX_WAIT_S = 60.0
FIRST_WAIT_S = 1.0
_JITTER = 0.1


@dataclass(frozen=True, slots=True)
class Retry:
    """A retry that is about to happen."""

    number: int
    """1 for the first."""
    max_retries: int
    wait_s: float
    """How long until it begins."""
    failure: ModelStreamError
    """What the attempt before it failed with."""


class RetryingStream(ChunkStream):
    """An answer as it streams, from the first attempt that shows anything of it."""

    on_retry: Callable[[Retry], Awaitable[None]] | None = None
    """Told of each retry before its wait begins."""


def retrying(
    open_again: Callable[[], ChunkStream],
    *,
    max_attempts: int = MAX_ATTEMPTS,
    max_wait_s: float = MAX_WAIT_S,
    first_wait_s: float = FIRST_WAIT_S,
) -> RetryingStream:
    """Try a stream again while its failure is retryable.

        async with retrying(lambda: open_stream(...)) as chunks:
            async for chunk in chunks: ...

    `open_again` makes a new stream for each attempt. The wait before each is what the provider asks for, and a little
    more so that clients do not come back together; else it is random, below a bound that doubles from `first_wait_s`
    up to `max_wait_s`. A provider that asks for more than `max_wait_s` is not waited for. After the first chunk nothing
    is tried again: what was shown would be shown twice. Raises the last attempt's ModelStreamError.
    """
    if max_attempts < 1:
        raise ValueError(f"max_attempts must be at least 1, got {max_attempts}")
    answer = Answer()
    policy = _policy(max_attempts=max_attempts, max_wait_s=max_wait_s, first_wait_s=first_wait_s)
    stream = RetryingStream(_attempts(open_again, policy, answer), answer)

    async def tell(state: "tenacity.RetryCallState") -> None:
        if stream.on_retry is not None and state.next_action is not None:
            await stream.on_retry(
                Retry(state.attempt_number, max_attempts - 1, state.next_action.sleep, _failure(state)),
            )

    policy.before_sleep = tell  # type: ignore[assignment] # AsyncRetrying awaits it; its base declares the synchronous one
    return stream


async def _attempts(
    open_again: Callable[[], ChunkStream],
    policy: "tenacity.AsyncRetrying",
    answer: Answer,
) -> AsyncGenerator[Chunk, None]:
    async for attempt in policy:
        async with open_again() as stream:
            try:
                async for chunk in stream:
                    answer.take_over(stream.answer)
                    yield chunk
            except ModelStreamError:
                answer.take_over(stream.answer)
                with attempt:  # only this is the policy's to judge: what is raised in here it takes in, a cancel too
                    raise
            else:
                answer.take_over(stream.answer)
                return


def _policy(*, max_attempts: int, max_wait_s: float, first_wait_s: float) -> "tenacity.AsyncRetrying":
    library = required("tenacity")
    backoff = library.wait_random_exponential(multiplier=first_wait_s, max=max_wait_s)

    def wait_s(state: "tenacity.RetryCallState") -> float:
        asked_ms = _failure(state).retry_after_ms
        if asked_ms is None:
            return float(backoff(state))
        return asked_ms / 1_000 + float(library.wait_random(0, _JITTER * asked_ms / 1_000)(state))

    def may_retry(error: BaseException) -> bool:
        if not isinstance(error, ModelStreamError) or not error.retryable:
            return False
        return error.retry_after_ms is None or error.retry_after_ms <= max_wait_s * 1_000

    policy: tenacity.AsyncRetrying = library.AsyncRetrying(
        stop=library.stop_after_attempt(max_attempts),
        wait=wait_s,
        retry=library.retry_if_exception(may_retry),
        sleep=asyncio.sleep,
        reraise=True,
    )
    return policy


def _failure(state: "tenacity.RetryCallState") -> ModelStreamError:
    """Return what the attempt failed with. The policy asks for a wait only after it has judged that to be ours."""
    return cast("ModelStreamError", state.outcome.exception() if state.outcome is not None else None)
