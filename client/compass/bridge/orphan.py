"""An agent process that a killed bridge has left behind: named so that no other process can be taken for it."""

import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True, slots=True)
class Orphan:
    """A process by its id and its start, since ids are used again."""

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """Name a running process. None where the system does not tell when it started."""
        started = _started(pid)
        return None if started is None else cls(pid, started)

    @classmethod
    def from_json(cls, value: object) -> Self | None:
        """Read what `to_json` wrote."""
        match value:
            case {"pid": int(pid), "started": str(started)}:
                return cls(pid, started)
            case _:
                return None

    def to_json(self) -> dict[str, object]:
        """Write it down."""
        return {"pid": self.pid, "started": self.started}

    def end(self) -> bool:
        """Kill the process and what it has started, if it lives still. Returns whether it did."""
        if _started(self.pid) != self.started:
            return False
        with contextlib.suppress(ProcessLookupError):
            # A bridge starts its agent as the leader of a group.
            os.killpg(self.pid, signal.SIGKILL)
        return True


def _started(pid: int) -> str | None:
    """Return when a process started, in clock ticks since the system did. None when it does not run."""
    try:
        fields = (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]
