"""Who a bridge is to the service: a producer that outlives it, and an epoch for each agent process."""

import errno
import json
import os
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from compass.bridge.orphan import Orphan


def _new_producer_id() -> str:
    return f"bridge-{uuid.uuid4().hex[:16]}"


@dataclass(slots=True)
class Identity:
    """The producer of one spool, as it is written down."""

    path: Path
    producer_id: str = field(default_factory=_new_producer_id)
    epoch: int = 0
    """Epoch of the newest agent process. 0 = there was none."""
    process: Orphan | None = None
    """The agent process of this epoch, if it was started and the system can tell it from others."""

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read it, or begin a new one. Raises OSError, also for a file that is none."""
        try:
            written = json.loads(path.read_bytes())
        except FileNotFoundError:
            return cls(path)
        except ValueError:
            written = None
        match written:
            case {"producer_id": str(producer_id), "epoch": int(epoch), "process": process}:
                return cls(path, producer_id, epoch, Orphan.from_json(process))
            case _:
                raise OSError(errno.EBADMSG, "this does not hold a producer", str(path))

    def begin_epoch(self) -> None:
        """Begin an epoch, which fences the one before for ever."""
        self.epoch = max(self.epoch + 1, time.time_ns() // 1_000)
        self.process = None
        self.save()

    def save(self) -> None:
        """Write it down, whole or not at all."""
        process = None if self.process is None else self.process.to_json()
        new = self.path.with_suffix(".new")
        with new.open("w") as file:
            json.dump({"producer_id": self.producer_id, "epoch": self.epoch, "process": process}, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path)
