"""The writer's thread: it takes whatever appends wait, of all sessions, and commits them as one group.

One fsync then serves them all, which makes full durability nearly free under load. Retention runs here too, one short
transaction at a time between groups. The thread never touches the event loop: it hands over what came of its work.
"""

import threading
from asyncio import Future
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import NamedTuple, TypeAlias

from compass_service.log.checkpointer import Checkpointer
from compass_service.log.committer import Committer
from compass_service.log.protocol import LogClosedError, LogError, LogFullError, Record
from compass_service.log.reserve import Reserve
from compass_service.log.store import Store

GROUP_RECORDS = 256
GROUP_BYTES = 4 * 1024 * 1024
"""A group takes no more once it holds as many records or bytes: a commit must not make the next one wait for long."""

QUIET_S = 1.0
"""After as long without work, what is left in the WAL is moved into the database."""


class Append(NamedTuple):
    """A record that waits for its commit, and who waits for it."""

    record: Record
    done: Future[None]


class Settled(NamedTuple):
    """An append whose fate is known: durable, or refused with an error and not stored."""

    append: Append
    error: LogError | None


class Trimming(NamedTuple):
    """Retention under way, and who waits for it: nobody if it was begun because the disk is full."""

    steps: Iterator[None]
    removed: list[str]
    done: Future[Sequence[str]] | None


class Stop:
    """The end of the queue."""


_Item: TypeAlias = Append | Trimming | Stop


class Outcomes(NamedTuple):
    """Who learns what came of the work. Called in the writer's thread."""

    settled: Callable[[Sequence[Settled]], None]
    trimmed: Callable[[Trimming, LogError | None], None]
    finished: Callable[[], None]


class Writer:
    """Commit appends in the order in which they were put, in a thread of its own.

    The queue has no bound of its own: whoever appends waits for the commit, so it holds at most one record for each
    append that is awaited.
    """

    def __init__(
        self,
        store: Store,
        reserve: Reserve,
        checkpointer: Checkpointer,
        outcomes: Outcomes,
        *,
        now_unix_ms: Callable[[], int],
    ) -> None:
        self._committer = Committer(store, reserve, checkpointer, ran_out=self._trim_for_room)
        self._store = store
        self._outcomes = outcomes
        self._now_unix_ms = now_unix_ms
        self._queue: SimpleQueue[_Item] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="log-writer", daemon=True)

    def start(self) -> None:
        """Begin to commit."""
        self._thread.start()

    def put(self, item: Append | Trimming) -> None:
        """Add work to be done. Never blocks."""
        self._queue.put(item)

    def stop(self) -> None:
        """Commit what was put, then end. Never blocks; `finished` is called at the end. Nothing may be put after it."""
        self._queue.put(Stop())

    def _run(self) -> None:
        self._committer.start()
        item: _Item | None = None
        while not isinstance(item, Stop):
            group, item = self._next_group()
            if group:
                self._commit(group)
            if isinstance(item, Trimming):
                self._trim(item)
        self._abandon_trims()
        self._outcomes.finished()

    def _next_group(self) -> tuple[list[Append], Trimming | Stop | None]:
        """Wait for work. Returns the appends that waited, and what ended the group if it was not the want of more."""
        group: list[Append] = []
        num_bytes = 0
        item: _Item | None = self._wait()
        while isinstance(item, Append):
            group.append(item)
            num_bytes += sum(map(len, item.record.frames))
            if len(group) >= GROUP_RECORDS or num_bytes >= GROUP_BYTES:
                return group, None
            item = self._take()
        return group, item

    def _wait(self) -> _Item:
        if self._committer.has_rest:
            with suppress(Empty):
                return self._queue.get(timeout=QUIET_S)
            self._committer.rest()
        return self._queue.get()

    def _take(self) -> _Item | None:
        try:
            return self._queue.get_nowait()
        except Empty:
            return None

    def _commit(self, group: Sequence[Append]) -> None:
        errors = self._committer.commit([append.record for append in group])
        self._outcomes.settled([Settled(append, error) for append, error in zip(group, errors, strict=True)])
        self._committer.tend()

    def _trim(self, trimming: Trimming) -> None:
        """Take one step; the next one waits behind the appends that came meanwhile."""
        try:
            has_more = self._committer.step(trimming.steps)
        except LogFullError:
            has_more = False  # there is not even room to delete; the next trim goes on where this one ended
        except LogError as error:
            self._outcomes.trimmed(trimming, error)
            return
        if has_more:
            self._queue.put(trimming)
        else:
            self._outcomes.trimmed(trimming, None)
        self._committer.tend()

    def _trim_for_room(self) -> None:
        removed: list[str] = []
        steps = self._store.trim(now_unix_ms=self._now_unix_ms(), slack_pages=0, removed=removed)
        self._queue.put(Trimming(steps, removed, done=None))

    def _abandon_trims(self) -> None:
        while (item := self._take()) is not None:
            if isinstance(item, Trimming):
                self._outcomes.trimmed(item, LogClosedError())
