"""The frames that each recording of a real agent gives, as files that a person can read and compare.

Regenerate with `PYTHONPATH=client:service python tests/golden.py`, then read the difference before you commit it.
"""

import json
from pathlib import Path

from google.protobuf.json_format import MessageToDict

from compass.v1 import compass_pb2 as pb
from compass_service.mapper import Mapper

DATA = Path(__file__).parent / "data"
RECORDINGS = sorted((DATA / "recordings").glob("*.jsonl"))
FIRST_MS = 1_796_000_000_000
STEP_MS = 10


def golden_path(recording: Path) -> Path:
    """Return where the frames of a recording are kept."""
    return DATA / "golden" / recording.name


def render(recording: Path) -> str:
    """Map a recording with a fixed clock, one step an event: canonical protobuf JSON, one frame a line."""
    mapper = Mapper(recording.stem)
    lines = []
    events = [line for line in recording.read_text(encoding="utf-8").split("\n") if line]
    for number, event in enumerate(events, 1):
        for draft in mapper.map(event, now_ms=FIRST_MS + number * STEP_MS):
            frame = pb.AgentSessionFrame.FromString(draft.body)
            frame.seq = len(lines) + 1
            lines.append(json.dumps(MessageToDict(frame), ensure_ascii=False) + "\n")
    return "".join(lines)


if __name__ == "__main__":
    for path in RECORDINGS:
        golden_path(path).parent.mkdir(exist_ok=True)
        golden_path(path).write_text(render(path), encoding="utf-8")
        print(golden_path(path))
