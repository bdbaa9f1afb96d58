"""What the agent is doing: one phase at a time, and what COMPACTING and AWAITING_INPUT hide meanwhile."""

from msgspec import structs

from compass.v1 import compass_pb2 as pb
from compass_service.mapper.state import Activity, activity_message
from compass_service.mapper.text import cut_chars
from compass_service.mapper.writer import FrameWriter

MAX_DETAIL_CHARS = 256
_RESTING = frozenset({pb.SESSION_PHASE_UNSPECIFIED, pb.SESSION_PHASE_IDLE})


def begin(writer: FrameWriter, phase: pb.SessionPhase.ValueType, detail: str = "") -> None:
    """Enter a phase of the turn, or tell another detail of it. While the agent compacts, that is only remembered."""
    state = writer.state
    current = state.under or state.activity
    began_ms = current.started_at_unix_ms if current.phase == phase else writer.now_ms
    activity = Activity(phase, began_ms, cut_chars(detail, MAX_DETAIL_CHARS))
    if state.under is None or state.activity.phase != pb.SESSION_PHASE_COMPACTING:
        replace(writer, activity)
    elif not _is_same(state.under, activity):
        state.under = activity


def replace(writer: FrameWriter, activity: Activity) -> None:
    """Enter a phase whatever hides what the agent was doing: it evidently goes on."""
    state = writer.state
    if state.under is not None and _is_same(state.under, activity):
        activity = state.under
    state.under = None
    if not _is_same(state.activity, activity):
        _write(writer, activity)


def rest(writer: FrameWriter) -> None:
    """Enter IDLE, unless the agent rests already."""
    current = writer.state.under or writer.state.activity
    if current.phase not in _RESTING:
        begin(writer, pb.SESSION_PHASE_IDLE)


def leave(writer: FrameWriter, phase: pb.SessionPhase.ValueType, after: pb.SessionPhase.ValueType) -> None:
    """Enter the phase `after`, if the turn is in `phase` now."""
    current = writer.state.under or writer.state.activity
    if current.phase == phase:
        begin(writer, after)


def hide(writer: FrameWriter, phase: pb.SessionPhase.ValueType, detail: str) -> None:
    """Enter COMPACTING or AWAITING_INPUT over what the agent was doing."""
    state = writer.state
    if state.activity.phase != phase:
        beneath = state.under or state.activity
        _write(writer, Activity(phase, writer.now_ms, cut_chars(detail, MAX_DETAIL_CHARS)))
        state.under = beneath


def uncover(writer: FrameWriter, phase: pb.SessionPhase.ValueType) -> None:
    """Go back to what a hiding phase hid, if that phase is still shown."""
    state = writer.state
    if state.under is None or state.activity.phase != phase:
        return
    beneath, state.under = state.under, None
    if beneath.phase == pb.SESSION_PHASE_UNSPECIFIED:
        beneath = Activity(pb.SESSION_PHASE_IDLE, writer.now_ms)
    _write(writer, beneath)


def stall(writer: FrameWriter) -> None:
    """Mark the phase stalled: no inner event came for longer than it may take."""
    current = writer.state.activity
    if current.phase not in _RESTING and not current.stalled:
        _write(writer, structs.replace(current, stalled=True))


def revive(writer: FrameWriter) -> None:
    """Take the mark away: an inner event has come."""
    if writer.state.activity.stalled:
        _write(writer, structs.replace(writer.state.activity, stalled=False))


def forget_hidden(writer: FrameWriter) -> None:
    """Let the next phase be shown whatever hides it: the agent that compacts or asks is gone."""
    writer.state.under = None


def _is_same(one: Activity, other: Activity) -> bool:
    is_retry = other.phase == pb.SESSION_PHASE_RETRYING
    return one.phase == other.phase and one.detail == other.detail and not is_retry


def _write(writer: FrameWriter, activity: Activity) -> None:
    writer.state.activity = activity
    writer.event(pb.SessionEvent(activity=activity_message(writer.state)))
