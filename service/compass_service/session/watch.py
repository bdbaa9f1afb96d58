"""Noting which sessions changed, for readers of the session list."""

import asyncio
from collections.abc import Callable


class Watch:
    """A coalescing set of changed sessions. Bound: one entry a session; policy: newest wins, so nothing to count."""

    def __init__(self, on_close: Callable[["Watch"], None]) -> None:
        self._on_close = on_close
        self._changed: dict[str, None] = {}
        self._is_changed = asyncio.Event()

    def note(self, session_id: str) -> None:
        """Note a change."""
        self._changed[session_id] = None
        self._is_changed.set()

    async def wait(self, timeout_s: float, *, pace_s: float) -> None:
        """Wait until something changed, and then a little for what changes with it; or until the time is over."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._is_changed.wait()
        except TimeoutError:
            return
        await asyncio.sleep(pace_s)

    def wake(self) -> None:
        """End the wait."""
        self._is_changed.set()

    def take(self) -> list[str]:
        """Take what changed since the last call."""
        changed, self._changed = list(self._changed), {}
        self._is_changed.clear()
        return changed

    def close(self) -> None:
        """Stop noting. Idempotent."""
        self._on_close(self)
