"""Lines of an agent's output. A line ends at a line feed and nowhere else, and may have any size."""

import asyncio
from collections.abc import AsyncIterator

CHUNK_BYTES = 1024 * 1024


async def lines(stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield each line that is not blank, without its end; what follows the last line feed too."""
    parts: list[bytes] = []
    while chunk := await stream.read(CHUNK_BYTES):
        head, *rest = chunk.split(b"\n")
        parts.append(head)
        for start in rest:
            if line := b"".join(parts).strip(b"\r\n \t"):
                yield line
            parts = [start]
    if line := b"".join(parts).strip(b"\r\n \t"):
        yield line
