"""Lines of what agents write. A line ends at a line feed and nowhere else, and may have any size."""

from collections.abc import AsyncIterable, AsyncIterator


async def split_lines(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Yield each line without its line feed, as soon as it is whole, and what follows the last line feed if any."""
    parts: list[bytes] = []
    async for chunk in chunks:
        head, *rest = chunk.split(b"\n")
        parts.append(head)
        for start in rest:
            yield b"".join(parts)
            parts = [start]
    if line := b"".join(parts):
        yield line
