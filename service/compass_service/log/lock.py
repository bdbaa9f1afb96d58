"""The lock on a data directory: one process at a time, and it dies with the process."""

import fcntl
import os
from pathlib import Path

from compass_service.log.protocol import DataDirLockedError

LOCK_NAME = "compass.lock"


class DataDirLock:
    """Hold a data directory until `release` or the end of the process.

    Made with flock, not with POSIX locks: those do not exclude a second holder in the same process. The file itself is
    never unlinked, for then two processes could each hold a file of that name.
    """

    def __init__(self, data_dir: Path) -> None:
        self._fd = os.open(data_dir / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._fd, 32, 0).decode(errors="replace").strip()
            os.close(self._fd)
            raise DataDirLockedError(str(data_dir), f"pid {holder}" if holder else "pid unknown") from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let go. Call once."""
        os.close(self._fd)
