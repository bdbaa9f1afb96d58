"""Automatic retries of the agent: what they take back, and how they end."""

from compass.failures import readable
from compass.v1 import compass_pb2 as pb
from compass_service.mapper import activity, failure, inner, run
from compass_service.mapper.numbers import MAX_INT32, count_of
from compass_service.mapper.state import Activity
from compass_service.mapper.writer import FrameWriter

CANCELLED = "Retry cancelled"


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
    run.work(writer)


def retry_end(writer: FrameWriter, event: inner.RetryEnd) -> None:
    """End the retries. Only what no attempt has surfaced is surfaced here."""
    state = writer.state
    was_surfaced = state.retry_failed if state.retry_open else state.failed
    state.retry_open = False
    if event.success or state.message is not None:
        activity.leave(writer, pb.SESSION_PHASE_RETRYING, pb.SESSION_PHASE_THINKING)
        return
    was_cancelled = readable(event.final_error) == CANCELLED or state.abort_seen or state.abort_asked
    if not was_surfaced:
        surface = failure.surface_abort if was_cancelled else failure.surface_error
        surface(writer, event.final_error)
    if was_cancelled and state.lifecycle == pb.AGENT_SESSION_STATE_WORKING:
        writer.enter(pb.AGENT_SESSION_STATE_READY)
    activity.rest(writer)
