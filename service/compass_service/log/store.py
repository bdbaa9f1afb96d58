"""The log's tables as the writer's thread changes them. Knows SQL; nothing of threads, futures or full disks."""

from collections.abc import Iterator, Sequence

import apsw

from compass_service.frames import LANE_PRIORITY
from compass_service.log.protocol import HeadMovedError, LogError, LogFullError, Record
from compass_service.log.retention import Retention
from compass_service.log.schema import SEQ_BITS
from compass_service.log.transaction import transaction
from compass_service.log.trim import Trim, in_steps

_CONTINUE = """
UPDATE sessions
SET head_seq = :head_seq, updated_unix_ms = :at_unix_ms, num_bytes = num_bytes + :num_bytes, checkpoint = :checkpoint,
    protected_from_seq = :protected_from_seq
WHERE session_id = :session_id AND head_seq = :first_seq - 1
RETURNING key
"""

_BEGIN = """
INSERT INTO sessions VALUES
    (NULL, :session_id, :head_seq, 1, 1, :at_unix_ms, :at_unix_ms, :num_bytes, 0, :protected_from_seq, :checkpoint)
ON CONFLICT (session_id) DO UPDATE
SET head_seq = :head_seq, updated_unix_ms = :at_unix_ms, num_bytes = num_bytes + :num_bytes, checkpoint = :checkpoint,
    protected_from_seq = :protected_from_seq
WHERE head_seq = 0
RETURNING key
"""

_HEAD = "SELECT head_seq FROM sessions WHERE session_id = ?"

_ADD_RECORD = "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?)"


class Store:
    """The writing connection and what is done with it."""

    def __init__(self, connection: apsw.Connection, retention: Retention) -> None:
        self.wal_pages = 0
        """Length of the WAL after the last commit."""
        self._connection = connection
        self._retention = retention
        connection.set_wal_hook(self._note_wal)

    def commit(self, records: Sequence[Record]) -> list[LogError | None]:
        """Append records in one transaction. Returns for each what refused it, None if it is durable.

        Raises LogFullError, and else what SQLite raises; then nothing was stored.
        """
        with transaction(self._connection):
            return [self._append(record) for record in records]

    def refuse(self, records: Sequence[Record]) -> list[LogError]:
        """Say for each record why it is not stored: the disk is full, or it waits behind one that was not stored."""
        return [self._moved(record) or LogFullError() for record in records]

    def trim(self, *, now_unix_ms: int, slack_pages: int, removed: list[str]) -> Iterator[None]:
        """Apply retention in short transactions, one a step. Adds the sessions that are gone for good to `removed`."""
        work = Trim(self._connection, self._retention, now_unix_ms=now_unix_ms).work(slack_pages=slack_pages)
        return in_steps(self._connection, work, removed)

    def close(self) -> None:
        """Close the connection; the last one to close moves the WAL into the database."""
        self._connection.close()

    def _append(self, record: Record) -> LogError | None:
        frames = b"".join(record.frames)
        facts = {
            "session_id": record.session_id,
            "first_seq": record.first_seq,
            "head_seq": record.end_seq - 1,
            "at_unix_ms": record.at_unix_ms,
            "num_bytes": len(frames),
            "checkpoint": record.checkpoint,
            "protected_from_seq": record.protected_from_seq,
        }
        statement = _BEGIN if record.first_seq == 1 else _CONTINUE
        key = self._connection.execute(statement, facts).get
        if key is None:
            return self._moved(record)
        if record.lanes:
            self._add_record(key, record, frames)
        return None

    def _moved(self, record: Record) -> HeadMovedError | None:
        head_seq = self._connection.execute(_HEAD, (record.session_id,)).get or 0
        if record.first_seq == head_seq + 1:
            return None
        return HeadMovedError(record.session_id, head_seq=head_seq, first_seq=record.first_seq)

    def _note_wal(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self.wal_pages = pages
        return apsw.SQLITE_OK

    def _add_record(self, session_key: int, record: Record, frames: bytes) -> None:
        num_priority = record.lanes.count(LANE_PRIORITY)
        row = (
            session_key << SEQ_BITS | record.first_seq,
            record.end_seq,
            len(record.lanes) - num_priority,
            num_priority,
            record.at_unix_ms,
            record.lanes,
            frames,
        )
        self._connection.execute(_ADD_RECORD, row)
