"""Updates of the open assistant message: the inner events within `message_update`."""

from typing import TypeAlias

from compass_service.mapper.fields import Message, Tagged


class TextDelta(Tagged, tag="text_delta"):
    """A piece of the answer."""

    delta: str = ""
    content_index: int = 0


class ThinkingDelta(Tagged, tag="thinking_delta"):
    """A piece of the reasoning."""

    delta: str = ""
    content_index: int = 0


class TextEnd(Tagged, tag="text_end"):
    """The end of a block of the answer."""

    content: str = ""
    content_index: int = 0


class ThinkingEnd(Tagged, tag="thinking_end"):
    """The end of a block of the reasoning."""

    content: str = ""
    content_index: int = 0


class StreamError(Tagged, tag="error"):
    """A failure or an abort, told inside the stream."""

    reason: str = ""
    error: Message | None = None


class ToolCallStart(Tagged, tag="toolcall_start"):
    """A tool call begins in the answer."""


class ToolCallDelta(Tagged, tag="toolcall_delta"):
    """A piece of a tool call."""


class ToolCallEnd(Tagged, tag="toolcall_end"):
    """A tool call is whole."""


class TextStart(Tagged, tag="text_start"):
    """Says nothing that its deltas do not."""


class ThinkingStart(Tagged, tag="thinking_start"):
    """Says nothing that its deltas do not."""


class StreamStart(Tagged, tag="start"):
    """Says nothing that message_start does not."""


class StreamDone(Tagged, tag="done"):
    """Says nothing that message_end does not."""


Update: TypeAlias = (
    TextDelta
    | ThinkingDelta
    | TextEnd
    | ThinkingEnd
    | StreamError
    | ToolCallStart
    | ToolCallDelta
    | ToolCallEnd
    | TextStart
    | ThinkingStart
    | StreamStart
    | StreamDone
)
