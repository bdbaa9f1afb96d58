"""Text of failures and tools that may be stored and shown: readable in every form, redacted, and bounded."""

from typing import NamedTuple

from compass.failures import readable, redact
from compass.failures.bounds import cut_prose
from compass_service.mapper.text import cut_chars, size

REDACTION_MARGIN_CHARS = 2 * 1024
"""How far behind the text that is shown a text is cut before it is redacted: half of it is more than a credential is
long, and one that a cut goes through would not be recognised."""


class Prose(NamedTuple):
    """Text that may be shown."""

    text: str
    original_bytes: int = 0
    """Size before it was cut, 0 when it was not."""


def prose_of(value: object) -> Prose:
    """Return failure text, of whatever type, as prose of at most 2,048 bytes."""
    text, was_cut = cut_prose(value)
    return Prose(text, size(readable(value)) if was_cut else 0)


def redact_beginning(text: str, num_chars: int) -> str:
    """Redact a text of any length, or as much of its beginning as makes `num_chars` characters."""
    window = num_chars + REDACTION_MARGIN_CHARS
    redacted = redact(text[:window])
    while window < len(text) and len(redacted) < num_chars + REDACTION_MARGIN_CHARS // 2:
        window *= 2
        redacted = redact(text[:window])
    return redacted


def shorten(text: str, max_chars: int) -> Prose:
    """Redact a tool's text and cut it to a number of characters."""
    redacted = redact_beginning(text, max_chars)
    shown = cut_chars(redacted, max_chars)
    return Prose(shown, size(text) if shown is not redacted else 0)
