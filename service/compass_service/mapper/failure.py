"""The failure rule: a failed or aborted message surfaces exactly once, whatever forms the agent reports it in.

For one failure: message_end INCOMPLETE if anything of the message was shown, then session_error, then for an error (not
for an abort) state ERRORED. Activity IDLE, if it is due, comes last.
"""

from compass.failures import Category, Verdict, classify, failure_from
from compass.v1 import compass_pb2 as pb
from compass_service.mapper import activity, fields, stream, tools, updates
from compass_service.mapper.content import has_tool_call, name_of, text_of, thinking_of
from compass_service.mapper.numbers import count_of, status_of, usage_of
from compass_service.mapper.prose import prose_of
from compass_service.mapper.writer import FrameWriter

EMPTY_COMPLETION = "empty completion"
USER_INTERRUPT = "Interrupted by user"
"""What one agent family writes, always, when its user aborts."""
_ORIGINS = {
    "user": pb.SESSION_ABORT_ORIGIN_USER,
    "steer": pb.SESSION_ABORT_ORIGIN_STEER,
    "watchdog": pb.SESSION_ABORT_ORIGIN_WATCHDOG,
    "timeout": pb.SESSION_ABORT_ORIGIN_WATCHDOG,
    "shutdown": pb.SESSION_ABORT_ORIGIN_SHUTDOWN,
}


def open_chance(writer: FrameWriter) -> None:
    """Let the next failure be a new one. A message that is still open will not end any more."""
    abandon_message(writer)
    state = writer.state
    state.failed = False
    state.failure_event_id = ""
    state.message_ended = False


def stream_error(writer: FrameWriter, update: updates.StreamError) -> None:
    """Apply the rule to a failure that is told inside the stream."""
    message = update.error or fields.Message()
    _fail(writer, message, reason=update.reason or message.stop_reason)


def message_failed(writer: FrameWriter, message: fields.Message) -> None:
    """Apply the rule to a message that ended in a failure."""
    _fail(writer, message, reason=message.stop_reason)


def empty_completion(writer: FrameWriter, message: fields.Message) -> None:
    """Apply the rule to a message that ended normally and says nothing."""
    usage_of(writer.state, message.usage)
    end_unfinished(writer, pb.SESSION_STOP_REASON_ERROR)
    surface_error(writer, EMPTY_COMPLETION, verdict=Verdict(Category.MALFORMED_RESPONSE, retryable=True))


def end_message(
    writer: FrameWriter,
    outcome: pb.SessionMessageOutcome.ValueType,
    stop_reason: pb.SessionStopReason.ValueType,
    usage: pb.SessionUsage | None = None,
) -> str:
    """Close the open message. Its end is a frame only if something of it was shown; then its id is returned."""
    state = writer.state
    message, state.message = state.message, None
    state.message_ended = True
    if message is None or not message.has_chunk:
        return ""
    end = pb.SessionMessageEnd(message_id=message.message_id, outcome=outcome, stop_reason=stop_reason, usage=usage)
    writer.event(pb.SessionEvent(message_end=end))
    return message.message_id


def end_unfinished(
    writer: FrameWriter,
    stop_reason: pb.SessionStopReason.ValueType,
    usage: pb.SessionUsage | None = None,
) -> str:
    """Close the open message as INCOMPLETE, as `end_message` does."""
    message = writer.state.message
    if message is not None:
        stream.flush(writer, message)
    return end_message(writer, pb.SESSION_MESSAGE_OUTCOME_INCOMPLETE, stop_reason, usage)


def abandon_message(writer: FrameWriter) -> None:
    """Close a message whose end never came, because the agent went on without it."""
    if writer.state.message is not None:
        end_unfinished(writer, pb.SESSION_STOP_REASON_UNSPECIFIED)


def surface_error(
    writer: FrameWriter,
    cause: object,
    *,
    verdict: Verdict | None = None,
    message_id: str = "",
    status: int | None = None,
    reported: object = None,
    is_providers: bool = True,
) -> None:
    """Write a failure and the state it leads to. It is classified by its cause, unless the verdict is known.

    `reported` is the structured failure, where the agent gives one beside the cause.
    """
    state = writer.state
    provider, model = (state.provider, state.model) if is_providers else ("", "")
    verdict = verdict or classify(provider=provider, status=status, message=cause)
    prose = prose_of(cause)
    error = pb.SessionError(
        kind=pb.SESSION_ERROR_KIND_ERROR,
        message=prose.text,
        status=status,
        category=verdict.category.value,
        retryable=verdict.retryable and not message_id,
        retry_after_ms=verdict.retry_after_ms,
        message_id=message_id,
        provider=provider,
        model=model,
        failure=failure_from(reported) if isinstance(reported, dict) else None,
    )
    state.failed = state.retry_failed = True
    state.counts.errors += 1
    state.failure_event_id = writer.event(pb.SessionEvent(session_error=error), original_bytes=prose.original_bytes)
    writer.enter(pb.AGENT_SESSION_STATE_ERRORED)
    activity.rest(writer)


def surface_abort(
    writer: FrameWriter,
    cause: object,
    *,
    message_id: str = "",
    origin: pb.SessionAbortOrigin.ValueType = pb.SESSION_ABORT_ORIGIN_UNSPECIFIED,
) -> None:
    """Write an abort. It leads to no state."""
    state = writer.state
    prose = prose_of(cause)
    error = pb.SessionError(
        kind=pb.SESSION_ERROR_KIND_ABORTED,
        message=prose.text,
        message_id=message_id,
        provider=state.provider,
        model=state.model,
        abort_origin=pb.SESSION_ABORT_ORIGIN_USER if state.abort_asked else origin,
    )
    state.failed = state.retry_failed = True
    state.abort_asked = False
    state.failure_event_id = ""
    state.counts.aborts += 1
    writer.event(pb.SessionEvent(session_error=error), original_bytes=prose.original_bytes)


def _fail(writer: FrameWriter, message: fields.Message, *, reason: str) -> None:
    state = writer.state
    if state.failed:
        return
    state.provider = name_of(message.provider) or state.provider
    state.model = name_of(message.model) or state.model
    _add_what_was_lost(writer, message)
    usage = usage_of(state, message.usage)
    if reason == "aborted":
        message_id = end_unfinished(writer, pb.SESSION_STOP_REASON_ABORTED, usage)
        tools.fail_open(writer)
        surface_abort(writer, message.error_message, message_id=message_id, origin=_origin(message))
        activity.rest(writer)
    else:
        message_id = end_unfinished(writer, pb.SESSION_STOP_REASON_ERROR, usage)
        surface_error(
            writer,
            message.error_message,
            verdict=_told_verdict(message),
            message_id=message_id,
            status=status_of(message.error_status),
            reported=message.failure,
        )


def _add_what_was_lost(writer: FrameWriter, message: fields.Message) -> None:
    opened = writer.state.message
    if opened is None:
        return
    opened.has_chunk = opened.has_chunk or has_tool_call(message)
    if opened.was_thinned:
        # Nothing is added otherwise: what a failed message holds beyond what came may be failure text.
        stream.complete(writer, opened, thinking=thinking_of(message), text=text_of(message))


def _told_verdict(message: fields.Message) -> Verdict | None:
    """Return the verdict that the producer tells: a stream of the SDK classifies a failure where it sees all of it.

    None when it tells none, or a category that nobody knows.
    """
    category = Category.__members__.get(str(message.error_category))
    if category is None:
        return None
    wait = message.error_retry_after_ms
    wait_ms = count_of(wait) if isinstance(wait, int | float) and not isinstance(wait, bool) else None
    return Verdict(category, message.error_retryable is True, wait_ms)


def _origin(message: fields.Message) -> pb.SessionAbortOrigin.ValueType:
    if message.error_message == USER_INTERRUPT and not message.abort_origin:
        return pb.SESSION_ABORT_ORIGIN_USER
    return _ORIGINS.get(message.abort_origin.lower(), pb.SESSION_ABORT_ORIGIN_UNSPECIFIED)
