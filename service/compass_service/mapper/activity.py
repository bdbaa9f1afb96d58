"""What the agent is doing: one phase at a time, and what COMPACTING and AWAITING_INPUT hide meanwhile."""

from compass.v1 import compass_pb2 as pb
from compass_service.mapper.state import Activity, activity_message
from compass_service.mapper.text import cut_chars
from compass_service.mapper.writer import FrameWriter

MAX_DETAIL_CHARS = 256
_HIDING = frozenset({pb.SESSION_PHASE_COMPACTING, pb.SESSION_PHASE_AWAITING_INPUT})
_RESTING = frozenset({pb.SESSION_PHASE_UNSPECIFIED, pb.SESSION_PHASE_IDLE})


def begin_phase(writer: FrameWriter, phase: pb.SessionPhase.ValueType, detail: str = "") -> None:
    """Enter a phase of the turn. While the agent compacts, the phase is only remembered."""
    state = writer.state
    activity = Activity(phase, writer.now_ms, cut_chars(detail, MAX_DETAIL_CHARS))
    if state.under is not None and state.activity.phase == pb.SESSION_PHASE_COMPACTING:
        state.under = activity
    else:
        show(writer, activity)


def restart_phase(writer: FrameWriter, phase: pb.SessionPhase.ValueType) -> None:
    """Enter a phase whatever hides it: the agent evidently goes on."""
    show(writer, Activity(phase, writer.now_ms))


def rest(writer: FrameWriter) -> None:
    """Enter IDLE, unless the agent rests already."""
    current = writer.state.under or writer.state.activity
    if current.phase not in _RESTING:
        begin_phase(writer, pb.SESSION_PHASE_IDLE)


def rest_at_once(writer: FrameWriter) -> None:
    """Enter IDLE whatever hides it: nothing goes on any more."""
    writer.state.under = None
    if writer.state.activity.phase not in _RESTING:
        show(writer, Activity(pb.SESSION_PHASE_IDLE, writer.now_ms))


def hide(writer: FrameWriter, phase: pb.SessionPhase.ValueType, detail: str) -> None:
    """Enter COMPACTING or AWAITING_INPUT over what the agent was doing."""
    state = writer.state
    if state.activity.phase == phase:
        return
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


def show(writer: FrameWriter, activity: Activity) -> None:
    """Replace the activity. Nothing is written when phase and detail stay the same, unless it is another retry."""
    current = writer.state.activity
    writer.state.under = None
    is_same = current.phase == activity.phase and current.detail == activity.detail
    if not is_same or activity.phase == pb.SESSION_PHASE_RETRYING:
        _write(writer, activity)


def _write(writer: FrameWriter, activity: Activity) -> None:
    writer.state.activity = activity
    writer.event(pb.SessionEvent(activity=activity_message(writer.state)))


def end_phase(
    writer: FrameWriter,
    phase: pb.SessionPhase.ValueType,
    after: pb.SessionPhase.ValueType,
) -> None:
    """Leave a phase for another, if it is the turn's phase now."""
    current = writer.state.under or writer.state.activity
    if current.phase == phase:
        begin_phase(writer, after)
