"""How a turn ended, as `wait` reads it."""

import pytest

from compass.cli.outcome import Outcome, OutcomeReader
from compass.v1 import compass_pb2 as pb

STARTING, READY, WORKING, STOPPED, ERRORED, DISCONNECTED = range(1, 7)


def error(kind: int) -> pb.AgentSessionFrame:
    return pb.AgentSessionFrame(event=pb.SessionEvent(session_error=pb.SessionError(kind=kind, message="why")))


def end(outcome: int) -> pb.AgentSessionFrame:
    return pb.AgentSessionFrame(event=pb.SessionEvent(message_end=pb.SessionMessageEnd(outcome=outcome)))


FAILS = error(pb.SESSION_ERROR_KIND_ERROR)
ABORTS = error(pb.SESSION_ERROR_KIND_ABORTED)
WHOLE = end(pb.SESSION_MESSAGE_OUTCOME_COMPLETE)
CUT = end(pb.SESSION_MESSAGE_OUTCOME_INCOMPLETE)
CALLS = pb.AgentSessionFrame(
    event=pb.SessionEvent(
        message_end=pb.SessionMessageEnd(
            outcome=pb.SESSION_MESSAGE_OUTCOME_COMPLETE, stop_reason=pb.SESSION_STOP_REASON_TOOL_USE
        )
    )
)
RUNS = pb.AgentSessionFrame(event=pb.SessionEvent(tool_call=pb.SessionToolCall(tool_call_id="t")))
SPEAKS = pb.AgentSessionFrame(event=pb.SessionEvent(assistant_text=pb.SessionAssistantText(text="a")))


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        pytest.param([], None, id="nothing yet"),
        pytest.param([STARTING], None, id="attached, never worked"),
        pytest.param([STARTING, WORKING, SPEAKS], None, id="working"),
        pytest.param([WORKING, SPEAKS, WHOLE, READY], Outcome.DONE, id="done"),
        pytest.param([WORKING, SPEAKS, WHOLE, READY, STOPPED], Outcome.DONE, id="done, then closed"),
        pytest.param([WORKING, READY, WORKING], None, id="the next turn"),
        pytest.param([WORKING, SPEAKS, CUT, FAILS, ERRORED], Outcome.FAILED, id="failed"),
        pytest.param([WORKING, FAILS, ERRORED, STOPPED], Outcome.FAILED, id="failed, then closed"),
        pytest.param([WORKING, FAILS, ERRORED, WORKING], None, id="tries again"),
        pytest.param([WORKING, FAILS, ERRORED, WORKING, SPEAKS, WHOLE, READY], Outcome.DONE, id="recovered"),
        pytest.param([WORKING, SPEAKS, CUT, ABORTS, READY], Outcome.ABORTED, id="aborted"),
        pytest.param([WORKING, ABORTS, SPEAKS, WHOLE, READY], Outcome.DONE, id="steered"),
        pytest.param([WORKING, SPEAKS, CUT, STOPPED], Outcome.ABORTED, id="closed in the middle"),
        pytest.param([WORKING, WHOLE, STOPPED], Outcome.DONE, id="closed between messages"),
        pytest.param([WORKING, STOPPED], Outcome.ABORTED, id="closed before it said anything"),
        pytest.param([WORKING, CALLS, STOPPED], Outcome.ABORTED, id="closed before the tool it asked for"),
        pytest.param([WORKING, WHOLE, RUNS, STOPPED], Outcome.ABORTED, id="closed while a tool ran"),
        pytest.param([WORKING, FAILS, ERRORED, WORKING, STOPPED], Outcome.ABORTED, id="closed before the next attempt"),
        pytest.param([WORKING, CALLS, RUNS, DISCONNECTED, STOPPED], Outcome.ABORTED, id="closed while it was away"),
        pytest.param([WORKING, CALLS, RUNS, WHOLE, READY, STOPPED], Outcome.DONE, id="done with tools, then closed"),
        pytest.param([STARTING, STOPPED], Outcome.DONE, id="closed before it worked"),
        pytest.param([WORKING, SPEAKS, DISCONNECTED], None, id="may come back"),
        pytest.param([WORKING, DISCONNECTED, WORKING, WHOLE, READY], Outcome.DONE, id="came back"),
        pytest.param([WORKING, DISCONNECTED, CUT, FAILS, ERRORED], Outcome.LOST, id="lost"),
        pytest.param([WORKING, WHOLE, READY, DISCONNECTED], Outcome.DONE, id="gone after it was done"),
        pytest.param([STARTING, DISCONNECTED], Outcome.LOST, id="gone before it worked"),
    ],
)
def test_an_outcome_is_read_from_what_happened(history, expected):
    reader = OutcomeReader()
    for step in history:
        reader.take(pb.AgentSessionFrame(state=step) if isinstance(step, int) else step)

    assert reader.outcome is expected


def test_the_error_that_ended_the_turn_is_kept_and_one_of_a_retried_attempt_is_not():
    reader = OutcomeReader()
    for step in (FAILS, pb.AgentSessionFrame(state=ERRORED)):
        reader.take(step)
    assert reader.error.message == "why"

    reader.take(pb.AgentSessionFrame(state=WORKING))
    assert reader.error is None
