"""Frames as bytes: how the mapper hands them over, how a record stores them, and how a response carries them.

A frame is serialized once, by the mapper. The session appends its seq as field bytes, and a record holds it delimited
exactly as `TailSessionResponse.frames` does, so that catch-up and fan-out join bytes instead of encoding again.
"""

from collections.abc import Iterator
from typing import NamedTuple

LANE_TRACE = 0
LANE_PRIORITY = 1
LANE_TRIMMED = 2
"""Retention took this frame: its seq is part of the record, its bytes are not."""

_FRAMES_TAG = b"\x0a"  # TailSessionResponse.frames: field 1, length-delimited
_SEQ_TAG = b"\x20"  # AgentSessionFrame.seq: field 4, varint


class Draft(NamedTuple):
    """A frame without its seq."""

    body: bytes
    """A serialized AgentSessionFrame."""
    is_priority: bool


def varint(value: int) -> bytes:
    """Encode an unsigned integer as a protobuf varint."""
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(body: bytes, seq: int) -> bytes:
    """Give a serialized frame its seq, and delimit it as an element of `TailSessionResponse.frames`."""
    seq_field = _SEQ_TAG + varint(seq)
    return b"".join((_FRAMES_TAG, varint(len(body) + len(seq_field)), body, seq_field))


def delimit(body: bytes) -> bytes:
    """Delimit a serialized frame as an element of `TailSessionResponse.frames`."""
    return b"".join((_FRAMES_TAG, varint(len(body)), body))


def body_of(delimited: bytes) -> bytes:
    """Strip the delimiter of one element: the serialized frame alone."""
    return delimited[_body_start(delimited, 0)[0] :]


def split(blob: bytes) -> Iterator[bytes]:
    """Yield the delimited elements of a joined blob in order."""
    start = 0
    while start < len(blob):
        body_start, size = _body_start(blob, start)
        yield blob[start : body_start + size]
        start = body_start + size


def _body_start(blob: bytes, start: int) -> tuple[int, int]:
    """Return where the body of the element at `start` begins, and its size."""
    at, size, shift = start + 1, 0, 0
    while True:
        byte = blob[at]
        size |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return at, size
        shift += 7
