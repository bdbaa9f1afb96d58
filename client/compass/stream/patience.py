"""How long a stream may keep us waiting: for its first chunk, and between one sign of life and the next."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from compass.failures import Category
from compass.stream.errors import failure

T = TypeVar("T")

FIRST_CHUNK_TIMEOUT_S = 300.0
"""Queued requests and long reasoning take minutes before the first chunk; ten minutes is a provider's own limit."""
IDLE_TIMEOUT_S = 120.0


class Patience:
    """Bounds the waits of one stream. None is no limit.

    Comments and other bytes that are no chunk reset the idle limit only, or a queueing provider could hold us for ever.
    """

    def __init__(self, *, first_chunk_timeout_s: float | None, idle_timeout_s: float | None) -> None:
        for name, limit_s in (("first_chunk_timeout_s", first_chunk_timeout_s), ("idle_timeout_s", idle_timeout_s)):
            if limit_s is not None and limit_s <= 0:
                raise ValueError(f"{name} must be above 0, got {limit_s}")
        self._first_chunk_timeout_s = first_chunk_timeout_s
        self._idle_timeout_s = idle_timeout_s
        self._first_chunk_by: float | None = None

    def begin(self) -> None:
        """Start the time to the first chunk: the request goes out now."""
        if self._first_chunk_timeout_s is not None:
            self._first_chunk_by = asyncio.get_running_loop().time() + self._first_chunk_timeout_s

    def chunk_came(self) -> None:
        """Lift the limit on the first chunk."""
        self._first_chunk_by = None

    async def wait(self, awaitable: Awaitable[T]) -> T:
        """Wait for a sign of life; ModelStreamError if none comes in time."""
        now = asyncio.get_running_loop().time()
        idle_by = None if self._idle_timeout_s is None else now + self._idle_timeout_s
        limits = [limit for limit in (idle_by, self._first_chunk_by) if limit is not None]
        deadline = asyncio.timeout_at(min(limits, default=None))
        try:
            async with deadline:
                return await awaitable
        except TimeoutError:
            if not deadline.expired():
                raise
        raise failure(Category.NETWORK, self._sentence(idle_by)) from None

    def _sentence(self, idle_by: float | None) -> str:
        if self._first_chunk_by is not None and (idle_by is None or self._first_chunk_by <= idle_by):
            return f"no chunk came within {self._first_chunk_timeout_s:g} s"
        return f"nothing came for {self._idle_timeout_s:g} s"
