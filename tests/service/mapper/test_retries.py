"""Automatic retries: one card with attempts, superseded attempts, and an end that is told once."""

import pytest
from mapping import (
    AGENT_END,
    AGENT_START,
    TURN_START,
    Traced,
    aborted,
    delta,
    end,
    events,
    failed,
    kinds,
    only,
    phases,
    shape,
    start,
    streamed,
    text,
)

from compass.v1 import compass_pb2 as pb

SETTLED = {"type": "agent_settled"}
RESPONSE = {"type": "response", "command": "abort_retry", "success": True}


def retry(attempt=1, delay_ms=2_000, most=3):
    return {"type": "auto_retry_start", "attempt": attempt, "maxAttempts": most, "delayMs": delay_ms}


def retries_over(final_error=None, *, success=False):
    return {"type": "auto_retry_end", "success": success, "attempt": 3, "finalError": final_error}


def superseded(frames):
    return [activity.supersedes_event_id for activity in events(frames, "activity") if activity.supersedes_event_id]


def terminal_errors(frames):
    """Return the session_errors of kind ERROR that no retry takes back."""
    taken_back = superseded(frames)
    return [
        frame.event.event_id
        for frame in frames
        if frame.event.HasField("session_error")
        and frame.event.session_error.kind == pb.SESSION_ERROR_KIND_ERROR
        and frame.event.event_id not in taken_back
    ]


def attempt(*, with_agent_end=True):
    run = [AGENT_START, TURN_START, start(), failed("429 slow down", errorStatus=429)]
    return [*run, AGENT_END] if with_agent_end else run


def test_a_retry_shows_its_attempt_and_takes_the_failure_back():
    traced = Traced()
    failure = next(frame for frame in traced.push(*attempt()) if frame.event.HasField("session_error"))
    frames = traced.push(retry(2, 4_000.7, 5))
    assert kinds(frames) == ["activity", "WORKING"]
    activity = only(frames, "activity")
    assert (activity.phase, activity.attempt, activity.max_attempts) == (pb.SESSION_PHASE_RETRYING, 2, 5)
    assert activity.delay_ms == 4_001
    assert activity.supersedes_event_id == failure.event.event_id


@pytest.mark.parametrize("with_agent_end", [True, False])
def test_attempts_that_succeed_in_the_end_leave_no_terminal_error(with_agent_end):
    traced = Traced()
    for number in (1, 2, 3):
        traced.push(*attempt(with_agent_end=with_agent_end), retry(number))
    traced.push(AGENT_START, start(), delta("done"), end(text("done")), retries_over(success=True), AGENT_END, SETTLED)
    assert terminal_errors(traced.frames) == []
    retrying = [event for event in events(traced.frames, "activity") if event.phase == pb.SESSION_PHASE_RETRYING]
    assert [(event.attempt, event.delay_ms) for event in retrying] == [(1, 2_000), (2, 2_000), (3, 2_000)]
    assert kinds(traced.frames).count("READY") == 1


@pytest.mark.parametrize("with_agent_end", [True, False])
def test_attempts_that_all_fail_leave_one_terminal_error_and_no_completion(with_agent_end):
    traced = Traced()
    for number in (1, 2, 3):
        traced.push(*attempt(with_agent_end=with_agent_end), retry(number))
    traced.push(*attempt(), retries_over("429 slow down"), SETTLED)
    assert len(terminal_errors(traced.frames)) == 1
    assert "READY" not in kinds(traced.frames)
    assert traced.state.lifecycle == pb.AGENT_SESSION_STATE_ERRORED
    assert phases(traced.frames)[-1] == "IDLE"


def test_a_retry_without_an_announcement_claims_no_supersession():
    traced = Traced()
    traced.push(*attempt(with_agent_end=False), AGENT_START, start(), delta("x"))
    assert superseded(traced.frames) == []


def test_a_retry_that_follows_no_failure_supersedes_nothing():
    traced = Traced()
    traced.push(*attempt(), AGENT_START, retry())
    assert superseded(traced.frames) == []


def test_a_failure_is_taken_back_once():
    traced = Traced()
    traced.push(*attempt(), retry(1), retry(2))
    assert len(superseded(traced.frames)) == 1
    assert phases(traced.frames)[-2:] == ["RETRYING", "RETRYING"]


def test_a_retry_after_the_first_token_keeps_the_attempts_apart():
    traced = Traced()
    traced.push(AGENT_START, start(), delta("Here is the plan"))
    traced.push(failed("reset", text("Here is the plan")), retry())
    traced.push(AGENT_START, start(), delta("Here is the plan: step 1"), end(text("Here is the plan: step 1")))
    by_message: dict[str, str] = {}
    for chunk in events(traced.frames, "assistant_text"):
        by_message[chunk.message_id] = by_message.get(chunk.message_id, "") + chunk.text
    error = only(traced.frames, "session_error")
    assert superseded(traced.frames) == [
        frame.event.event_id for frame in traced.frames if frame.event.HasField("session_error")
    ]
    del by_message[error.message_id]
    assert list(by_message.values()) == ["Here is the plan: step 1"]


def test_retries_that_end_without_an_attempt_surface_their_final_error():
    traced = Traced()
    traced.push(*attempt(), retry())
    frames = traced.push(retries_over({"message": "gave up"}))
    assert kinds(frames) == ["session_error", "ERRORED", "activity"]
    assert only(frames, "session_error").message == "gave up"


def test_a_final_error_that_no_attempt_and_no_retry_preceded_surfaces():
    assert kinds(Traced().push(retries_over("gave up"))) == ["session_error", "ERRORED"]


def test_a_final_error_of_a_failure_that_was_surfaced_adds_nothing():
    traced = Traced()
    traced.push(*attempt())
    assert traced.push(retries_over("429 slow down")) == []


def test_a_final_error_of_a_later_run_is_not_that_of_an_earlier_one():
    traced = Traced()
    traced.push(*attempt(), AGENT_START)
    assert shape(traced.push(retries_over("gave up"))) == ["session_error", "ERRORED"]


def test_a_cancel_that_comes_after_the_attempt_failed_leaves_the_failure():
    traced = Traced()
    traced.push(*attempt(), retry(), *attempt())
    assert traced.push(retries_over("Retry cancelled")) == []
    assert traced.state.lifecycle == pb.AGENT_SESSION_STATE_ERRORED


def test_an_abort_that_was_refused_cancels_nothing():
    traced = Traced()
    traced.push(*attempt(), retry(), {**RESPONSE, "success": False})
    assert shape(traced.push(retries_over("gave up"))) == ["session_error", "ERRORED"]


@pytest.mark.parametrize("asked", ["by its text", "in the protocol", "through the service"])
def test_cancelled_retries_end_as_an_abort(asked):
    traced = Traced()
    traced.push(*attempt(), retry())
    if asked == "in the protocol":
        traced.push(RESPONSE)
    elif asked == "through the service":
        traced.mapper.ask_abort()
    frames = traced.push(retries_over("Retry cancelled" if asked == "by its text" else "429 slow down"))
    assert kinds(frames) == ["session_error", "READY", "activity"]
    error = only(frames, "session_error")
    assert error.kind == pb.SESSION_ERROR_KIND_ABORTED
    is_the_users = error.abort_origin == pb.SESSION_ABORT_ORIGIN_USER
    assert is_the_users == (asked == "through the service")
    assert terminal_errors(traced.frames) == []
    assert phases(traced.frames)[-1] == "IDLE"


def test_retries_that_are_cancelled_within_an_attempt_are_one_abort():
    traced = Traced()
    traced.push(*attempt(), retry(), AGENT_START, start(), delta("x"), aborted())
    frames = traced.push(retries_over("Retry cancelled"))
    assert kinds(frames) == ["READY"]
    assert traced.state.counts.aborts == 1


def test_an_abort_of_an_earlier_run_does_not_make_a_later_failure_an_abort():
    traced = Traced()
    traced.push(AGENT_START, start(), aborted(), AGENT_END, {"type": "response", "command": "abort", "success": True})
    traced.push(*attempt(), retry())
    frames = traced.push(retries_over("429 slow down"))
    assert only(frames, "session_error").kind == pb.SESSION_ERROR_KIND_ERROR


def test_retries_that_succeed_before_an_attempt_shows_leave_the_phase():
    traced = Traced()
    traced.push(*attempt(), retry(), retries_over(success=True))
    assert phases(traced.frames)[-1] == "THINKING"


def test_an_end_of_retries_that_comes_late_leaves_a_running_answer_alone():
    traced = Traced()
    traced.push(*attempt(), retry(), AGENT_START, start(), delta("fine"))
    assert traced.push(retries_over("429 slow down")) == []
    traced.push(delta(" so far"))
    assert streamed(traced.frames) == "fine so far"


def test_numbers_of_a_retry_that_are_nonsense_are_read_as_none():
    event = {"type": "auto_retry_start", "attempt": "one", "maxAttempts": -3, "delayMs": None}
    activity = only(Traced().push(event), "activity")
    assert (activity.attempt, activity.max_attempts, activity.delay_ms) == (0, 0, 0)
    activity = only(Traced().push(retry(2**40, 2**80, 1e300)), "activity")
    assert (activity.attempt, activity.max_attempts, activity.delay_ms) == (2**31 - 1, 2**31 - 1, 2**63 - 1)


def test_a_retry_on_a_fresh_session_is_working():
    assert shape(Traced().push(retry())) == ["WORKING"]
