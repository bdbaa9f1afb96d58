"""Retention as it is applied: what goes, in which order, and in pieces that never make a commit wait for long.

The work is a generator over one connection that pauses wherever it may be interrupted; `in_steps` cuts it into short
transactions. It holds no cursor across a pause, and looks again at whatever appends may have changed meanwhile.
"""

import heapq
import time
from collections.abc import Generator, Iterator
from typing import NamedTuple, TypeAlias

import apsw

from compass_service.log.cut import Limits, cut, oldest_unix_ms
from compass_service.log.retention import Retention
from compass_service.log.transaction import transaction

STEP_S = 0.008
"""A transaction of retention takes no more work after this long."""

_SCAN_SESSIONS = 100
_VACUUM_PAGES = 64
_GRAIN_MS = 1_000
"""Which session holds the oldest is decided to the second: to the record would cost a look at each."""

_SESSIONS = "SELECT key, num_bytes FROM sessions WHERE key > ? ORDER BY key LIMIT ?"
_NUM_BYTES = "SELECT num_bytes FROM sessions WHERE key = ?"
_REMOVE = """
DELETE FROM sessions WHERE key = ? AND first_kept_seq > head_seq AND updated_unix_ms < ? RETURNING session_id
"""

Work: TypeAlias = Iterator[str | None]
"""Pauses now and then, to give nothing or the id of a session that is gone for good."""


class _Session(NamedTuple):
    key: int
    num_bytes: int


def in_steps(connection: apsw.Connection, work: Work, removed: list[str]) -> Iterator[None]:
    """Do work in transactions of about STEP_S, one a step. What it removed is told once its transaction is durable."""
    is_done = False
    while not is_done:
        gone: list[str] = []
        with transaction(connection):
            is_done = _work_until(time.perf_counter() + STEP_S, work, gone)
        removed += gone
        yield


def _work_until(deadline: float, work: Work, gone: list[str]) -> bool:
    """Work until the deadline. Returns whether all is done."""
    for session_id in work:
        if session_id is not None:
            gone.append(session_id)
        if time.perf_counter() > deadline:
            return False
    return True


class Trim:
    """One application of retention."""

    def __init__(self, connection: apsw.Connection, retention: Retention, *, now_unix_ms: int) -> None:
        self._connection = connection
        self._retention = retention
        self._now_unix_ms = now_unix_ms

    def work(self, *, slack_pages: int) -> Work:
        """Take what is past its limit, then give back to the file system the pages that are free beyond the slack."""
        for session in self._each_session():
            yield from self._trim_by_age(session)
            yield from self._trim_by_bytes(session)
            yield self._remove_if_gone(session)
        if self._retention.total_bytes is not None:
            yield from self._trim_in_all(self._retention.total_bytes)
        yield from self._shrink(slack_pages)

    def _each_session(self) -> Iterator[_Session]:
        last_key = 0
        while page := self._connection.execute(_SESSIONS, (last_key, _SCAN_SESSIONS)).fetchall():
            sessions = [_Session._make(row) for row in page]
            yield from sessions
            last_key = sessions[-1].key

    def _trim_by_age(self, session: _Session) -> Work:
        age_ms, trace_age_ms = self._retention.age_ms, self._retention.trace_age_ms
        if age_ms is not None:
            yield from self._trim_before(session, self._now_unix_ms - age_ms, trace_only=False)
        # A record that is protected, however old, loses its trace frames all the same.
        for trace_limit_ms in (age_ms, trace_age_ms):
            if trace_limit_ms is not None:
                yield from self._trim_before(session, self._now_unix_ms - trace_limit_ms, trace_only=True)

    def _trim_before(self, session: _Session, before_unix_ms: int, *, trace_only: bool) -> Work:
        oldest = oldest_unix_ms(self._connection, session.key, trace_only=trace_only)
        is_done = oldest is None or oldest >= before_unix_ms
        while not is_done:
            limits = Limits(before_unix_ms=before_unix_ms)
            is_done = cut(self._connection, session.key, limits, trace_only=trace_only).is_done
            yield None

    def _trim_by_bytes(self, session: _Session) -> Work:
        limit = self._retention.session_bytes
        if limit is None or session.num_bytes <= limit:
            return
        for trace_only in (True, False):
            is_done = False
            while not is_done:
                excess = self._connection.execute(_NUM_BYTES, (session.key,)).get - limit
                if excess <= 0:
                    return
                limits = Limits(num_bytes=excess)
                is_done = cut(self._connection, session.key, limits, trace_only=trace_only).is_done
                yield None

    def _remove_if_gone(self, session: _Session) -> str | None:
        if self._retention.age_ms is None:
            return None
        removed: str | None = self._connection.execute(
            _REMOVE,
            (session.key, self._now_unix_ms - self._retention.age_ms),
        ).get
        return removed

    def _trim_in_all(self, limit: int) -> Work:
        excess = -limit
        for session in self._each_session():
            excess += session.num_bytes
            yield None
        for trace_only in (True, False):
            if excess > 0:
                excess = yield from self._trim_oldest(excess, trace_only=trace_only)

    def _trim_oldest(self, excess: int, *, trace_only: bool) -> Generator[None, None, int]:
        """Take from whichever session holds the oldest, until the excess is gone. Returns what is left of it."""
        ages: list[tuple[int, int]] = []
        for session in self._each_session():
            self._add_age(ages, session.key, trace_only=trace_only)
            yield
        while excess > 0 and ages:
            oldest, session_key = heapq.heappop(ages)
            next_oldest = ages[0][0] if ages else oldest
            limits = Limits(before_unix_ms=next_oldest + _GRAIN_MS, num_bytes=excess)
            excess -= cut(self._connection, session_key, limits, trace_only=trace_only).num_bytes
            self._add_age(ages, session_key, trace_only=trace_only)
            yield
        return excess

    def _add_age(self, ages: list[tuple[int, int]], session_key: int, *, trace_only: bool) -> None:
        oldest = oldest_unix_ms(self._connection, session_key, trace_only=trace_only)
        if oldest is not None:
            heapq.heappush(ages, (oldest, session_key))

    def _shrink(self, slack_pages: int) -> Work:
        """Free pages are used again by the next records; only many of them are worth the copying."""
        surplus = self._connection.pragma("freelist_count") - slack_pages
        for _ in range(0, surplus, _VACUUM_PAGES):
            self._connection.execute(f"PRAGMA incremental_vacuum({_VACUUM_PAGES})").fetchall()
            yield None
