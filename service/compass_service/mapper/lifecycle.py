"""What happens to a session from outside: producers attach, vanish, come back, are lost for good, and it is closed."""

from compass.failures import Category, Verdict
from compass.v1 import compass_pb2 as pb
from compass_service.mapper import activity, failure, tools
from compass_service.mapper.state import MapperState
from compass_service.mapper.writer import FrameWriter

LOST = "the connection to the agent was lost"
_LOST_VERDICT = Verdict(Category.NETWORK, retryable=True)
_BUSY_PHASES = frozenset({pb.SESSION_PHASE_COMPACTING, pb.SESSION_PHASE_RETRYING})


def start(writer: FrameWriter) -> None:
    """Enter STARTING, if nothing is known of the session yet."""
    if writer.state.lifecycle == pb.AGENT_SESSION_STATE_UNSPECIFIED:
        writer.enter(pb.AGENT_SESSION_STATE_STARTING)


def ready(writer: FrameWriter) -> None:
    """Leave STARTING: the agent can take a prompt."""
    if writer.state.lifecycle == pb.AGENT_SESSION_STATE_STARTING:
        writer.enter(pb.AGENT_SESSION_STATE_READY)


def detach(writer: FrameWriter) -> None:
    """Enter DISCONNECTED without a judgement on the turn."""
    state = writer.state
    if state.lifecycle not in {pb.AGENT_SESSION_STATE_STOPPED, pb.AGENT_SESSION_STATE_DISCONNECTED}:
        state.lifecycle_before = state.lifecycle
        writer.enter(pb.AGENT_SESSION_STATE_DISCONNECTED)


def reattach(writer: FrameWriter) -> None:
    """Go back to the state before DISCONNECTED."""
    state = writer.state
    if state.lifecycle == pb.AGENT_SESSION_STATE_DISCONNECTED:
        before = pb.AgentSessionState.ValueType(state.lifecycle_before)
        writer.enter(before or pb.AGENT_SESSION_STATE_STARTING)


def lose(writer: FrameWriter) -> None:
    """Judge a session whose producer will not come back. For one that did not work, that is no error."""
    if writer.state.lifecycle != pb.AGENT_SESSION_STATE_STOPPED and _is_working(writer.state):
        _fail(writer, LOST)


def exit_process(writer: FrameWriter, *, code: int | None, signal: str, last_stderr: str) -> None:
    """Judge a session whose agent process has ended."""
    if writer.state.lifecycle == pb.AGENT_SESSION_STATE_STOPPED:
        return
    how = f"was ended by {signal}" if signal else "ended" if code is None else f"exited with code {code}"
    stderr = last_stderr.strip()
    _fail(writer, f"the agent process {how}: {stderr}" if stderr else f"the agent process {how}")


def close(writer: FrameWriter) -> None:
    """Enter STOPPED. What is open ends before."""
    if writer.state.lifecycle == pb.AGENT_SESSION_STATE_STOPPED:
        return
    failure.end_unfinished(writer, pb.SESSION_STOP_REASON_ABORTED)
    _settle(writer)
    activity.rest(writer)
    writer.enter(pb.AGENT_SESSION_STATE_STOPPED)


def _fail(writer: FrameWriter, cause: str) -> None:
    message_id = failure.end_unfinished(writer, pb.SESSION_STOP_REASON_DISCONNECTED)
    _settle(writer)
    failure.surface_error(writer, cause, verdict=_LOST_VERDICT, message_id=message_id, is_providers=False)


def _settle(writer: FrameWriter) -> None:
    """Forget what only a living agent could end."""
    state = writer.state
    tools.fail_open(writer)
    state.num_compactions = 0
    state.compaction_failure = None
    state.retry_open = False
    state.abort_seen = state.abort_asked = False
    activity.forget_hidden(writer)


def _is_working(state: MapperState) -> bool:
    is_away = state.lifecycle == pb.AGENT_SESSION_STATE_DISCONNECTED
    lifecycle = state.lifecycle_before if is_away else state.lifecycle
    return (
        lifecycle == pb.AGENT_SESSION_STATE_WORKING
        or state.message is not None
        or state.activity.phase in _BUSY_PHASES
        or (state.under is not None and state.under.phase in _BUSY_PHASES)
    )
