"""The streamed text of the open message: one frame a delta, and at the end whatever never came as a delta."""

from collections.abc import Callable
from zlib import crc32

from compass.limits import MAX_TEXT_CHUNK_BYTES
from compass.v1 import compass_pb2 as pb
from compass_service.mapper import activity
from compass_service.mapper.inner import TextDelta, TextEnd, ThinkingDelta, ThinkingEnd
from compass_service.mapper.state import MAX_BLOCKS, OpenMessage, Streamed
from compass_service.mapper.text import REPLACEMENT, clean, pieces
from compass_service.mapper.writer import FrameWriter

Write = Callable[[FrameWriter, OpenMessage, bytes], None]


def text_delta(writer: FrameWriter, message: OpenMessage, delta: TextDelta) -> None:
    """Write a piece of the answer."""
    _mark(message.text_blocks, delta.content_index)
    _stream(writer, message, message.text, delta.delta, write_text)


def thinking_delta(writer: FrameWriter, message: OpenMessage, delta: ThinkingDelta) -> None:
    """Write a piece of the reasoning."""
    _mark(message.thinking_blocks, delta.content_index)
    _stream(writer, message, message.thinking, delta.delta, write_thinking)


def text_end(writer: FrameWriter, message: OpenMessage, end: TextEnd) -> None:
    """Write a block of the answer that came without a delta."""
    if end.content and end.content_index not in message.text_blocks:
        _mark(message.text_blocks, end.content_index)
        _stream(writer, message, message.text, end.content, write_text)


def thinking_end(writer: FrameWriter, message: OpenMessage, end: ThinkingEnd) -> None:
    """Write a block of the reasoning that came without a delta."""
    if end.content and end.content_index not in message.thinking_blocks:
        _mark(message.thinking_blocks, end.content_index)
        _stream(writer, message, message.thinking, end.content, write_thinking)


def flush(writer: FrameWriter, message: OpenMessage) -> None:
    """Give up waiting for the other half of a surrogate pair."""
    for streamed, write in ((message.thinking, write_thinking), (message.text, write_text)):
        if streamed.half:
            streamed.half = 0
            _write(writer, message, streamed, REPLACEMENT.encode(), write)


def complete(writer: FrameWriter, message: OpenMessage, *, thinking: str, text: str) -> None:
    """Write what a message holds and what never came as a delta, if what came is how it begins."""
    for streamed, whole, write in (
        (message.thinking, thinking, write_thinking),
        (message.text, text, write_text),
    ):
        data = whole.encode()
        begun = data[: streamed.num_bytes]
        if len(begun) == streamed.num_bytes and crc32(begun) == streamed.crc and len(data) > len(begun):
            streamed.half = 0
            _write(writer, message, streamed, data[len(begun) :], write)
    flush(writer, message)


def write_text(writer: FrameWriter, message: OpenMessage, data: bytes) -> None:
    """Write a frame of the answer."""
    if writer.state.activity.phase != pb.SESSION_PHASE_RESPONDING:
        activity.begin_phase(writer, pb.SESSION_PHASE_RESPONDING)
    writer.event(
        pb.SessionEvent(assistant_text=pb.SessionAssistantText(text=data.decode(), message_id=message.message_id)),
    )


def write_thinking(writer: FrameWriter, message: OpenMessage, data: bytes) -> None:
    """Write a frame of the reasoning."""
    writer.event(pb.SessionEvent(thinking=pb.SessionThinking(text=data.decode(), message_id=message.message_id)))


def _mark(blocks: list[int], index: int) -> None:
    if index not in blocks and 0 <= index < MAX_BLOCKS:
        blocks.append(index)


def _stream(writer: FrameWriter, message: OpenMessage, streamed: Streamed, text: str, write: Write) -> None:
    if streamed.half and text:
        text = chr(streamed.half) + text
        streamed.half = 0
    try:
        data = text.encode()
    except UnicodeEncodeError:
        data = _hold_back(streamed, text).encode()
    if data:
        _write(writer, message, streamed, data, write)


def _hold_back(streamed: Streamed, text: str) -> str:
    last = ord(text[-1])
    if 0xD800 <= last < 0xDC00:
        streamed.half = last
        text = text[:-1]
    return clean(text)


def _write(writer: FrameWriter, message: OpenMessage, streamed: Streamed, data: bytes, write: Write) -> None:
    message.has_chunk = True
    streamed.num_bytes += len(data)
    streamed.crc = crc32(data, streamed.crc)
    if len(data) <= MAX_TEXT_CHUNK_BYTES:
        write(writer, message, data)
    else:
        for piece in pieces(data, MAX_TEXT_CHUNK_BYTES):
            write(writer, message, piece)
