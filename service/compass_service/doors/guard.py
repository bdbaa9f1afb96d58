"""What stands around every rpc: refusals become statuses; what nobody foresaw becomes INTERNAL, its cause logged."""

import asyncio
import functools
import secrets
from collections.abc import Awaitable, Callable
from typing import TypeVar

import grpc
import structlog

from compass.failures import observe, record_cause
from compass_service.doors import status

Request = TypeVar("Request")
Response = TypeVar("Response")
Handler = Callable[[Request, status.ServicerContext], Awaitable[Response]]

_logger = structlog.get_logger(__name__)


class Calls:
    """The calls that run now, so that a shutdown can wait for their last lines."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()

    async def ended(self) -> None:
        """Wait until every call has run its last line."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    @property
    def num_open(self) -> int:
        """Calls that run."""
        return len(self._tasks)

    def guard(self, handler: Handler[Request, Response]) -> Handler[Request, Response]:
        """Wrap a handler. Cancellation, and the end of a call whose client is gone, pass through untouched."""

        @functools.wraps(handler)
        async def guarded(request: Request, context: status.ServicerContext) -> Response:
            task = asyncio.current_task()
            if task is not None and task not in self._tasks:
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            try:
                return await handler(request, context)
            except (grpc.aio.AbortError, grpc.aio.BaseError):
                raise
            except Exception as failure:  # noqa: BLE001 # the one place where nothing may leak past
                return await _refuse(context, handler.__name__, failure)

        return guarded


async def _refuse(context: status.ServicerContext, rpc: str, failure: Exception) -> Response:
    if status.is_refusal(failure):
        await status.abort(context, status.of(failure))
    correlation_id = secrets.token_hex(8)
    _log_cause("rpc_failed", rpc, correlation_id, failure)
    await status.abort(context, status.internal(correlation_id))


def _log_cause(event: str, rpc: str, correlation_id: str, failure: Exception) -> None:
    """Write why to the log and to the span, under the id that the client gets too."""
    observed = observe(failure)
    record_cause(observed, correlation_id=correlation_id)
    facts = {"rpc": rpc, "correlation_id": correlation_id, "problem": observed.problem}
    if observed.cause is not None:
        facts |= {"internal_cause": observed.cause.text, "traceback": observed.cause.traceback}
    _logger.error(event, **facts)
