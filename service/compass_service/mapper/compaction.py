"""Compaction of the agent's context. It may begin before a turn, overlap with another, fail, and end late."""

from compass.v1 import compass_pb2 as pb
from compass_service.mapper import activity, failure, inner
from compass_service.mapper.prose import prose_of, shorten
from compass_service.mapper.state import MAX_OPEN_COMPACTIONS, CompactionFailure
from compass_service.mapper.writer import FrameWriter


def compaction_start(writer: FrameWriter, event: inner.AutoCompactionStart | inner.CompactionStart) -> None:
    """Show that the agent compacts its context."""
    state = writer.state
    state.num_compactions = min(state.num_compactions + 1, MAX_OPEN_COMPACTIONS)
    activity.hide(writer, pb.SESSION_PHASE_COMPACTING, shorten(event.reason, activity.MAX_DETAIL_CHARS).text)


def compaction_end(writer: FrameWriter, event: inner.AutoCompactionEnd | inner.CompactionEnd) -> None:
    """Go back to what the agent was doing, once no compaction is open. Tell a failure by a notice."""
    state = writer.state
    state.num_compactions = max(0, state.num_compactions - 1)
    if not state.num_compactions:
        activity.uncover(writer, pb.SESSION_PHASE_COMPACTING)
    if not (event.error_message or event.aborted):
        state.compaction_failure = None
    elif not event.skipped:
        _note_failure(writer, event.error_message, was_aborted=event.aborted)


def surface_failure(writer: FrameWriter) -> None:
    """Surface a compaction that took the turn down with it: no assistant message has begun since."""
    state = writer.state
    failed, state.compaction_failure = state.compaction_failure, None
    if failed is None or state.failed:
        return
    if failed.was_aborted:
        failure.surface_abort(writer, failed.message)
    else:
        failure.surface_error(writer, failed.message)


def _note_failure(writer: FrameWriter, cause: object, *, was_aborted: bool) -> None:
    prose = prose_of(cause)
    writer.state.compaction_failure = CompactionFailure(prose.text, was_aborted)
    what = "Compaction was aborted" if was_aborted else "Compaction failed"
    notice = pb.SessionNotice(text=f"{what}: {prose.text}" if prose.text else what)
    writer.event(pb.SessionEvent(notice=notice), original_bytes=prose.original_bytes)
