"""Room held back for the day the disk is full.

Without it nothing helps then: SQLite needs room to move its WAL into the database, and even to delete.
"""

import os
import time
from pathlib import Path

from compass_service.log.transaction import NO_ROOM

RESERVE_NAME = "compass.reserve"


_RETRY_S = 0.25


_LEAST_WAL_BYTES = 256 * 1024
_MOST_WAL_BYTES = 16 * 1024 * 1024


def wal_limit_bytes(reserve_bytes: int) -> int:
    """Say how large the WAL may grow before it starts over.

    The reserve must have room for all that the WAL has still to bring into the database, and for what retention writes
    then. A quarter leaves some for the group that passes the limit, and for readers that keep the WAL from starting
    over at once.
    """
    most = min(_MOST_WAL_BYTES, reserve_bytes // 4) if reserve_bytes else _MOST_WAL_BYTES
    return max(most, _LEAST_WAL_BYTES)


class Reserve:
    """A file of allocated but unused bytes. Not held means that the disk is full, or was when last looked at."""

    def __init__(self, data_dir: Path, num_bytes: int) -> None:
        if num_bytes < 0:
            raise ValueError(f"reserve_bytes must not be negative, got {num_bytes}")
        self._path = data_dir / RESERVE_NAME
        self._num_bytes = num_bytes
        self._retry_at = 0.0
        self.is_held = False
        self.take()

    @property
    def is_due(self) -> bool:
        """Whether it is time to look for room again: a few times a second, however many appends ask."""
        return time.monotonic() >= self._retry_at

    def take(self) -> None:
        """Allocate the file, all of it or nothing. Raises OSError for anything but want of room."""
        try:
            self._allocate()
        except OSError as error:
            self.give_up()
            if error.errno not in NO_ROOM:
                raise
        else:
            self.is_held = True

    def give_up(self) -> None:
        """Free the room for what must be written to make more."""
        self._path.unlink(missing_ok=True)
        self.is_held = False
        self._retry_at = time.monotonic() + _RETRY_S

    def _allocate(self) -> None:
        if self._num_bytes == 0:
            self._path.unlink(missing_ok=True)
            return
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(fd, min(os.fstat(fd).st_size, self._num_bytes))  # it may have been larger in an earlier run
            os.posix_fallocate(fd, 0, self._num_bytes)
        finally:
            os.close(fd)
