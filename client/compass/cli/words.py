"""The words in which the command line speaks of a session."""

from compass.v1 import compass_pb2 as pb
from compass.v1 import failure_pb2

STATES = {
    pb.AGENT_SESSION_STATE_UNSPECIFIED: "unknown",
    pb.AGENT_SESSION_STATE_STARTING: "starting",
    pb.AGENT_SESSION_STATE_READY: "ready",
    pb.AGENT_SESSION_STATE_WORKING: "working",
    pb.AGENT_SESSION_STATE_STOPPED: "stopped",
    pb.AGENT_SESSION_STATE_ERRORED: "errored",
    pb.AGENT_SESSION_STATE_DISCONNECTED: "disconnected",
}
PHASES = {
    pb.SESSION_PHASE_UNSPECIFIED: "unknown",
    pb.SESSION_PHASE_IDLE: "idle",
    pb.SESSION_PHASE_THINKING: "thinking",
    pb.SESSION_PHASE_RESPONDING: "responding",
    pb.SESSION_PHASE_RUNNING_TOOL: "running a tool",
    pb.SESSION_PHASE_COMPACTING: "compacting its context",
    pb.SESSION_PHASE_RETRYING: "retrying",
    pb.SESSION_PHASE_AWAITING_INPUT: "waiting for input",
}
ABORT_ORIGINS = {
    pb.SESSION_ABORT_ORIGIN_UNSPECIFIED: "origin unknown",
    pb.SESSION_ABORT_ORIGIN_USER: "by the user",
    pb.SESSION_ABORT_ORIGIN_STEER: "by a steering message",
    pb.SESSION_ABORT_ORIGIN_WATCHDOG: "by a watchdog",
    pb.SESSION_ABORT_ORIGIN_SHUTDOWN: "by the agent's shutdown",
}
CUT_OFF = {
    pb.SESSION_STOP_REASON_ERROR: "cut off by a failure",
    pb.SESSION_STOP_REASON_ABORTED: "cut off by an abort or a close",
    pb.SESSION_STOP_REASON_DISCONNECTED: "cut off, the agent is gone",
}
GAP_REASONS = {
    pb.SESSION_GAP_REASON_UNSPECIFIED: "no reason given",
    pb.SESSION_GAP_REASON_SUBSCRIBER_LAG: "this reader was too slow; the log still has them",
    pb.SESSION_GAP_REASON_PRODUCER_OVERFLOW: "the agent had to drop them",
    pb.SESSION_GAP_REASON_RETENTION: "retention took them",
}
PROMPT_STATES = {
    pb.SESSION_PROMPT_STATE_UNSPECIFIED: "unknown",
    pb.SESSION_PROMPT_STATE_QUEUED: "queued",
    pb.SESSION_PROMPT_STATE_CLAIMED: "handed to the agent",
    pb.SESSION_PROMPT_STATE_RECORDED: "recorded",
    pb.SESSION_PROMPT_STATE_RETURNED: "back in the queue",
    pb.SESSION_PROMPT_STATE_CANCELLED: "cancelled",
}
INJECTIONS = {
    pb.SESSION_INJECTION_KIND_UNSPECIFIED: "injected",
    pb.SESSION_INJECTION_KIND_STEER: "steering",
    pb.SESSION_INJECTION_KIND_DELIVER: "for the next turn",
}


def category(error: pb.SessionError) -> str:
    """Name the category of a failure."""
    number = error.category
    known = failure_pb2.FailureCategory.values()
    return (
        failure_pb2.FailureCategory.Name(number).removeprefix("FAILURE_CATEGORY_") if number in known else str(number)
    )


def seconds(milliseconds: int) -> str:
    """Write a duration for a person."""
    return f"{milliseconds / 1_000:.3g} s"


def count(number: int, noun: str) -> str:
    """Write a number and its noun."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
