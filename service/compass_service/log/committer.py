"""What becomes of a group of records: stored, refused because there is no room, or refused because the storage failed.

Full is a state that ends by itself: the reserve is given up, so that the WAL can be moved and retention can run, and
appends are taken again once the reserve can be had again. Failed is for good: after a failed fsync nobody knows what is
on the disk until it is read again by a new process.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import structlog

from compass_service.log.checkpointer import Checkpointer
from compass_service.log.protocol import LogClosedError, LogError, LogFullError, Record
from compass_service.log.reserve import Reserve
from compass_service.log.store import Store

_log = structlog.get_logger(__name__)


class Committer:
    """The storage in the writer's thread, and the state that it is in."""

    def __init__(
        self,
        store: Store,
        reserve: Reserve,
        checkpointer: Checkpointer,
        *,
        ran_out: Callable[[], None],
    ) -> None:
        self._store = store
        self._reserve = reserve
        self._checkpointer = checkpointer
        self._ran_out = ran_out
        self._has_failed = False

    @property
    def has_rest(self) -> bool:
        """Whether a quiet moment would be of use."""
        return self._checkpointer.has_rest

    def start(self) -> None:
        """Begin; if the disk is full from the first moment, as one that has just run out."""
        if not self._reserve.is_held:
            with suppress(LogClosedError), self._failing_for_good():
                self._make_room()

    def commit(self, records: Sequence[Record]) -> Sequence[LogError | None]:
        """Store a group. Returns for each record what refused it, None if it is durable."""
        try:
            with self._failing_for_good():
                return self._commit(records)
        except LogClosedError:
            return [LogClosedError() for _ in records]

    def step(self, steps: Iterator[None]) -> bool:
        """Take one step of retention. Returns whether there are more. Raises LogFullError, LogClosedError."""
        with self._failing_for_good():
            try:
                return next(steps, steps) is not steps
            except LogFullError:
                self._run_out()
                raise

    def tend(self) -> None:
        """Keep the WAL bounded. Called after every group, once those that waited for it have been told."""
        with suppress(LogClosedError), self._failing_for_good():
            try:
                self._checkpointer.committed(self._store.wal_pages)
            except LogFullError:
                self._run_out()

    def rest(self) -> None:
        """Use a quiet moment."""
        self._checkpointer.rest()

    def _commit(self, records: Sequence[Record]) -> Sequence[LogError | None]:
        if not self._reserve.is_held and not self._find_room():
            return self._store.refuse(records)
        try:
            return self._store.commit(records)
        except LogFullError:
            self._run_out()
            return self._store.refuse(records)

    def _run_out(self) -> None:
        """Free the reserve and use it to make more room. Once until there was room again: else it would not end."""
        if self._reserve.is_held:
            self._reserve.give_up()
            self._make_room()

    def _make_room(self) -> None:
        _log.error("session_log_full")
        with suppress(LogFullError):
            self._checkpointer.truncate()
        self._ran_out()

    def _find_room(self) -> bool:
        if not self._reserve.is_due:
            return False
        with suppress(LogFullError):
            self._checkpointer.truncate()
        self._reserve.take()
        if self._reserve.is_held:
            _log.info("session_log_has_room")
        return self._reserve.is_held

    @contextmanager
    def _failing_for_good(self) -> Iterator[None]:
        if self._has_failed:
            raise LogClosedError
        try:
            yield
        except LogError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it was, somebody waits for an answer
            self._has_failed = True
            _log.exception("session_log_failed", internal_cause=repr(error))
            raise LogClosedError from None
