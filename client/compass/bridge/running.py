"""Tasks with a scope: none outlives it, and what failed in one is raised where it is waited for."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def running(work: Coroutine[Any, Any, Any]) -> AsyncIterator["asyncio.Task[Any]"]:
    """Run something beside the block, and cancel it at the block's end."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # seen: who waits for the task has raised it


async def first_of(tasks: "set[asyncio.Task[Any]]", *, beside: "set[asyncio.Task[Any]]") -> None:
    """Wait until one of the tasks is done. Raises what one of them, or one of those beside them, failed with."""
    pending = tasks | beside
    while not any(task.done() for task in tasks):
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
