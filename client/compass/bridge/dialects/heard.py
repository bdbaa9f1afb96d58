"""What a line of an agent means: an inner event, or something of the agent's own protocol."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Inner:
    """An inner event, which goes into the session."""

    line: bytes
    kind: str
    """Its type."""
    is_user: bool = False
    """Whether it shows a user message for the first time."""
    text: str = ""
    """Text of that user message."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a command."""

    line: bytes
    command: str
    command_id: str
    succeeded: bool
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ready:
    """The agent says by itself that it can take commands."""

    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Dialog:
    """The agent asks a person, and blocks until it is answered."""

    line: bytes
    dialog_id: str


@dataclass(frozen=True, slots=True)
class Aside:
    """A line of the agent's protocol that says nothing here."""


Heard: TypeAlias = Inner | Answer | Ready | Dialog | Aside


@dataclass(frozen=True, slots=True)
class AgentState:
    """What an agent says of itself when it is asked."""

    is_streaming: bool = False
    is_compacting: bool = False
    num_pending: int = 0
    """Messages that it has taken and not shown."""

    @property
    def is_idle(self) -> bool:
        """Whether it works on nothing."""
        return not (self.is_streaming or self.is_compacting)
