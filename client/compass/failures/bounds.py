"""How free text becomes public: readable, redacted, valid UTF-8, and no longer than its bound.

Only prose is cut. An identity that does not fit is dropped whole (see `grammars`), never shortened into another one.
"""

import json
from typing import NamedTuple

from compass.failures.redaction import redact
from compass.limits import MAX_PROSE_BYTES

_READ_CHARS = 32 * MAX_PROSE_BYTES
"""Prose is redacted before it is cut, but no more of it than could matter: a message of 16 MB costs no more."""


def bound_prose(text: str) -> str:
    """Return the longest prefix that is valid UTF-8 of at most 2,048 bytes; lone surrogates become U+FFFD."""
    clean = valid_text(text[: MAX_PROSE_BYTES + 1])
    encoded = clean.encode()
    if len(encoded) <= MAX_PROSE_BYTES:
        return clean
    return encoded[:MAX_PROSE_BYTES].decode(errors="ignore")


def public_prose(value: object) -> str:
    """Turn what was reported as failure text, of whatever type, into text that may be stored, logged and sent."""
    return cut_prose(value).text


class Cut(NamedTuple):
    """Public text, and whether it is less than what was reported."""

    text: str
    was_cut: bool


def cut_prose(value: object) -> Cut:
    """Do as `public_prose` does, and tell whether anything was cut off."""
    whole = readable(value)
    read = redact(whole[:_READ_CHARS])
    text = bound_prose(read)
    return Cut(text, len(whole) > _READ_CHARS or len(text) < len(valid_text(read)))


def readable(value: object) -> str:
    """Return the text of a failure that may come as an object, a number or nothing: never `[object Object]`."""
    match value:
        case None:
            return ""
        case str():
            return value
        case bytes() | bytearray():
            return value.decode(errors="replace")
        case {"message": str(text)} | {"error": {"message": str(text)}} | {"error": str(text)} if text:
            return text
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return str(value)


def valid_text(text: str) -> str:
    """Return text that protobuf can carry: surrogate pairs joined, lone ones replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
