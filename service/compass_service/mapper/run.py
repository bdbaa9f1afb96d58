"""A run of the agent: its beginning, its end, its compactions and its retries."""

from compass.v1 import compass_pb2 as pb
from compass_service.mapper import activity, failure, inner, tools
from compass_service.mapper.failure_text import prose_of, read_text, verdict_of
from compass_service.mapper.numbers import MAX_INT32, count_of
from compass_service.mapper.state import MAX_OPEN_COMPACTIONS, Activity, CompactionFailure
from compass_service.mapper.writer import FrameWriter

RETRY_CANCELLED = "Retry cancelled"


def agent_start(writer: FrameWriter, _: inner.AgentStart) -> None:
    """Begin a run."""
    writer.state.abort_seen = False
    failure.open_chance(writer)
    tools.fail_open(writer)
    _work(writer)
    activity.replace(writer, Activity(pb.SESSION_PHASE_THINKING, writer.now_ms))


def turn_start(writer: FrameWriter, _: inner.TurnStart) -> None:
    """Begin a turn of a run."""
    failure.open_chance(writer)
    _work(writer)


def agent_end(writer: FrameWriter, event: inner.AgentEnd) -> None:
    """End a run. If more is to come, the session goes on working."""
    failure.abandon_message(writer)
    _surface_compaction_failure(writer)
    if event.is_terminal and not event.will_retry:
        agent_settled(writer)


def agent_settled(writer: FrameWriter, _: inner.AgentSettled | None = None) -> None:
    """Rest. A session whose last turn failed stays ERRORED until it works again."""
    state = writer.state
    tools.fail_open(writer)
    state.abort_asked = state.abort_asked and state.num_compactions > 0
    if state.lifecycle not in {pb.AGENT_SESSION_STATE_ERRORED, pb.AGENT_SESSION_STATE_READY}:
        writer.enter(pb.AGENT_SESSION_STATE_READY)
    activity.rest(writer)


def compaction_start(writer: FrameWriter, event: inner.AutoCompactionStart | inner.CompactionStart) -> None:
    """Show that the agent compacts its context."""
    state = writer.state
    state.num_compactions = min(state.num_compactions + 1, MAX_OPEN_COMPACTIONS)
    activity.hide(writer, pb.SESSION_PHASE_COMPACTING, event.reason)


def compaction_end(writer: FrameWriter, event: inner.AutoCompactionEnd | inner.CompactionEnd) -> None:
    """Go back to what the agent was doing, once no compaction is open. Tell a failure by a notice."""
    state = writer.state
    state.num_compactions = max(0, state.num_compactions - 1)
    if not state.num_compactions:
        activity.uncover(writer, pb.SESSION_PHASE_COMPACTING)
    text = read_text(event.error_message)
    if not (text or event.aborted):
        state.compaction_failure = None
    elif not event.skipped:
        prose = prose_of(text)
        state.compaction_failure = CompactionFailure(prose.text, event.aborted)
        what = "Compaction was aborted" if event.aborted else "Compaction failed"
        notice = pb.SessionNotice(text=f"{what}: {prose.text}" if prose.text else what)
        writer.event(pb.SessionEvent(notice=notice), original_bytes=prose.original_bytes)


def retry_start(writer: FrameWriter, event: inner.RetryStart) -> None:
    """Show that a failed call will be tried again, and which failure that takes back."""
    state = writer.state
    state.retry_open = True
    state.retry_failed = False
    retrying = Activity(
        pb.SESSION_PHASE_RETRYING,
        writer.now_ms,
        attempt=count_of(event.attempt, MAX_INT32),
        max_attempts=count_of(event.max_attempts, MAX_INT32),
        delay_ms=count_of(event.delay_ms),
        supersedes_event_id=state.failure_event_id,
    )
    state.failure_event_id = ""
    activity.replace(writer, retrying)
    _work(writer)


def retry_end(writer: FrameWriter, event: inner.RetryEnd) -> None:
    """End the retries. Only what no attempt has surfaced is surfaced here."""
    state = writer.state
    was_surfaced = state.retry_failed if state.retry_open else state.failed
    state.retry_open = False
    if event.success or state.message is not None:
        activity.leave(writer, pb.SESSION_PHASE_RETRYING, pb.SESSION_PHASE_THINKING)
        return
    text = read_text(event.final_error)
    if text == RETRY_CANCELLED or state.abort_seen or state.abort_asked:
        if not was_surfaced:
            failure.surface_abort(writer, prose_of(text))
        if state.lifecycle == pb.AGENT_SESSION_STATE_WORKING:
            writer.enter(pb.AGENT_SESSION_STATE_READY)
        activity.rest(writer)
    elif not was_surfaced:
        verdict = verdict_of(text, provider=state.provider, status=None)
        failure.surface_error(writer, prose_of(text), verdict)
    else:
        activity.rest(writer)


def response(writer: FrameWriter, event: inner.Response) -> None:
    """Remember that an abort was asked for. The answer to a command is no inner event otherwise."""
    if event.success and event.command in {"abort", "abort_retry"}:
        writer.state.abort_seen = True


def _work(writer: FrameWriter) -> None:
    if writer.state.lifecycle != pb.AGENT_SESSION_STATE_WORKING:
        writer.enter(pb.AGENT_SESSION_STATE_WORKING)


def _surface_compaction_failure(writer: FrameWriter) -> None:
    """Surface a compaction that took the turn down with it: no assistant message has begun since."""
    state = writer.state
    failed, state.compaction_failure = state.compaction_failure, None
    if failed is None or state.failed:
        return
    if failed.was_aborted:
        failure.surface_abort(writer, prose_of(failed.message))
    else:
        verdict = verdict_of(failed.message, provider=state.provider, status=None)
        failure.surface_error(writer, prose_of(failed.message), verdict)
