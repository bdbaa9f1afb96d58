"""Lines of a file, a pipe or a terminal as they come. A line ends at a line feed and nowhere else."""

import asyncio
import os
from collections.abc import AsyncIterator

from compass.lines import split_lines

_CHUNK_BYTES = 1024 * 1024


async def lines(descriptor: int) -> AsyncIterator[tuple[int, bytes]]:
    """Yield each line that is not blank with its number, from 1, as soon as it is whole. Lines have no largest size."""
    number = 0
    async for line in split_lines(_chunks(descriptor)):
        number += 1
        if line.strip():
            yield number, line


async def _chunks(descriptor: int) -> AsyncIterator[bytes]:
    """Yield what can be read, at most 1 MiB at a time, without ever blocking the loop on a pipe.

    The descriptor stays blocking: a terminal or a pipe is shared with other processes, who would be surprised. A thread
    would do too, but one that waits for standard input keeps the process from ending at Ctrl-C.
    """
    while True:
        await _until_readable(descriptor)
        if not (chunk := os.read(descriptor, _CHUNK_BYTES)):
            return
        yield chunk


async def _until_readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    readable = loop.create_future()

    def note() -> None:
        if not readable.done():  # the loop may note it twice before it is read
            readable.set_result(None)

    try:
        loop.add_reader(descriptor, note)
    except PermissionError:  # a regular file, which is always readable
        await asyncio.sleep(0)
        return
    try:
        await readable
    finally:
        loop.remove_reader(descriptor)
