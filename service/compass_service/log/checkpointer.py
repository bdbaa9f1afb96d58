"""Moving the WAL into the database off the commit path, and keeping the WAL bounded all the same.

A thread of its own copies pages while commits go on. That alone never lets the WAL start over under a continuous
writer, since there is always a commit that is not copied yet; so the writer itself copies that rest and starts the WAL
over when it has grown past its bound, which is quick because the thread has copied nearly all of it.
"""

import threading
from contextlib import suppress
from pathlib import Path

import apsw

from compass_service.log.schema import connect_checkpointer
from compass_service.log.transaction import full_disk_named

_PAGE_BYTES = 4096

_PATIENCE_MS = 20
_LAST_PATIENCE_MS = 2_000
"""How long a commit waits for readers so that the WAL can start over: longer once it is twice as large as it should."""


class Checkpointer:
    """The checkpointing connection. `committed` and `truncate` are called by the writer's thread, between commits."""

    def __init__(self, data_dir: Path, *, wal_limit_bytes: int) -> None:
        self._limit_pages = wal_limit_bytes // _PAGE_BYTES
        self._copy_pages = self._limit_pages // 4
        self._connection = connect_checkpointer(data_dir)
        self._connection_lock = threading.Lock()
        self._wanted = threading.Event()
        self._is_closing = False
        self.has_rest = False
        """Whether the WAL holds commits that `rest` has not asked to copy."""
        self._num_copied = 0
        self._start_over_at = self._limit_pages
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="log-checkpointer", daemon=True)
        self._thread.start()

    def committed(self, wal_pages: int) -> None:
        """Learn how long the WAL is after a commit. Raises LogFullError, and what SQLite raised in the thread."""
        self.has_rest = True
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        if wal_pages < self._num_copied:  # it has started over
            self._num_copied = 0
            self._start_over_at = self._limit_pages
        if wal_pages >= self._start_over_at:
            self._start_over_at = wal_pages + self._copy_pages  # the next attempt, should this one be in a reader's way
            patience_ms = _PATIENCE_MS if wal_pages < 2 * self._limit_pages else _LAST_PATIENCE_MS
            self._checkpoint(apsw.SQLITE_CHECKPOINT_RESTART, patience_ms=patience_ms)
        elif wal_pages - self._num_copied >= self._copy_pages:
            self._num_copied = wal_pages
            self._wanted.set()

    def rest(self) -> None:
        """Use a quiet moment to copy what is left."""
        self.has_rest = False
        self._wanted.set()

    def truncate(self) -> None:
        """Copy all of the WAL and cut its file to nothing. Raises LogFullError."""
        self._checkpoint(apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def close(self) -> None:
        """End the thread, then close the connection. Blocks."""
        self._is_closing = True
        self._wanted.set()
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            if self._is_closing:
                return
            try:
                self._checkpoint(apsw.SQLITE_CHECKPOINT_PASSIVE)
                if not self.has_rest:
                    self._checkpoint(apsw.SQLITE_CHECKPOINT_TRUNCATE)
            except Exception as error:  # noqa: BLE001 - the writer's thread decides, it raises it from `committed`
                self._error = error

    def _checkpoint(self, mode: int, *, patience_ms: int = _PATIENCE_MS) -> None:
        # Busy means that a reader still needs the WAL as it is. Reads are short, so a later attempt will find it free.
        with self._connection_lock, full_disk_named(self._connection), suppress(apsw.BusyError):
            self._connection.set_busy_timeout(patience_ms)
            self._connection.wal_checkpoint(mode=mode)
