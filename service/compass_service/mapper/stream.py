"""The streamed text of the open message: one frame a delta, and at the end whatever never came as a delta."""

from zlib import crc32

from compass.failures.bounds import valid_text
from compass.limits import MAX_TEXT_CHUNK_BYTES
from compass.v1 import compass_pb2 as pb
from compass_service.mapper import activity
from compass_service.mapper.state import MAX_BLOCKS, OpenMessage, Streamed
from compass_service.mapper.text import REPLACEMENT, is_inside_character, pieces
from compass_service.mapper.unmapped import count_unmapped
from compass_service.mapper.updates import TextDelta, TextEnd, ThinkingDelta, ThinkingEnd
from compass_service.mapper.writer import ASSISTANT_TEXT, THINKING, FrameWriter


def text_delta(writer: FrameWriter, delta: TextDelta) -> None:
    """Write a piece of the answer."""
    message = writer.state.message or open_message(writer)
    if message is not None:
        _grow(writer, message, ASSISTANT_TEXT, delta.content_index, delta.delta)


def thinking_delta(writer: FrameWriter, delta: ThinkingDelta) -> None:
    """Write a piece of the reasoning."""
    message = writer.state.message or open_message(writer)
    if message is not None:
        _grow(writer, message, THINKING, delta.content_index, delta.delta)


def text_end(writer: FrameWriter, end: TextEnd) -> None:
    """Write a block of the answer that came without a delta."""
    message = open_message(writer)
    if message is not None and end.content_index not in message.text.blocks:
        _grow(writer, message, ASSISTANT_TEXT, end.content_index, end.content)


def thinking_end(writer: FrameWriter, end: ThinkingEnd) -> None:
    """Write a block of the reasoning that came without a delta."""
    message = open_message(writer)
    if message is not None and end.content_index not in message.thinking.blocks:
        _grow(writer, message, THINKING, end.content_index, end.content)


def tool_call_piece(writer: FrameWriter, _: object) -> None:
    """Remember that the message asks for a tool. The call itself is shown when it begins to run."""
    message = open_message(writer)
    if message is not None:
        message.has_chunk = True


def open_message(writer: FrameWriter, event_type: str = "message_update") -> OpenMessage | None:
    """Return the open message. One is opened for a producer that never says that a message begins.

    None when the last message has ended: an event that comes late must not bring it back, and is only counted.
    """
    state = writer.state
    if state.message is None:
        if state.message_ended or state.failed:
            count_unmapped(writer, event_type)
        else:
            state.message = OpenMessage(writer.next_message_id())
    return state.message


def complete(writer: FrameWriter, message: OpenMessage, *, thinking: str, text: str) -> None:
    """Write what a message holds and what never came as a delta, if what came is how it begins."""
    for arm, whole in ((THINKING, thinking), (ASSISTANT_TEXT, text)):
        streamed = _streamed(message, arm)
        data = whole.encode()
        begun = data[: streamed.num_bytes]
        rest = data[streamed.num_bytes :]
        if rest and crc32(begun) == streamed.crc and not is_inside_character(rest):
            streamed.half = 0
            _write(writer, message, arm, rest)
    flush(writer, message)


def flush(writer: FrameWriter, message: OpenMessage) -> None:
    """Give up waiting for the other half of a surrogate pair."""
    for arm in (THINKING, ASSISTANT_TEXT):
        streamed = _streamed(message, arm)
        if streamed.half:
            streamed.half = 0
            _write(writer, message, arm, REPLACEMENT.encode())


def _streamed(message: OpenMessage, arm: bytes) -> Streamed:
    return message.text if arm is ASSISTANT_TEXT else message.thinking


def _grow(writer: FrameWriter, message: OpenMessage, arm: bytes, index: int, text: str) -> None:
    if not text:
        return
    streamed = _streamed(message, arm)
    if index not in streamed.blocks and 0 <= index < MAX_BLOCKS:
        streamed.blocks.append(index)
    if streamed.half:
        text = chr(streamed.half) + text
        streamed.half = 0
    try:
        data = text.encode()
    except UnicodeEncodeError:
        data = _hold_back(streamed, text).encode()
    if data:
        _write(writer, message, arm, data)


def _hold_back(streamed: Streamed, text: str) -> str:
    """Keep a high surrogate at the end for the next delta, and clean the rest."""
    last = ord(text[-1])
    if 0xD800 <= last < 0xDC00:
        streamed.half = last
        text = text[:-1]
    return valid_text(text)


def _write(writer: FrameWriter, message: OpenMessage, arm: bytes, data: bytes) -> None:
    streamed = _streamed(message, arm)
    message.has_chunk = True
    streamed.num_bytes += len(data)
    streamed.crc = crc32(data, streamed.crc)
    if arm is ASSISTANT_TEXT and writer.state.activity.phase != pb.SESSION_PHASE_RESPONDING:
        activity.begin(writer, pb.SESSION_PHASE_RESPONDING)
    for piece in pieces(data, MAX_TEXT_CHUNK_BYTES) if len(data) > MAX_TEXT_CHUNK_BYTES else (data,):
        writer.chunk(arm, piece, message.message_id)
