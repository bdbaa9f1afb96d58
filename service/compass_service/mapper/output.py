"""What a tool call is called, and what it put out: readable, redacted, cut."""

import msgspec

from compass.limits import MAX_TOOL_OUTPUT_CHARS
from compass_service.mapper import inner
from compass_service.mapper.failure_text import Prose
from compass_service.mapper.text import cut_chars, size

MAX_TITLE_CHARS = 256
_TEXT_KEYS = ("text", "errorMessage", "message")


def title_of(event: inner.ToolStart | inner.ToolUpdate) -> Prose:
    """Return the intent that the agent states, else the name of the tool."""
    args = event.args or inner.ToolArgs()
    title = (args.display_intent or event.intent or args.intent or event.tool_name).strip()
    return _shorten(title, MAX_TITLE_CHARS)


def output_of(result: object) -> Prose:
    """Return the text of a tool's result."""
    return _shorten(_text_of(result).strip(), MAX_TOOL_OUTPUT_CHARS)


def _shorten(text: str, max_chars: int) -> Prose:
    cut = cut_chars(text, max_chars)
    return Prose(cut, size(text) if cut is not text else 0)


def _text_of(result: object) -> str:
    if result is None:
        return ""
    if isinstance(result, str):
        return result
    if not isinstance(result, dict):
        return msgspec.json.encode(result).decode()
    content = result.get("content")
    if isinstance(content, str) and content:
        return content
    texts = [text for block in content if (text := _block_text(block))] if isinstance(content, list) else []
    if texts:
        return "\n".join(texts)
    for key in _TEXT_KEYS:
        text = result.get(key)
        if isinstance(text, str) and text:
            return text
    # A list of blocks without text is a result without text; anything else is shown as it is.
    return "" if isinstance(content, list) else msgspec.json.encode(result).decode()


def _block_text(block: object) -> str:
    if not (isinstance(block, dict) and block.get("type") == "text"):
        return ""
    text = block.get("text")
    return text if isinstance(text, str) else ""
