"""What the session calls: a producer attaches, vanishes, comes back, is lost; a process exits; a session is closed."""

import pytest
from mapping import (
    AGENT_END,
    AGENT_START,
    TURN_START,
    Traced,
    delta,
    end,
    events,
    failed,
    kinds,
    only,
    phases,
    shape,
    start,
    text,
    tool_start,
    user,
)

from compass.v1 import compass_pb2 as pb
from compass.v1 import failure_pb2

RETRY = {"type": "auto_retry_start", "attempt": 1, "maxAttempts": 3, "delayMs": 2_000}
COMPACTION = {"type": "compaction_start", "reason": "threshold"}


def verb(traced, name, **arguments):
    return traced.take(getattr(traced.mapper, name)(now_ms=traced.tick(), **arguments))


def exit_process(traced, *, code=1, signal="", last_stderr=""):
    return verb(traced, "exit", code=code, signal=signal, last_stderr=last_stderr)


def test_a_first_hello_starts_the_session_once():
    traced = Traced()
    assert kinds(verb(traced, "start")) == ["STARTING"]
    assert verb(traced, "start") == []
    traced.push(AGENT_START)
    assert verb(traced, "start") == []


def test_a_producer_that_vanishes_and_comes_back_goes_on_where_it_was():
    traced = Traced()
    traced.push(AGENT_START, TURN_START, start(), delta("a"), delta("b"), delta("c"))
    assert kinds(verb(traced, "detach")) == ["DISCONNECTED"]
    assert verb(traced, "detach") == []
    assert kinds(verb(traced, "reattach")) == ["WORKING"]
    assert verb(traced, "reattach") == []
    frames = traced.push(delta("d"), end(text("abcd")), AGENT_END)
    assert shape(frames) == ["assistant_text", "message_end", "READY"]
    assert events(traced.frames, "session_error") == []


@pytest.mark.parametrize("before", ["STARTING", "READY", "ERRORED"])
def test_coming_back_restores_the_state_before(before):
    traced = Traced()
    verb(traced, "start")
    if before != "STARTING":
        traced.push(AGENT_START, *([AGENT_END] if before == "READY" else [failed()]))
    verb(traced, "detach")
    assert kinds(verb(traced, "reattach")) == [before]


def test_a_session_that_never_started_comes_back_as_starting():
    traced = Traced()
    verb(traced, "detach")
    assert kinds(verb(traced, "reattach")) == ["STARTING"]


def test_a_producer_lost_for_good_while_it_answered_is_one_failure():
    traced = Traced()
    traced.push(AGENT_START, TURN_START, user(), start(provider="acme", model="m"), delta("a"), delta("b"), delta("c"))
    verb(traced, "detach")
    frames = verb(traced, "lose")
    assert kinds(frames) == ["message_end", "session_error", "ERRORED", "activity"]
    ended, error = only(frames, "message_end"), only(frames, "session_error")
    assert ended.outcome == pb.SESSION_MESSAGE_OUTCOME_INCOMPLETE
    assert ended.stop_reason == pb.SESSION_STOP_REASON_DISCONNECTED
    assert error.category == failure_pb2.FAILURE_CATEGORY_NETWORK
    assert error.message_id == ended.message_id
    assert (error.provider, error.model) == ("", ""), "it is no failure of the provider"
    assert not error.retryable
    assert traced.state.activity.phase == pb.SESSION_PHASE_IDLE
    assert verb(traced, "lose") == []
    assert verb(traced, "reattach") == []


def test_what_a_lost_producer_sends_later_does_not_judge_the_turn_again():
    traced = Traced()
    traced.push(AGENT_START, start(), delta("a"))
    verb(traced, "detach")
    verb(traced, "lose")
    assert traced.push(delta("b"), end(text("ab")), failed("boom"), AGENT_END) == []
    assert traced.state.lifecycle == pb.AGENT_SESSION_STATE_ERRORED


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        ([AGENT_START], ["session_error", "ERRORED", "activity"]),
        ([AGENT_START, start()], ["session_error", "ERRORED", "activity"]),
        ([start(), delta("a")], ["message_end", "session_error", "ERRORED", "activity"]),
        ([AGENT_START, AGENT_END, COMPACTION], ["session_error", "ERRORED", "activity"]),
        ([AGENT_START, failed(), RETRY], ["session_error", "ERRORED", "activity"]),
        ([AGENT_START, tool_start()], ["tool_call_update", "session_error", "ERRORED", "activity"]),
    ],
)
@pytest.mark.parametrize("detached", [True, False])
def test_every_kind_of_work_is_judged_when_its_producer_is_lost(work, expected, detached):
    traced = Traced()
    traced.push(*work)
    if detached:
        verb(traced, "detach")
    assert kinds(verb(traced, "lose")) == expected
    assert phases(traced.frames)[-1] == "IDLE"


def test_a_lost_producer_that_had_shown_nothing_may_be_tried_again():
    traced = Traced()
    traced.push(AGENT_START)
    error = only(verb(traced, "lose"), "session_error")
    assert (error.message_id, error.retryable) == ("", True)


@pytest.mark.parametrize("work", [[], [AGENT_START, AGENT_END], [AGENT_START, failed(), AGENT_END]])
def test_an_idle_session_whose_producer_is_lost_has_not_failed(work):
    traced = Traced()
    traced.push(*work)
    verb(traced, "detach")
    assert verb(traced, "lose") == []
    assert traced.state.lifecycle == pb.AGENT_SESSION_STATE_DISCONNECTED


def test_a_close_ends_what_is_open_and_stopped_is_last():
    traced = Traced()
    traced.push(AGENT_START, start(), delta("a"), tool_start())
    frames = verb(traced, "close")
    assert kinds(frames) == ["message_end", "tool_call_update", "activity", "STOPPED"]
    ended = only(frames, "message_end")
    assert ended.outcome == pb.SESSION_MESSAGE_OUTCOME_INCOMPLETE
    assert ended.stop_reason == pb.SESSION_STOP_REASON_ABORTED
    assert only(frames, "tool_call_update").status == pb.AGENT_TOOL_CALL_STATUS_FAILED


def test_a_close_of_a_resting_session_is_one_frame():
    traced = Traced()
    traced.push(AGENT_START, AGENT_END)
    assert kinds(verb(traced, "close")) == ["STOPPED"]


def test_a_close_leaves_no_compaction_behind():
    traced = Traced()
    traced.push(AGENT_START, COMPACTION)
    assert kinds(verb(traced, "close")) == ["activity", "STOPPED"]
    assert traced.state.activity.phase == pb.SESSION_PHASE_IDLE


def test_nothing_follows_stopped():
    traced = Traced()
    verb(traced, "close")
    assert traced.push(AGENT_START, failed()) == []
    for name in ("start", "detach", "reattach", "lose", "close"):
        assert verb(traced, name) == []
    assert exit_process(traced) == []
    assert traced.state.lifecycle == pb.AGENT_SESSION_STATE_STOPPED


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"code": 1}, "the agent process exited with code 1"),
        ({"code": None, "signal": "SIGKILL"}, "the agent process was ended by SIGKILL"),
        ({"code": None}, "the agent process ended"),
        ({"code": 2, "last_stderr": "\nTraceback\n"}, "the agent process exited with code 2: Traceback"),
    ],
)
def test_an_exit_says_how_the_process_ended(how, said):
    traced = Traced()
    traced.push(AGENT_START, start(), delta("a"))
    frames = exit_process(traced, **how)
    assert kinds(frames) == ["message_end", "session_error", "ERRORED", "activity"]
    assert only(frames, "session_error").message == said
    assert only(frames, "message_end").stop_reason == pb.SESSION_STOP_REASON_DISCONNECTED


def test_an_exit_of_an_idle_agent_is_told_at_once_too():
    traced = Traced()
    traced.push(AGENT_START, AGENT_END)
    assert kinds(exit_process(traced)) == ["session_error", "ERRORED"]


def test_the_stderr_of_an_exit_is_bounded():
    frames = exit_process(Traced(), last_stderr="é" * 10_000)
    assert len(only(frames, "session_error").message.encode()) <= 2_048
    assert frames[0].original_bytes > 20_000


def test_an_overflow_is_a_gap_that_counts_inner_events():
    traced = Traced()
    frames = traced.take(traced.mapper.overflow(7, now_ms=traced.tick()))
    assert kinds(frames) == ["gap"]
    gap = frames[0].gap
    assert (gap.first_seq, gap.last_seq, gap.dropped) == (0, 0, 7)
    assert gap.reason == pb.SESSION_GAP_REASON_PRODUCER_OVERFLOW
    traced.take(traced.mapper.overflow(3, now_ms=traced.tick()))
    assert traced.state.counts.dropped_producer_overflow == 10
    traced.take(traced.mapper.overflow(2**64 - 1, now_ms=traced.tick()))
    assert traced.state.counts.dropped_producer_overflow == 2**63 - 1


def test_a_new_run_after_a_loss_starts_clean():
    traced = Traced()
    traced.push(AGENT_START, start(), COMPACTION, tool_start())
    verb(traced, "lose")
    frames = traced.push(AGENT_START, start(), delta("a"), end(text("a")), AGENT_END)
    assert shape(frames) == ["WORKING", "assistant_text", "message_end", "READY"]
    assert phases(frames) == ["THINKING", "RESPONDING", "IDLE"]
    assert phases(traced.push(COMPACTION, {"type": "compaction_end"})) == ["COMPACTING", "IDLE"]


def test_a_compaction_that_failed_before_a_loss_does_not_fail_the_next_run():
    traced = Traced()
    traced.push(AGENT_START, COMPACTION, {"type": "compaction_end", "errorMessage": "quota"})
    verb(traced, "lose")
    assert shape(traced.push(AGENT_START, AGENT_END)) == ["WORKING", "READY"]


def test_retries_that_a_loss_ended_do_not_hide_a_later_failure():
    traced = Traced()
    traced.push(AGENT_START, RETRY)
    verb(traced, "lose")
    traced.push(AGENT_START)
    frames = traced.push({"type": "auto_retry_end", "success": False, "finalError": "gave up"})
    assert shape(frames) == ["session_error", "ERRORED"]
