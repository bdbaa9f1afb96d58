"""What a tool call is called, and what it put out."""

import msgspec

from compass_service.mapper import fields, inner
from compass_service.mapper.prose import Prose, shorten

MAX_TITLE_CHARS = 256
_TEXT_KEYS = ("text", "errorMessage", "message")


def title_of(event: inner.ToolStart) -> Prose:
    """Return the intent that the agent states, else the name of the tool."""
    args = event.args or fields.ToolArgs()
    candidates = (args.display_intent, event.intent, args.intent, event.tool_name)
    return shorten(next(filter(None, map(str.strip, candidates)), ""), MAX_TITLE_CHARS)


def output_of(result: object) -> str:
    """Return the text of a tool's result, trimmed, not redacted yet."""
    return _text_of(result).strip()


def _text_of(result: object) -> str:
    if result is None or isinstance(result, str):
        return result or ""
    if isinstance(result, dict):
        content = result.get("content")
        candidates = (_content_text(content), *(result.get(key) for key in _TEXT_KEYS))
        text = next((text for text in candidates if isinstance(text, str) and text), "")
        # A list of blocks without text is a result without text; anything else is shown as it is.
        if text or isinstance(content, list):
            return text
    return msgspec.json.encode(result).decode()


def _content_text(content: object) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = (block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text")
    return "\n".join(text for text in texts if isinstance(text, str))
