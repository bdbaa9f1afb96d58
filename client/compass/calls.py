"""Reading from an open call: translated errors, and a watchdog for a peer that has gone silent."""

import asyncio
from typing import Protocol, TypeVar, cast

import grpc.aio

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
