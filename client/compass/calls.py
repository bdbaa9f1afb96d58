"""Reading from an open call: translated errors, a watchdog for a silent peer, and the status that a call ended with."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar, cast

import grpc

from compass.status import translated

T_co = TypeVar("T_co", covariant=True)


class ReadableCall(Protocol[T_co]):
    """What is read here: a call whose responses come one by one."""

    async def read(self) -> T_co | object:
        """Return the next response, or EOF."""
        ...

    def cancel(self) -> bool:
        """End the call."""
        ...


async def read(call: ReadableCall[T_co], *, silence_s: float | None, session_id: str = "") -> T_co | None:
    """Return the next response, None at the end of a call with status OK. Raises CompassError.

    A call that stays silent for longer than `silence_s` is cancelled, which raises ServerUnavailableError. A cancel of
    the reading task cancels the call too.
    """
    watchdog = None if silence_s is None else asyncio.get_running_loop().call_later(silence_s, call.cancel)
    try:
        with translated(session_id):
            response = await call.read()
    finally:
        if watchdog is not None:
            watchdog.cancel()
    if response is grpc.aio.EOF:  # type: ignore[attr-defined] # grpc-stubs has no EOF
        return None
    return cast("T_co", response)


class EndingCall(Protocol):
    """A call that tells how it ended."""

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Call back each time the status of the call is set."""
        ...


class FirstStatus:
    """The status with which a call ended, before a failing write could replace it.

    grpc.aio sets the status of a call to INTERNAL when a write fails, and a write fails just when the server has ended
    the call: why it did would be lost.
    """

    def __init__(self, call: EndingCall) -> None:
        self.error: grpc.aio.AioRpcError | None = None
        """The status, also when it is OK. None while the call is open."""
        call.add_done_callback(self._note)

    def _note(self, call: grpc.aio.Call) -> None:
        if self.error is None:
            self.error = grpc.aio.AioRpcError(
                _at_once(call.code()),
                grpc.aio.Metadata(),
                _at_once(call.trailing_metadata()),
                details=_at_once(call.details()),
                debug_error_string=None,
            )


def _at_once(coroutine: Coroutine[Any, Any, T_co]) -> T_co:
    """Return the result of a coroutine that has no need to wait: the status is set."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return cast("T_co", stop.value)
    coroutine.close()
    raise RuntimeError("the status of a call that has ended must be known")
