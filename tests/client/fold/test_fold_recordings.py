"""Recorded runs of real agents, folded: live, on replay, and with every loss repaired."""

import json
import random
from pathlib import Path

import pytest
from google.protobuf.json_format import ParseDict

from compass.fold import CardOutcome, SessionFold, View, fold
from compass.gap import Gap
from compass.lanes import is_priority
from compass.v1 import compass_pb2 as pb

GOLDEN = Path(__file__).parents[2] / "data" / "golden"


def frames_of(path: Path) -> list[pb.AgentSessionFrame]:
    lines = path.read_text().split("\n")
    return [ParseDict(json.loads(line), pb.AgentSessionFrame()) for line in lines if line]


def view_of(name: str) -> View:
    return fold(frames_of(GOLDEN / f"{name}.jsonl"))


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.jsonl")), ids=lambda path: path.stem)
def test_a_view_with_all_trace_lost_and_fetched_again_is_the_replayed_view(path):
    frames = frames_of(path)
    session = SessionFold()
    for frame in frames:
        lost = Gap(frame.seq, frame.seq, 1, pb.SESSION_GAP_REASON_SUBSCRIBER_LAG)
        session.apply(frame if is_priority(frame) else lost)
    trace = [frame for frame in frames if not is_priority(frame)]
    assert sum(gap.dropped for gap in session.view.gaps) == len(trace)

    random.Random(path.stem).shuffle(trace)
    for frame in trace:
        session.apply(frame)

    assert session.view == fold(frames)


def test_an_answer_with_a_tool_is_two_messages_and_a_tool_call():
    user, calling, answering = view_of("omp-tool").messages

    assert (user.text, calling.text) == ("do the thing", "")
    assert [tool.title for tool in calling.tool_calls] == ["List files"]
    assert calling.tool_calls[0].status == pb.AGENT_TOOL_CALL_STATUS_COMPLETED
    assert (answering.text, answering.incomplete) == ("Hello from the fake model. ", False)


def test_reasoning_is_not_in_the_text():
    _, message = view_of("omp-think").messages

    assert (message.thinking.strip(), message.text.strip()) == ("Let me think about it", "It is 42.")


def test_four_attempts_against_a_rate_limit_are_one_card():
    view = view_of("pi-err429")

    (card,) = view.errors
    assert (card.outcome, len(card.attempts)) == (CardOutcome.FAILED, 3)
    assert [len(message.errors) for message in view.messages] == [1]


@pytest.mark.parametrize("name", ["omp-rpc-abort", "pi-rpc-abort"])
def test_an_aborted_run_has_an_abort_and_no_error(name):
    view = view_of(name)

    assert view.errors == ()
    assert len(view.aborts) == 1
    assert view.messages[-1].incomplete is True
    assert view.messages[-1].errors == view.aborts
    assert view.state == pb.AGENT_SESSION_STATE_READY


def test_a_failure_in_the_middle_leaves_the_partial_answer_marked():
    view = view_of("omp-inband")

    assert (view.messages[-1].text, view.messages[-1].incomplete) == ("The answer is forty ", True)
    assert [card.outcome for card in view.errors] == [CardOutcome.FAILED]
