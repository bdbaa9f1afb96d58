"""The transcript: a view as rows, each failure beside the message that it cut off."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from compass.fold.view import FileDiff, Message, SurfacedError, ToolCall, Usage, View
from compass.limits import MAX_FRAME_BYTES, MAX_TEXT_CHUNK_BYTES
from compass.v1 import compass_pb2 as pb

MAX_ROW_BYTES = 2 * MAX_FRAME_BYTES
"""A row that would be larger is continued in the next one, so that a page of rows always fits a response."""

_Part: TypeAlias = tuple[str, str] | pb.TranscriptToolCall | pb.SessionError


def transcript_rows(view: View) -> list[pb.TranscriptMessage]:
    """Write the messages of a view as rows, oldest first.

    A row that would grow too large (text or thinking over 128 KiB, or MAX_ROW_BYTES in all) is continued in further
    rows of the same message_id. `incomplete` is true also for a message that may have lost something to a gap: what
    the row holds is not to be taken for whole. Failures and aborts from before the first message have a row without a
    role.
    """
    rows = []
    if view.errors_before_messages:
        rows += _pack(_extent_of(view.errors_before_messages), _errors(view.errors_before_messages))
    for message in view.messages:
        message_rows = _pack(_frame_of(message), _parts_of(message))
        if message.usage is not None:
            message_rows[-1].usage.CopyFrom(_usage(message.usage))  # once, so that rows can be summed
        rows += message_rows
    return rows


def _frame_of(message: Message) -> pb.TranscriptMessage:
    return pb.TranscriptMessage(
        message_id=message.message_id,
        role=message.role,
        incomplete=_incomplete(message),
        first_seq=message.first_seq,
        last_seq=message.last_seq,
        stop_reason=message.stop_reason,
    )


def _incomplete(message: Message) -> bool | None:
    return None if message.incomplete is None else message.incomplete or message.has_gap


def _extent_of(errors: tuple[SurfacedError, ...]) -> pb.TranscriptMessage:
    return pb.TranscriptMessage(first_seq=errors[0].seq, last_seq=errors[-1].seq)


def _parts_of(message: Message) -> Iterator[_Part]:
    for piece in split_utf8(message.thinking, MAX_TEXT_CHUNK_BYTES):
        yield "thinking", piece
    for piece in split_utf8(message.text, MAX_TEXT_CHUNK_BYTES):
        yield "text", piece
    yield from map(_tool_call, message.tool_calls)
    yield from _errors(message.errors)


def _errors(errors: tuple[SurfacedError, ...]) -> Iterator[pb.SessionError]:
    return (error.error for error in errors)


def _pack(frame: pb.TranscriptMessage, parts: Iterable[_Part]) -> list[pb.TranscriptMessage]:
    """Fill rows with the parts in order; each row repeats what the frame says of the message."""
    rows = [pb.TranscriptMessage()]
    rows[0].CopyFrom(frame)
    num_bytes = 0
    for part in parts:
        size = len(part[1].encode()) if isinstance(part, tuple) else part.ByteSize()
        starts_over = isinstance(part, tuple) and getattr(rows[-1], part[0])
        if starts_over or num_bytes + size > MAX_ROW_BYTES:
            rows.append(pb.TranscriptMessage())
            rows[-1].CopyFrom(frame)
            num_bytes = 0
        num_bytes += size
        _put(rows[-1], part)
    return rows


def _put(row: pb.TranscriptMessage, part: _Part) -> None:
    match part:
        case (name, text):
            setattr(row, name, text)
        case pb.TranscriptToolCall():
            row.tool_calls.append(part)
        case pb.SessionError():
            row.errors.append(part)


def split_utf8(text: str, max_bytes: int) -> Iterator[str]:
    """Cut text into pieces of at most max_bytes of UTF-8, between characters. Nothing for empty text."""
    encoded = text.encode()
    start = 0
    while start < len(encoded):
        end = min(start + max_bytes, len(encoded))
        while end < len(encoded) and encoded[end] & 0xC0 == 0x80:
            end -= 1
        yield encoded[start:end].decode()
        start = end


def _tool_call(tool: ToolCall) -> pb.TranscriptToolCall:
    return pb.TranscriptToolCall(
        tool_call_id=tool.tool_call_id,
        title=tool.title,
        status=tool.status,
        output=tool.output,
        diffs=map(_diff, tool.diffs),
    )


def _diff(diff: FileDiff) -> pb.SessionFileDiff:
    return pb.SessionFileDiff(path=diff.path, old_text=diff.old_text, new_text=diff.new_text)


def _usage(usage: Usage) -> pb.SessionUsage:
    return pb.SessionUsage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        cost_microdollars=usage.cost_microdollars,
    )
