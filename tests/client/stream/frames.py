"""How samples are written: frames, events and chunks in short."""

import json
from dataclasses import dataclass

from compass.failures import Category
from compass.stream import Chunk, ChunkKind

ERROR_TEXT = "NEVER-A-CHUNK"
"""Stands in every error message of the samples."""


def sse(*frames: object, end: str = "\n") -> bytes:
    """Events of data alone. A text is taken as it is, anything else as JSON."""
    return "".join(f"data: {_data(frame)}{end}{end}" for frame in frames).encode()


def named(*frames: dict[str, object]) -> bytes:
    """Events that carry their `type` as event name too."""
    return "".join(f"event: {frame['type']}\ndata: {_data(frame)}\n\n" for frame in frames).encode()


def ndjson(*frames: object) -> bytes:
    return "".join(f"{_data(frame)}\n" for frame in frames).encode()


def _data(frame: object) -> str:
    return frame if isinstance(frame, str) else json.dumps(frame, separators=(",", ":"), ensure_ascii=False)


def choice(delta: dict[str, object], stop: str | None = None) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": stop}]}


def text(*pieces: str) -> list[Chunk]:
    return [Chunk(ChunkKind.TEXT, piece) for piece in pieces]


def reasoning(*pieces: str) -> list[Chunk]:
    return [Chunk(ChunkKind.REASONING, piece) for piece in pieces]


def call(call_id: str | None, name: str, arguments: str) -> list[Chunk]:
    return [Chunk(ChunkKind.TOOL_CALL, id=call_id, name=name, arguments=arguments)]


@dataclass(frozen=True)
class Sample:
    """One body and what must come of it."""

    name: str
    dialect: str
    body: bytes
    chunks: list[Chunk]
    category: Category | None = None
    """None: the answer is whole."""
    retryable: bool = False
    end_mark: bytes = b""
    """Last bytes without which a whole answer is not whole."""


DONE = "[DONE]"
ARGUMENTS = '{"city": "Ulm"}'
