"""The writer's thread: it takes whatever appends wait, of all sessions, and commits them as one group.

One fsync then serves them all, which makes full durability nearly free under load. The thread never touches the event
loop but through `settle`, which gets the fate of a whole group at once.
"""

import threading
from asyncio import Future
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import NamedTuple

import structlog

from compass_service.log.protocol import LogClosedError, LogError, Record
from compass_service.log.store import Store

GROUP_RECORDS = 256
GROUP_BYTES = 4 * 1024 * 1024
"""A group takes no more once it holds as many records or bytes: a commit must not make the next one wait for long."""

_log = structlog.get_logger(__name__)


class Append(NamedTuple):
    """A record that waits for its commit, and who waits for it."""

    record: Record
    done: Future[None]


class Settled(NamedTuple):
    """An append whose fate is known: durable, or refused with an error and not stored."""

    append: Append
    error: LogError | None


class Writer:
    """Commit appends in the order in which they were put, in a thread of its own.

    The queue has no bound of its own: whoever appends waits for the commit, so it holds at most one record for each
    append that is awaited.
    """

    def __init__(
        self, store: Store, *, settle: Callable[[Sequence[Settled]], None], finish: Callable[[], None]
    ) -> None:
        self._store = store
        self._settle = settle
        self._finish = finish
        self._queue: SimpleQueue[Append | None] = SimpleQueue()
        self._has_failed = False
        self._thread = threading.Thread(target=self._run, name="log-writer", daemon=True)

    def start(self) -> None:
        """Begin to commit."""
        self._thread.start()

    def put(self, append: Append) -> None:
        """Add a record to the next group. Never blocks."""
        self._queue.put(append)

    def stop(self) -> None:
        """Commit what was put, then close. Never blocks; `finish` is called at the end. Nothing may be put after it."""
        self._queue.put(None)

    def _run(self) -> None:
        is_stopping = False
        while not is_stopping:
            group, is_stopping = self._next_group()
            if group:
                self._settle(self._commit(group))
        self._finish()

    def _next_group(self) -> tuple[list[Append], bool]:
        """Wait for an append, take what waits behind it. Returns whether the end of the queue was reached as well."""
        group: list[Append] = []
        num_bytes = 0
        item = self._queue.get()
        while item is not None:
            group.append(item)
            num_bytes += sum(map(len, item.record.frames))
            if len(group) >= GROUP_RECORDS or num_bytes >= GROUP_BYTES:
                return group, False
            try:
                item = self._queue.get_nowait()
            except Empty:
                return group, False
        return group, True

    def _commit(self, group: Sequence[Append]) -> list[Settled]:
        return [Settled(append, error) for append, error in zip(group, self._try_commit(group), strict=True)]

    def _try_commit(self, group: Sequence[Append]) -> Sequence[LogError | None]:
        if self._has_failed:
            return [LogClosedError() for _ in group]
        try:
            return self._store.commit([append.record for append in group])
        except Exception as error:  # noqa: BLE001 - whatever it was, somebody waits for an answer
            self._has_failed = True
            _log.error("session_log_failed", internal_cause=repr(error))
            return [LogClosedError() for _ in group]
