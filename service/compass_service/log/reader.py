"""Reading the log: connections of their own in a few threads, every read one short transaction.

A reader never keeps a statement open across an await: an open read transaction keeps the WAL from starting over.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue
from typing import TypeAlias, TypeVar, cast

import apsw
import structlog

from compass_service.frames import split
from compass_service.log.protocol import LogReadError, Page, Record, StoredSession
from compass_service.log.schema import SEQ_BITS, SEQ_MASK, connect_reader

T = TypeVar("T")

_log = structlog.get_logger(__name__)

NUM_READERS = 3

_RecordRow: TypeAlias = tuple[int, int, bytes, bytes]

_SESSION = """
SELECT session_id, head_seq, first_kept_seq, checkpoint, created_unix_ms, updated_unix_ms, num_bytes, num_trimmed
FROM sessions
"""
_LOAD = f"{_SESSION} WHERE session_id = ?"
_LIST = f"{_SESSION} ORDER BY updated_unix_ms DESC, session_id DESC LIMIT :limit"
_LIST_BEFORE = f"""
{_SESSION} WHERE (updated_unix_ms, session_id) < (:unix_ms, :session_id)
ORDER BY updated_unix_ms DESC, session_id DESC LIMIT :limit
"""

_HEAD = "SELECT key, head_seq FROM sessions WHERE session_id = ?"

# The record that holds the first seq may begin before it.
_READ = """
SELECT key, at_unix_ms, lanes, frames FROM records
WHERE key >= coalesce((SELECT max(key) FROM records WHERE key BETWEEN :base AND :first), :first)
    AND key < :end AND end_seq > :first_seq
"""
_READ_ALL = f"{_READ} ORDER BY key"
_READ_PRIORITY = f"{_READ} AND num_priority > 0 ORDER BY key"


class Readers:
    """A few reading connections, each used by one thread at a time."""

    def __init__(self, data_dir: Path) -> None:
        self._threads = ThreadPoolExecutor(NUM_READERS, thread_name_prefix="log-reader")
        self._idle: SimpleQueue[apsw.Connection] = SimpleQueue()
        for _ in range(NUM_READERS):
            self._idle.put(connect_reader(data_dir))

    async def run(self, read: Callable[[apsw.Connection], T]) -> T:
        """Run a read in one of the threads."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._run, read)

    def close(self) -> None:
        """Wait for reads that run, then close the connections. Blocks."""
        self._threads.shutdown()
        for _ in range(NUM_READERS):
            self._idle.get().close()

    def _run(self, read: Callable[[apsw.Connection], T]) -> T:
        connection = self._idle.get()  # never waits: there are as many connections as threads
        try:
            return read(connection)
        except apsw.Error as error:
            _log.error("session_log_read_failed", internal_cause=repr(error))
            raise LogReadError from None
        finally:
            self._idle.put(connection)


def load_session(connection: apsw.Connection, session_id: str) -> StoredSession | None:
    """Read one session."""
    row = connection.execute(_LOAD, (session_id,)).get
    return None if row is None else _session(row)


def list_sessions(
    connection: apsw.Connection,
    *,
    limit: int,
    before: tuple[int, str] | None,
) -> list[StoredSession]:
    """Read sessions, newest change first."""
    if before is None:
        rows = connection.execute(_LIST, {"limit": limit})
    else:
        rows = connection.execute(_LIST_BEFORE, {"limit": limit, "unix_ms": before[0], "session_id": before[1]})
    return [_session(row) for row in rows.fetchall()]


def read_page(
    connection: apsw.Connection,
    session_id: str,
    first_seq: int,
    *,
    end_seq: int,
    max_bytes: int,
    priority_only: bool,
) -> Page:
    """Read records of a session.

    The head is read before the records are, so that what is missing up to it is gone and not merely yet to come.
    """
    session: tuple[int, int] | None = connection.execute(_HEAD, (session_id,)).get
    if session is None:
        return Page((), first_seq)
    session_key, head_seq = session
    end_seq = min(end_seq, head_seq + 1)
    if end_seq <= first_seq:
        return Page((), first_seq)
    base = session_key << SEQ_BITS
    bounds = {"base": base, "first": base | first_seq, "end": base | end_seq, "first_seq": first_seq}
    statement = _READ_PRIORITY if priority_only else _READ_ALL
    with closing(connection.execute(statement, bounds)) as cursor:
        rows, is_full = _take(cast("Iterator[_RecordRow]", cursor), max_bytes)
    records = [
        Record(session_id, key & SEQ_MASK, lanes, tuple(split(frames)), b"", at_unix_ms)
        for key, at_unix_ms, lanes, frames in rows
    ]
    last_seen = records[-1].end_seq if records else end_seq
    return Page(records, last_seen if is_full else max(end_seq, last_seen))


def _take(rows: Iterator[_RecordRow], max_bytes: int) -> tuple[list[_RecordRow], bool]:
    """Take rows until a page is full, at least one. Returns whether there were more."""
    taken: list[_RecordRow] = []
    num_bytes = 0
    for row in rows:
        num_bytes += len(row[-1])
        if taken and num_bytes > max_bytes:
            return taken, True
        taken.append(row)
    return taken, False


def _session(row: Sequence[object]) -> StoredSession:
    session = StoredSession(*cast("tuple[str, int, int, bytes, int, int, int, int]", row))
    return session._replace(first_kept_seq=0) if session.head_seq == 0 else session
