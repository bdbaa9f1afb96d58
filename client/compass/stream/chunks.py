"""What a stream yields: chunks, and beside them the facts of the answer that are known once it has ended."""

from dataclasses import dataclass
from enum import StrEnum


class ChunkKind(StrEnum):
    """What a chunk is a piece of."""

    TEXT = "text"
    """The answer, a refusal's words included."""
    REASONING = "reasoning"
    """What the model thought, or planned, before it answered."""
    TOOL_CALL = "tool_call"
    """A whole call of a tool."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One piece of an answer. Text and reasoning come as they arrive; a tool call comes once, when it is whole."""

    kind: ChunkKind
    text: str = ""
    """The piece. Empty for a tool call, never empty else."""
    id: str | None = None
    """The tool call's id; None where the provider gives none, and for text."""
    name: str | None = None
    """The tool's name; None for text."""
    arguments: str | None = None
    """The tool call's arguments as the model wrote them, JSON text as a rule; None for text."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, as the provider counted them. `input_tokens` leaves out what the cache gave or took."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


@dataclass(slots=True)
class Answer:
    """What is known of an answer beside its chunks. Filled while the stream is read."""

    provider: str | None = None
    """The dialect that the stream is read in; None until a guarded stream shows it."""
    model: str | None = None
    """The model that was asked for, or that the provider names."""
    stop_reason: str | None = None
    """The provider's own word for why the answer ended; None until it says so."""
    usage: Usage = Usage()
    """All zero until the provider counts, which some do only on request."""

    def take_over(self, other: "Answer") -> None:
        """Become equal to another answer: that of the attempt that counts now."""
        self.provider, self.model = other.provider, other.model
        self.stop_reason, self.usage = other.stop_reason, other.usage
