"""The log's tables as the writer's thread changes them. Knows SQL; nothing of threads, futures or full disks."""

from collections.abc import Sequence

import apsw

from compass_service.frames import LANE_PRIORITY
from compass_service.log.protocol import HeadMovedError, LogError, Record
from compass_service.log.schema import SEQ_BITS

_CONTINUE = """
UPDATE sessions
SET head_seq = :head_seq, updated_unix_ms = :at_unix_ms, num_bytes = num_bytes + :num_bytes, checkpoint = :checkpoint
WHERE session_id = :session_id AND head_seq = :first_seq - 1
RETURNING key
"""

_BEGIN = """
INSERT INTO sessions VALUES
    (NULL, :session_id, :head_seq, 1, 1, :at_unix_ms, :at_unix_ms, :num_bytes, 0, :checkpoint)
ON CONFLICT (session_id) DO UPDATE
SET head_seq = :head_seq, updated_unix_ms = :at_unix_ms, num_bytes = num_bytes + :num_bytes, checkpoint = :checkpoint
WHERE head_seq = 0
RETURNING key
"""

_ADD_RECORD = "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?)"


class Store:
    """The writing connection and what is done with it."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def commit(self, records: Sequence[Record]) -> list[LogError | None]:
        """Append records in one transaction. Returns for each what refused it, None if it is durable.

        Raises what SQLite raises; then nothing was stored.
        """
        with Transaction(self._connection):
            return [self._append(record) for record in records]

    def head_seq(self, session_id: str) -> int:
        """Return the newest seq of a session, 0 if there is none."""
        found = self._connection.execute("SELECT head_seq FROM sessions WHERE session_id = ?", (session_id,)).get
        return 0 if found is None else int(found)

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
        }
        statement = _BEGIN if record.first_seq == 1 else _CONTINUE
        key = self._connection.execute(statement, facts).get
        if key is None:
            head_seq = self.head_seq(record.session_id)
            return HeadMovedError(record.session_id, head_seq=head_seq, first_seq=record.first_seq)
        if record.lanes:
            self._add_record(key, record, frames)
        return None

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


class Transaction:
    """A write transaction: committed at the end of the block, rolled back if the block or the commit fails."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        """Begin, and take the write lock at once: a read transaction cannot be raised to a write one later."""
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the transaction."""
        try:
            if kind is None:
                self._connection.execute("COMMIT")
        finally:
            # A full disk has rolled back already, and a second ROLLBACK would hide the error that matters.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
