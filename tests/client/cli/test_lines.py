"""Lines as a push reads them."""

import asyncio
import os

import pytest

from compass.cli.lines import lines


@pytest.fixture
def pipe():
    reading, writing = os.pipe()
    yield reading, writing
    for descriptor in (reading, writing):
        try:
            os.close(descriptor)
        except OSError:
            continue  # a test closed it to end the input


async def all_lines(descriptor: int) -> list[tuple[int, bytes]]:
    return [numbered async for numbered in lines(descriptor)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", []),
        (b"a\nb\n", [(1, b"a"), (2, b"b")]),
        (b"a\nb", [(1, b"a"), (2, b"b")]),
        (b"a\n\n  \nb\n", [(1, b"a"), (4, b"b")]),
        (b"a\r\nb", [(1, b"a\r"), (2, b"b")]),
        ("a\u2028b\x85c\x0bd\n".encode(), [(1, "a\u2028b\x85c\x0bd".encode())]),
    ],
)
async def test_a_line_ends_at_a_line_feed_and_nowhere_else(tmp_path, text, expected):
    path = tmp_path / "events.jsonl"
    path.write_bytes(text)
    with path.open("rb") as file:
        assert await all_lines(file.fileno()) == expected


async def test_a_line_of_many_megabytes_is_one_line(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"x" * 20_000_000 + b"\ny\n")
    with path.open("rb") as file:
        first, second = await all_lines(file.fileno())

    assert (len(first[1]), second) == (20_000_000, (2, b"y"))


async def test_a_line_of_a_pipe_comes_as_soon_as_it_is_whole_and_the_loop_goes_on_meanwhile(pipe):
    reading, writing = pipe
    found = lines(reading)

    async def next_after(*pieces: bytes) -> tuple[int, bytes]:
        waiting = asyncio.create_task(anext(found))
        for piece in pieces:
            for _ in range(5):
                await asyncio.sleep(0)
            os.write(writing, piece)
        return await waiting

    assert await next_after(b"one\ntw") == (1, b"one")
    assert await next_after(b"o\n") == (2, b"two")
    assert await next_after(b"th", b"re", b"e\n") == (3, b"three")
    os.write(writing, b"four")
    os.close(writing)
    assert await anext(found) == (4, b"four")
    with pytest.raises(StopAsyncIteration):
        await anext(found)


async def test_waiting_for_a_pipe_can_be_cancelled_and_leaves_it_blocking(pipe):
    reading, _ = pipe
    waiting = asyncio.create_task(all_lines(reading))
    await asyncio.sleep(0)
    waiting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert os.get_blocking(reading)
