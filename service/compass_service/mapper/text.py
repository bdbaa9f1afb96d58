"""Text as the wire can carry it: no lone surrogates, cut or split at the boundaries of characters."""

from typing import Any

from compass.failures.bounds import valid_text

REPLACEMENT = "\ufffd"
ELLIPSIS = "…"


def clean_all(value: Any) -> Any:
    """Make every text in a parsed JSON value one that protobuf can carry."""
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, list):
        return [clean_all(item) for item in value]
    if isinstance(value, dict):
        return {valid_text(key): clean_all(item) for key, item in value.items()}
    return value


def size(text: str) -> int:
    """Return the size of a text in bytes of UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def cut_bytes(text: str, max_bytes: int) -> str:
    """Cut a text to at most `max_bytes` of UTF-8, never inside a character."""
    if len(text) * 4 <= max_bytes:
        return text
    data = text.encode()
    return text if len(data) <= max_bytes else data[:max_bytes].decode(errors="ignore")


def cut_chars(text: str, max_chars: int) -> str:
    """Cut a text to at most `max_chars` characters, the last of which is then an ellipsis."""
    return text if len(text) <= max_chars else text[: max_chars - 1] + ELLIPSIS


def is_inside_character(data: bytes) -> bool:
    """Tell whether bytes of UTF-8 begin inside a character."""
    return bool(data) and _continues(data[0])


def _continues(byte: int) -> bool:
    return byte & 0xC0 == 0x80


def pieces(data: bytes, max_bytes: int) -> list[bytes]:
    """Split UTF-8 into pieces of at most `max_bytes`, never inside a character."""
    parts = []
    start = 0
    while len(data) - start > max_bytes:
        end = start + max_bytes
        while _continues(data[end]):
            end -= 1
        parts.append(data[start:end])
        start = end
    parts.append(data[start:])
    return parts
