"""Cancelling a task at exactly the n-th place where it waits."""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any

import pytest


class _CancelledAt:
    """Awaits a coroutine, and cancels the task that does so when it is about to wait for the n-th time."""

    def __init__(self, coroutine: Coroutine[Any, Any, None], num_awaits: int) -> None:
        self._coroutine = coroutine
        self._num_awaits = num_awaits
        self.was_reached = False

    def __await__(self) -> Generator[Any, Any, None]:
        step = self._coroutine.send
        value: object = None
        while True:
            try:
                waits_for = step(value)
            except StopIteration:
                return
            self._num_awaits -= 1
            if self._num_awaits == 0:
                self.was_reached = True
                task = asyncio.current_task()
                assert task is not None
                task.cancel("by the test")
            try:
                value, step = (yield waits_for), self._coroutine.send
            except BaseException as error:  # noqa: BLE001 - handed on into the coroutine, whatever it is
                value, step = error, self._coroutine.throw


async def cancel_at(coroutine: Coroutine[Any, Any, None], num_awaits: int) -> bool:
    """Run a coroutine and cancel it where it waits for the n-th time. False if it ended before.

    What comes out must be the very cancellation that went in.
    """
    counted = _CancelledAt(coroutine, num_awaits)

    async def run() -> None:
        await counted

    task = asyncio.create_task(run())
    await asyncio.wait([task])
    if not counted.was_reached:
        task.result()
        return False
    assert task.cancelled()
    assert task.cancelling() == 1
    with pytest.raises(asyncio.CancelledError, match="by the test"):
        task.result()
    return True
