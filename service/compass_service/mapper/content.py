"""What a whole message says: its text, its reasoning, whether it asks for a tool."""

from compass.failures import redact
from compass_service.mapper.fields import Message
from compass_service.mapper.text import cut_bytes

MAX_NAME_BYTES = 256
_SILENT_BLOCKS = frozenset({"text", "thinking", "fallback"})


def text_of(message: Message, *, joint: str = "") -> str:
    """Return the text of a message."""
    if isinstance(message.content, str):
        return message.content
    return joint.join(block.text for block in message.content if block.type == "text")


def thinking_of(message: Message) -> str:
    """Return the reasoning of a message."""
    if isinstance(message.content, str):
        return ""
    return "".join(block.thinking for block in message.content if block.type == "thinking")


def has_tool_call(message: Message) -> bool:
    """Tell whether a message asks for a tool."""
    return not isinstance(message.content, str) and any(block.type == "toolCall" for block in message.content)


def has_content(message: Message) -> bool:
    """Tell whether a message says anything: text, reasoning, a tool call, or a block of a kind that is not known."""
    if isinstance(message.content, str):
        return bool(message.content)
    return any(block.text or block.thinking or block.type not in _SILENT_BLOCKS for block in message.content)


def name_of(name: str) -> str:
    """Return a name whole, or nothing if it is too long to be one or holds a credential."""
    return name if cut_bytes(name, MAX_NAME_BYTES) == name == redact(name) else ""
