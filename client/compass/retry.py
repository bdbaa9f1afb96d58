"""When to try a broken stream again: pauses that grow with jitter, and a limit on how long nothing may succeed."""

import asyncio
import random
import time
from collections.abc import Callable

from compass.errors import CompassError

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 2.0


class Patience:
    """Counts the attempts of one stream since it last made progress."""

    def __init__(
        self,
        retry_for_s: float | None,
        *,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._retry_for_s = retry_for_s
        self._clock = clock
        self._jitter = jitter
        self._num_failures = 0
        self._failing_since: float | None = None

    @property
    def is_failing(self) -> bool:
        """Whether the last attempt failed."""
        return self._failing_since is not None

    def progress(self) -> None:
        """Note a success: the next failure is a first one again."""
        self._num_failures = 0
        self._failing_since = None

    def pause_s(self, *, retry_after_s: float | None = None) -> float | None:
        """Note a failure. Return how long to pause before the next attempt, None when patience is at its end.

        A server that says how long to wait is believed.
        """
        now = self._clock()
        if self._failing_since is None:
            self._failing_since = now
        longest_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(self._num_failures, 16))
        self._num_failures += 1
        pause_s = max(longest_s * (0.5 + self._jitter() / 2), retry_after_s or 0.0)
        if self._retry_for_s is not None and now + pause_s - self._failing_since > self._retry_for_s:
            return None
        return pause_s

    async def pause(self, error: CompassError) -> None:
        """Note a failure and sleep until the next attempt. Raises the error when patience is at its end."""
        pause_s = self.pause_s(retry_after_s=error.retry_after_s)
        if pause_s is None:
            raise error
        await asyncio.sleep(pause_s)
