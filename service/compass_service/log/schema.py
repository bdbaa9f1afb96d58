"""What the log looks like inside SQLite, and how its connections are opened.

A record's key is its session's key and its first seq in one integer, so that the records of a session lie side by side
in the one tree that holds them, and a record needs no second index.
"""

from pathlib import Path

import apsw

from compass_service.log.protocol import LogError

DB_NAME = "sessions.db"
SCHEMA_VERSION = 1

SEQ_BITS = 36
"""Low bits of a record's key that are its first seq: 68 thousand million frames a session, 134 million sessions."""
SEQ_MASK = (1 << SEQ_BITS) - 1

_BUSY_MS = 30_000
"""How long to wait for another program that has the database locked, such as somebody's sqlite3 shell."""

_SCHEMA = """
CREATE TABLE sessions (
    key INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL UNIQUE,
    head_seq INTEGER NOT NULL,
    first_kept_seq INTEGER NOT NULL,  -- head_seq + 1 when nothing is kept
    trace_from_seq INTEGER NOT NULL,  -- no record that begins before it keeps a trace frame
    created_unix_ms INTEGER NOT NULL,
    updated_unix_ms INTEGER NOT NULL,
    num_bytes INTEGER NOT NULL,
    num_trimmed INTEGER NOT NULL,
    protected_from_seq INTEGER,  -- no priority frame from here on is taken; NULL = any may be
    checkpoint BLOB NOT NULL
) STRICT;

CREATE INDEX sessions_by_change ON sessions (updated_unix_ms, session_id);

CREATE TABLE records (
    key INTEGER PRIMARY KEY,  -- sessions.key << 36 | first_seq
    end_seq INTEGER NOT NULL,
    num_trace INTEGER NOT NULL,  -- of the frames kept
    num_priority INTEGER NOT NULL,
    at_unix_ms INTEGER NOT NULL,
    lanes BLOB NOT NULL,
    frames BLOB NOT NULL  -- joined; those that retention took are not in it
) STRICT;

CREATE INDEX priority_records ON records (key) WHERE num_priority > 0;
"""


class DataDirUnusableError(LogError):
    """The files in the data directory cannot be opened as a session log. The cause is in the service's own log."""

    def __init__(self, data_dir: str) -> None:
        super().__init__(f"data directory {data_dir} cannot be opened as a session log")
        self.data_dir = data_dir


class SchemaVersionError(LogError):
    """The data directory was written by a newer version of the service."""

    def __init__(self, *, found: int) -> None:
        super().__init__(f"the session log has schema version {found}, this service knows up to {SCHEMA_VERSION}")
        self.found = found


def connect_writer(data_dir: Path, *, wal_limit_bytes: int) -> apsw.Connection:
    """Open the one connection that writes, and make the tables if they are not there. Raises SchemaVersionError."""
    connection = apsw.Connection(str(data_dir / DB_NAME))
    try:
        _prepare(connection, wal_limit_bytes)
    except Exception:
        connection.close()
        raise
    return connection


def _prepare(connection: apsw.Connection, wal_limit_bytes: int) -> None:
    connection.set_busy_timeout(_BUSY_MS)
    version = connection.pragma("user_version")
    if version > SCHEMA_VERSION:
        raise SchemaVersionError(found=version)
    connection.pragma("auto_vacuum", "INCREMENTAL")  # heeded only before the first table
    connection.pragma("journal_mode", "WAL")
    connection.pragma("journal_size_limit", wal_limit_bytes)  # to what its file is cut when it starts over
    _set_durable(connection)
    if version == 0:
        with connection:
            connection.execute(_SCHEMA)
            connection.pragma("user_version", SCHEMA_VERSION)


def connect_checkpointer(data_dir: Path) -> apsw.Connection:
    """Open a connection that moves the WAL into the database."""
    connection = apsw.Connection(str(data_dir / DB_NAME), flags=apsw.SQLITE_OPEN_READWRITE)
    _set_durable(connection)
    return connection


def connect_reader(data_dir: Path) -> apsw.Connection:
    """Open a connection that only reads."""
    connection = apsw.Connection(str(data_dir / DB_NAME), flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(_BUSY_MS)
    return connection


def _set_durable(connection: apsw.Connection) -> None:
    connection.pragma("synchronous", "FULL")  # NORMAL loses acknowledged records in a power cut
    connection.wal_autocheckpoint(0)  # a checkpoint inside a commit makes that commit wait
