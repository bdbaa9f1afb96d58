"""The stream contract: a provider's answer either comes whole, or raises one classified `ModelStreamError`.

`open_stream` does the HTTP, `guard` holds an official SDK's stream to the same contract, `retrying` tries again what
may be, and `traced` publishes the run. httpx and tenacity come with the extra `stream`, imported on first use.
"""

from compass.stream.chunks import Answer, Chunk, ChunkKind, Usage
from compass.stream.contract import ChunkStream, StreamClosedError
from compass.stream.dialects import DIALECTS
from compass.stream.errors import ModelStreamError
from compass.stream.guard import guard
from compass.stream.http import open_stream
from compass.stream.retry import Retry, RetryingStream, retrying
from compass.stream.traced import traced

__all__ = [
    "DIALECTS",
    "Answer",
    "Chunk",
    "ChunkKind",
    "ChunkStream",
    "ModelStreamError",
    "Retry",
    "RetryingStream",
    "StreamClosedError",
    "Usage",
    "guard",
    "open_stream",
    "retrying",
    "traced",
]
