"""The embedded session log: SQLite in a data directory that one process holds.

Appends go to the writer's thread and come back once they are durable; reads go to a few threads with connections of
their own. All the rest, listeners and futures, lives on the event loop's thread.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

import apsw
import structlog

from compass_service.log.checkpointer import Checkpointer
from compass_service.log.listeners import Listeners
from compass_service.log.lock import DataDirLock
from compass_service.log.protocol import Listener, LogClosedError, LogError, Page, Record, StoredSession
from compass_service.log.reader import Readers, list_sessions, load_session, read_page
from compass_service.log.reserve import Reserve, wal_limit_bytes
from compass_service.log.retention import Retention
from compass_service.log.schema import DataDirUnusableError, connect_writer
from compass_service.log.store import Store
from compass_service.log.writer import Append, Outcomes, Settled, Trimming, Writer

T = TypeVar("T")

_log = structlog.get_logger(__name__)

RESERVE_BYTES = 64 * 1024 * 1024

_SLACK_PAGES = 4_096
"""Free pages that are kept for the next records, 16 MiB."""


def _now_unix_ms() -> int:
    return time.time_ns() // 1_000_000


class SqliteLog:
    """A `SessionLog` in one data directory. Made by `open`; every method is called on the event loop's thread."""

    def __init__(
        self,
        data_dir: Path,
        *,
        retention: Retention,
        reserve_bytes: int,
        now_unix_ms: Callable[[], int],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._listeners = Listeners()
        self._removed: list[str] = []
        self._is_closing = False
        self._closed = asyncio.Event()
        with ExitStack() as files:
            lock = DataDirLock(data_dir)
            files.callback(lock.release)
            wal_limit = wal_limit_bytes(reserve_bytes)
            self._store = Store(connect_writer(data_dir, wal_limit_bytes=wal_limit), retention)
            files.callback(self._store.close)
            reserve = Reserve(data_dir, reserve_bytes)
            checkpointer = Checkpointer(data_dir, wal_limit_bytes=wal_limit)
            files.callback(checkpointer.close)
            self._readers = Readers(data_dir)
            files.callback(self._readers.close)
            self._files = files.pop_all()
        outcomes = Outcomes(self._settle_soon, self._trimmed_soon, self._finish)
        self._writer = Writer(self._store, reserve, checkpointer, outcomes, now_unix_ms=now_unix_ms)
        self._writer.start()

    @classmethod
    def open(
        cls,
        data_dir: Path,
        *,
        retention: Retention,
        reserve_bytes: int = RESERVE_BYTES,
        now_unix_ms: Callable[[], int] = _now_unix_ms,
    ) -> Self:
        """Open the log in a data directory, which is made if it is not there. Blocks while it recovers from a crash.

        Retention is applied by `trim`, and by the log itself when the disk is full. `reserve_bytes` are held back for
        that day, and bound how much the WAL may put off: less than a few MiB may not be enough, and 0 holds none.

        Raises DataDirLockedError while another log holds it, SchemaVersionError if a newer service wrote it, and
        DataDirUnusableError if SQLite cannot open it.
        """
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            return cls(data_dir, retention=retention, reserve_bytes=reserve_bytes, now_unix_ms=now_unix_ms)
        except apsw.Error as error:
            _log.error("session_log_unusable", internal_cause=repr(error))
            raise DataDirUnusableError(str(data_dir)) from None

    @property
    def backend(self) -> str:
        """Kind of log, as GetServerInfo reports it."""
        return "sqlite"

    async def append(self, record: Record) -> None:
        """Commit a record whole. Returns once it is durable and every listener of the session has been given it.

        A caller that is cancelled gives up waiting only: the record commits or not as if it had not been.
        """
        if self._is_closing:
            raise LogClosedError
        if len(record.frames) != len(record.lanes):
            raise ValueError(f"a record of {len(record.lanes)} lanes has {len(record.frames)} frames")
        done: asyncio.Future[None] = self._loop.create_future()
        self._writer.put(Append(record, done))
        await done

    async def read(
        self,
        session_id: str,
        first_seq: int,
        *,
        end_seq: int,
        max_bytes: int,
        priority_only: bool = False,
    ) -> Page:
        """Read records that hold seqs in [first_seq, end_seq), whole, about max_bytes at most."""
        return await self._read(
            partial(
                read_page,
                session_id=session_id,
                first_seq=first_seq,
                end_seq=end_seq,
                max_bytes=max_bytes,
                priority_only=priority_only,
            ),
        )

    async def load(self, session_id: str) -> StoredSession | None:
        """Report one session, None if it does not exist."""
        return await self._read(partial(load_session, session_id=session_id))

    async def list(self, *, limit: int, before: tuple[int, str] | None = None) -> Sequence[StoredSession]:
        """List sessions, newest change first, after the (updated_unix_ms, session_id) that ended the page before."""
        return await self._read(partial(list_sessions, limit=limit, before=before))

    async def trim(self, *, now_unix_ms: int) -> Sequence[str]:
        """Apply retention once, between commits. Returns the sessions that were removed altogether since the last time.

        On a disk that is too full even to delete it ends early, and a later call goes on. Raises LogClosedError.
        """
        if self._is_closing:
            raise LogClosedError
        removed: list[str] = []
        steps = self._store.trim(now_unix_ms=now_unix_ms, slack_pages=_SLACK_PAGES, removed=removed)
        done: asyncio.Future[Sequence[str]] = self._loop.create_future()
        self._writer.put(Trimming(steps, removed, done))
        return await done

    def listen(self, session_id: str, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every record of a session that commits from now on, in order. Returns how to stop."""
        return self._listeners.add(session_id, listener)

    async def close(self) -> None:
        """Commit what was appended, then close. Idempotent: a second call waits for the same end."""
        if not self._is_closing:
            self._is_closing = True
            self._writer.stop()
        await self._closed.wait()

    async def _read(self, read: Callable[[apsw.Connection], T]) -> T:
        if self._is_closing:
            raise LogClosedError
        return await self._readers.run(read)

    def _settle_soon(self, group: Sequence[Settled]) -> None:
        self._call_soon(self._settle, group)

    def _trimmed_soon(self, trimming: Trimming, error: LogError | None) -> None:
        self._call_soon(self._trimmed, trimming, error)

    def _finish(self) -> None:
        self._files.close()
        self._call_soon(self._closed.set)

    def _call_soon(self, act: Callable[..., None], *args: object) -> None:
        """Cross from the writer's thread to the loop's."""
        # The loop is closed only if the program ended without closing the log: then nobody waits.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(act, *args)

    def _settle(self, group: Sequence[Settled]) -> None:
        for (record, done), error in group:
            if error is None:
                self._listeners.tell(record)
            if done.cancelled():
                continue
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)

    def _trimmed(self, trimming: Trimming, error: LogError | None) -> None:
        """Answer, or keep for the next answer what nobody has been told: no removed session may go unreported."""
        self._removed += trimming.removed
        done = trimming.done
        if done is None or done.cancelled():
            return
        if error is None:
            removed, self._removed = self._removed, []
            done.set_result(removed)
        else:
            done.set_exception(error)
