"""Write transactions, and telling a full disk from a broken one."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from compass_service.log.protocol import LogFullError

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """Commit at the end of the block; store nothing if the block or the commit fails. Raises LogFullError."""
    with full_disk_named(connection):
        # Takes the write lock at once: a transaction that began by reading could not be raised to a writing one.
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            connection.execute("COMMIT")
        finally:
            # A full disk has rolled back already, and a second ROLLBACK would hide the error that matters.
            if connection.in_transaction:
                connection.execute("ROLLBACK")


@contextmanager
def full_disk_named(connection: apsw.Connection) -> Iterator[None]:
    """Raise LogFullError for what SQLite raises because there is no room: SQLITE_FULL, but some I/O errors too."""
    try:
        yield
    except apsw.FullError:
        raise LogFullError from None
    except apsw.IOError:
        if connection.system_errno in NO_ROOM:
            raise LogFullError from None
        raise
