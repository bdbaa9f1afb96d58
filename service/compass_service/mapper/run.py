"""A run of the agent: its beginning and its end."""

from compass.v1 import compass_pb2 as pb
from compass_service.mapper import activity, compaction, failure, inner, tools
from compass_service.mapper.state import Activity
from compass_service.mapper.writer import FrameWriter


def agent_start(writer: FrameWriter, _: inner.AgentStart) -> None:
    """Begin a run."""
    writer.state.abort_seen = False
    failure.open_chance(writer)
    tools.fail_open(writer)
    work(writer)
    activity.replace(writer, Activity(pb.SESSION_PHASE_THINKING, writer.now_ms))


def turn_start(writer: FrameWriter, _: inner.TurnStart) -> None:
    """Begin a turn of a run."""
    failure.open_chance(writer)
    work(writer)


def agent_end(writer: FrameWriter, event: inner.AgentEnd) -> None:
    """End a run. If more is to come, the session goes on working."""
    failure.abandon_message(writer)
    compaction.surface_failure(writer)
    if event.is_terminal and not event.will_retry:
        agent_settled(writer)


def agent_settled(writer: FrameWriter, _: inner.AgentSettled | None = None) -> None:
    """Rest. A session whose last turn failed stays ERRORED until it works again."""
    state = writer.state
    tools.fail_open(writer)
    state.abort_asked = False
    if state.lifecycle not in {pb.AGENT_SESSION_STATE_ERRORED, pb.AGENT_SESSION_STATE_READY}:
        writer.enter(pb.AGENT_SESSION_STATE_READY)
    activity.rest(writer)


def response(writer: FrameWriter, event: inner.Response) -> None:
    """Remember that an abort was asked for. The answer to a command is no inner event otherwise."""
    if event.success and event.command in {"abort", "abort_retry"}:
        writer.state.abort_seen = True


def work(writer: FrameWriter) -> None:
    """Enter WORKING, if the session is not working already."""
    if writer.state.lifecycle != pb.AGENT_SESSION_STATE_WORKING:
        writer.enter(pb.AGENT_SESSION_STATE_WORKING)
