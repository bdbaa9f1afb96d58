"""What the tests of the command line share."""

import json
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> list[dict[str, Any]]:
        """Its output as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


def lines_of(name: str) -> bytes:
    """Read a recording as it is pushed."""
    return (DATA / "recordings" / f"{name}.jsonl").read_bytes()
