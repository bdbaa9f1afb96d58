"""How a stream went: what came of it, and what it raised."""

from dataclasses import dataclass, field

from client.stream.frames import ERROR_TEXT
from compass.stream import Chunk, ChunkStream, ModelStreamError


@dataclass
class Outcome:
    chunks: list[Chunk] = field(default_factory=list)
    error: ModelStreamError | None = None

    @property
    def is_whole(self) -> bool:
        return self.error is None


async def outcome_of(stream: ChunkStream) -> Outcome:
    """Read a stream to its end. Anything raised but ModelStreamError is no outcome, and goes on."""
    outcome = Outcome()
    async with stream as chunks:
        try:
            async for chunk in chunks:
                outcome.chunks.append(chunk)
        except ModelStreamError as error:
            outcome.error = error
    assert not any(ERROR_TEXT in f"{chunk.text}{chunk.arguments}" for chunk in outcome.chunks)
    assert outcome.error is None or not (outcome.error.retryable and outcome.chunks)
    return outcome
