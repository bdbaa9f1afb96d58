"""The embedded session log: SQLite in a data directory that one process holds.

Appends go to the writer's thread and come back once they are durable; reads go to a few threads with connections of
their own. All the rest, listeners and futures, lives on the event loop's thread.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

import apsw

from compass_service.log.listeners import Listeners
from compass_service.log.lock import DataDirLock
from compass_service.log.protocol import Listener, LogClosedError, Page, Record, StoredSession
from compass_service.log.reader import Readers, list_sessions, load_session, read_page
from compass_service.log.retention import Retention
from compass_service.log.schema import connect_writer
from compass_service.log.store import Store
from compass_service.log.writer import Append, Settled, Writer

T = TypeVar("T")


class SqliteLog:
    """A `SessionLog` in one data directory. Made by `open`; every method is called on the event loop's thread."""

    def __init__(self, data_dir: Path, *, retention: Retention, loop: asyncio.AbstractEventLoop) -> None:
        self._retention = retention
        self._loop = loop
        self._listeners = Listeners()
        self._is_closing = False
        self._closed = asyncio.Event()
        with ExitStack() as files:
            lock = DataDirLock(data_dir)
            files.callback(lock.release)
            store = Store(connect_writer(data_dir))
            files.callback(store.close)
            self._readers = Readers(data_dir)
            files.callback(self._readers.close)
            self._files = files.pop_all()
        self._writer = Writer(store, settle=self._settle_soon, finish=self._finish)
        self._writer.start()

    @classmethod
    def open(cls, data_dir: Path, *, retention: Retention) -> Self:
        """Open the log in a data directory, which is made if it is not there. Blocks while it recovers from a crash.

        Raises DataDirLockedError while another log holds it, SchemaVersionError if a newer service wrote it.
        """
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        return cls(data_dir, retention=retention, loop=asyncio.get_running_loop())

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
        """Cross from the writer's thread to the loop's, once a group."""
        # The loop is closed only if the program ended without closing the log: then nobody waits.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._settle, group)

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

    def _finish(self) -> None:
        """End in the writer's thread, since closing files blocks."""
        self._files.close()
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._closed.set)
