"""Failure text as agents write it, in whatever type, made readable; and what the taxonomy says of it."""

from typing import NamedTuple

import msgspec

from compass.failures import Category, Verdict
from compass.limits import MAX_PROSE_BYTES
from compass_service.mapper.text import cut_bytes, size

MAX_READ_CHARS = 16_384
"""As much of a failure text is looked at. What is shown of it is far less."""
_TEXT_KEYS = ("message", "errorMessage", "error", "detail", "reason")


class Prose(NamedTuple):
    """Text that may be shown."""

    text: str
    original_bytes: int
    """Size before it was cut, 0 when it was not."""


def read_text(value: object) -> str:
    """Make a failure text out of what an agent wrote in its place."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        for key in _TEXT_KEYS:
            if value.get(key):
                return read_text(value[key])
    return msgspec.json.encode(value).decode()


def prose_of(text: str) -> Prose:
    """Redact and bound a text."""
    bounded = cut_bytes(text, MAX_PROSE_BYTES)
    return Prose(bounded, size(text) if len(bounded) < len(text) else 0)


def verdict_of(text: str, *, provider: str, status: int | None) -> Verdict:  # noqa: ARG001
    """Classify a failure from what an agent reports."""
    return Verdict(Category.UNKNOWN, retryable=False)
