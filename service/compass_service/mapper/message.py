"""Messages: how a user message is recorded, and how an assistant message opens, grows and ends."""

import re
from collections.abc import Callable
from typing import Any

from compass.limits import MAX_TEXT_CHUNK_BYTES
from compass.v1 import compass_pb2 as pb
from compass_service.mapper import activity, failure, fields, inner, stream, updates
from compass_service.mapper.content import has_content, name_of, text_of, thinking_of
from compass_service.mapper.numbers import count_of, usage_of
from compass_service.mapper.state import Activity, OpenMessage
from compass_service.mapper.text import pieces
from compass_service.mapper.unmapped import count_unmapped, silent
from compass_service.mapper.writer import FrameWriter

_STOP_REASONS = {
    "stop": pb.SESSION_STOP_REASON_STOP,
    "length": pb.SESSION_STOP_REASON_LENGTH,
    "toolUse": pb.SESSION_STOP_REASON_TOOL_USE,
}
_INJECTIONS = {
    "steer": pb.SESSION_INJECTION_KIND_STEER,
    "deliver": pb.SESSION_INJECTION_KIND_DELIVER,
    "followUp": pb.SESSION_INJECTION_KIND_DELIVER,
    "nextTurn": pb.SESSION_INJECTION_KIND_DELIVER,
}
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_FAILED = frozenset({"error", "aborted"})


def message_start(writer: FrameWriter, event: inner.MessageStart) -> None:
    """Record a user message, or open an assistant message."""
    message = event.message or fields.Message()
    writer.agent_at_ms = count_of(message.timestamp)
    if message.role == "assistant":
        _open(writer, message)
    elif message.role == "user" or _injection_kind(message):
        _record(writer, message)
    elif message.role != "toolResult":
        count_unmapped(writer, "message_start")


def message_update(writer: FrameWriter, event: inner.MessageUpdate) -> None:
    """Write what an update adds to the open message."""
    update = event.assistant_message_event
    _UPDATES[type(update)](writer, update)


def message_end(writer: FrameWriter, event: inner.MessageEnd) -> None:
    """End the open assistant message: whole, cut off by a failure, or empty, which is a failure too."""
    message = event.message or fields.Message()
    if message.role != "assistant":
        return
    writer.agent_at_ms = count_of(message.timestamp)
    if message.stop_reason in _FAILED:
        failure.message_failed(writer, message)
    else:
        _end(writer, message)


def _open(writer: FrameWriter, message: fields.Message) -> None:
    state = writer.state
    failure.open_chance(writer)
    state.compaction_failure = None
    state.provider = name_of(message.provider)
    state.model = name_of(message.model)
    state.message = OpenMessage(writer.next_message_id())
    activity.replace(writer, Activity(pb.SESSION_PHASE_THINKING, writer.now_ms))


def _record(writer: FrameWriter, message: fields.Message) -> None:
    kind = _injection_kind(message)
    message_id = writer.next_message_id()
    for piece in pieces(text_of(message, joint="\n").encode(), MAX_TEXT_CHUNK_BYTES):
        user_message = pb.SessionUserMessage(
            text=piece.decode(),
            message_id=message_id,
            prompt_id=writer.prompt_id,
            steering=kind == pb.SESSION_INJECTION_KIND_STEER,
        )
        writer.event(pb.SessionEvent(user_message=user_message))
    if kind:
        source = message.injection or fields.Injection()
        injection = pb.SessionInjection(
            op_kind=kind,
            message_id=message_id,
            from_handle=name_of(source.from_handle),
            traceparent=source.traceparent if _TRACEPARENT.fullmatch(source.traceparent) else "",
        )
        writer.event(pb.SessionEvent(session_injection=injection))


def _injection_kind(message: fields.Message) -> pb.SessionInjectionKind.ValueType:
    if message.steering:
        return pb.SESSION_INJECTION_KIND_STEER
    kind = message.injection.kind if message.injection else message.deliver_as
    return _INJECTIONS.get(kind, pb.SESSION_INJECTION_KIND_UNSPECIFIED)


def _end(writer: FrameWriter, ended: fields.Message) -> None:
    message = stream.open_message(writer, "message_end")
    if message is None:
        return
    stream.complete(writer, message, thinking=thinking_of(ended), text=text_of(ended))
    message.has_chunk = message.has_chunk or has_content(ended)
    stop_reason = _STOP_REASONS.get(ended.stop_reason, pb.SESSION_STOP_REASON_UNSPECIFIED)
    if not message.has_chunk and stop_reason != pb.SESSION_STOP_REASON_TOOL_USE:
        failure.empty_completion(writer, ended)
    else:
        failure.end_message(
            writer,
            pb.SESSION_MESSAGE_OUTCOME_COMPLETE,
            stop_reason,
            usage_of(writer.state, ended.usage),
        )


def _unmapped(writer: FrameWriter, _update: object) -> None:
    count_unmapped(writer, "message_update")


_UPDATES: dict[type, Callable[[FrameWriter, Any], None]] = {
    updates.TextDelta: stream.text_delta,
    updates.ThinkingDelta: stream.thinking_delta,
    updates.TextEnd: stream.text_end,
    updates.ThinkingEnd: stream.thinking_end,
    updates.ToolCallStart: stream.tool_call_piece,
    updates.ToolCallDelta: stream.tool_call_piece,
    updates.ToolCallEnd: stream.tool_call_piece,
    updates.StreamError: failure.stream_error,
    updates.TextStart: silent,
    updates.ThinkingStart: silent,
    updates.StreamStart: silent,
    updates.StreamDone: silent,
    type(None): _unmapped,
}
