"""What inner events are made of, as the mapper reads it. What is not declared is skipped by the decoder, never built.

Every field has a default, so that a missing one is no error. `object` marks what agents write in more than one type.
"""

import msgspec


class Read(msgspec.Struct, rename="camel", gc=False):
    """Base of what is read: camelCase on the wire, nothing required."""


class Tagged(Read, tag_field="type"):
    """Base of what is told apart by its `type`."""


class Block(Read):
    """One content block of a message or a tool result."""

    type: str = ""
    text: str = ""
    thinking: str = ""


class Cost(Read):
    """What a message cost, in dollars."""

    total: float = 0.0


class MessageUsage(Read):
    """What a message used."""

    input: float = 0
    output: float = 0
    cache_read: float = 0
    cache_write: float = 0
    cost: Cost | None = None


class Injection(Read):
    """How and by whom a message was put into a running session."""

    kind: str = ""
    from_handle: str = msgspec.field(default="", name="from")
    traceparent: str = ""


class Message(Read):
    """A user, assistant, tool-result or other message."""

    role: str = ""
    content: str | list[Block] = ""
    timestamp: float = 0
    provider: str = ""
    model: str = ""
    usage: MessageUsage | None = None
    stop_reason: str = ""
    error_message: object = None
    error_status: object = None
    error_category: object = None
    error_retryable: object = None
    error_retry_after_ms: object = None
    abort_origin: str = ""
    failure: object = None
    steering: bool = False
    deliver_as: str = ""
    injection: Injection | None = None
    display: bool = True


class EditArgs(Read):
    """One replacement that a tool call asks for."""

    old_text: str | None = None
    new_text: str | None = None


class ToolArgs(Read):
    """What is read of a tool call's arguments."""

    display_intent: str = msgspec.field(default="", name="_i")
    intent: str = ""
    path: str = ""
    edits: list[EditArgs] = msgspec.field(default_factory=list)


class Todo(Read):
    """One task of a plan."""

    content: str = ""
    status: str = ""
