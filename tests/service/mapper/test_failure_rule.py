"""A failed or aborted message surfaces exactly once, whatever forms the agent reports it in."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
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
    tool_start,
    update,
)

from compass.v1 import compass_pb2 as pb
from compass.v1 import failure_pb2

STREAM_ERROR = update("error", reason="error", error={"role": "assistant", "errorMessage": "boom", "errorStatus": 500})
STREAM_ABORT = update("error", reason="aborted", error={"role": "assistant", "errorMessage": "Request was aborted"})


@pytest.mark.parametrize("form", [failed("boom", errorStatus=500), STREAM_ERROR], ids=["message_end", "stream"])
def test_a_bare_error_on_a_fresh_session_is_two_frames_content_first(form):
    frames = Traced().push(form)
    assert kinds(frames) == ["session_error", "ERRORED"]
    error = only(frames, "session_error")
    assert (error.kind, error.message, error.status) == (pb.SESSION_ERROR_KIND_ERROR, "boom", 500)
    assert error.message_id == ""


@pytest.mark.parametrize("form", [aborted(), STREAM_ABORT], ids=["message_end", "stream"])
def test_a_bare_abort_on_a_fresh_session_is_one_frame(form):
    traced = Traced()
    frames = traced.push(form)
    assert kinds(frames) == ["session_error"]
    error = only(frames, "session_error")
    assert (error.kind, error.message) == (pb.SESSION_ERROR_KIND_ABORTED, "Request was aborted")
    assert error.category == failure_pb2.FAILURE_CATEGORY_UNSPECIFIED
    assert not error.retryable
    assert not error.HasField("status")
    assert traced.state.lifecycle == pb.AGENT_SESSION_STATE_UNSPECIFIED


def test_idle_comes_last_when_the_phase_was_another():
    traced = Traced()
    traced.push(AGENT_START, start())
    assert kinds(traced.push(failed())) == ["session_error", "ERRORED", "activity"]
    traced.push(AGENT_START, start())
    assert kinds(traced.push(aborted())) == ["session_error", "activity"]
    assert phases(traced.frames)[-1] == "IDLE"


def test_a_message_that_was_shown_in_part_ends_incomplete_before_the_error():
    traced = Traced()
    traced.push(AGENT_START, start(provider="acme", model="m1"), delta("The answer "))
    usage = {"input": 3, "output": 2}
    frames = traced.push(failed("429 slow down", text("The answer "), errorStatus=429, usage=usage))
    assert shape(frames) == ["message_end", "session_error", "ERRORED"]
    ended, error = only(frames, "message_end"), only(frames, "session_error")
    assert ended.outcome == pb.SESSION_MESSAGE_OUTCOME_INCOMPLETE
    assert ended.stop_reason == pb.SESSION_STOP_REASON_ERROR
    assert ended.usage.output_tokens == 2
    assert error.message_id == ended.message_id == "m1"
    assert (error.provider, error.model) == ("acme", "m1")
    assert not error.retryable


def test_a_tool_call_that_was_seen_counts_as_shown():
    traced = Traced()
    traced.push(AGENT_START, start(), update("toolcall_start", contentIndex=0))
    frames = traced.push(failed("boom"))
    assert shape(frames) == ["message_end", "session_error", "ERRORED"]
    assert not only(frames, "session_error").retryable


@pytest.mark.parametrize("first", [failed(), STREAM_ERROR, aborted(), STREAM_ABORT])
@pytest.mark.parametrize("again", [failed("other"), STREAM_ERROR, aborted(), STREAM_ABORT, end(text("late"))])
def test_one_failure_surfaces_once_whatever_forms_follow(first, again):
    traced = Traced()
    traced.push(AGENT_START, start(), delta("a"), first)
    assert traced.push(again, AGENT_END)[:-1] == []
    assert len(events(traced.frames, "session_error")) == 1
    assert len(events(traced.frames, "message_end")) == 1


@pytest.mark.parametrize("opening", [AGENT_START, TURN_START, start()])
def test_a_new_chance_opens_with_each_run_turn_and_message(opening):
    traced = Traced()
    traced.push(failed("one"), opening)
    assert shape(traced.push(failed("two"))) == ["session_error", "ERRORED"]
    assert traced.state.counts.errors == 2


def test_one_cancel_is_one_abort_and_no_error():
    """A late error for the same turn, and a second abort, add nothing."""
    traced = Traced()
    traced.push(AGENT_START, TURN_START, start(), delta("count "))
    traced.push(aborted("Request was aborted"), AGENT_END, failed("Request was aborted"), STREAM_ERROR, aborted())
    errors = events(traced.frames, "session_error")
    assert [error.kind for error in errors] == [pb.SESSION_ERROR_KIND_ABORTED]
    assert traced.state.activity.phase == pb.SESSION_PHASE_IDLE
    assert traced.state.lifecycle == pb.AGENT_SESSION_STATE_READY
    assert (traced.state.counts.errors, traced.state.counts.aborts) == (0, 1)


def test_an_error_that_follows_a_whole_message_surfaces():
    traced = Traced()
    traced.push(AGENT_START, start(), delta("a"), end(text("a")))
    frames = traced.push(STREAM_ERROR)
    assert shape(frames) == ["session_error", "ERRORED"]


@pytest.mark.parametrize(
    ("said", "origin"),
    [
        ({"abortOrigin": "user"}, pb.SESSION_ABORT_ORIGIN_USER),
        ({"abortOrigin": "STEER"}, pb.SESSION_ABORT_ORIGIN_STEER),
        ({"abortOrigin": "watchdog"}, pb.SESSION_ABORT_ORIGIN_WATCHDOG),
        ({"abortOrigin": "timeout"}, pb.SESSION_ABORT_ORIGIN_WATCHDOG),
        ({"abortOrigin": "shutdown"}, pb.SESSION_ABORT_ORIGIN_SHUTDOWN),
        ({"abortOrigin": "weather"}, pb.SESSION_ABORT_ORIGIN_UNSPECIFIED),
        ({}, pb.SESSION_ABORT_ORIGIN_UNSPECIFIED),
        ({"message": "Interrupted by user"}, pb.SESSION_ABORT_ORIGIN_USER),
        ({"message": "Interrupted by user", "abortOrigin": "watchdog"}, pb.SESSION_ABORT_ORIGIN_WATCHDOG),
    ],
)
def test_an_abort_says_who_asked_and_unknown_is_never_the_user(said, origin):
    assert only(Traced().push(aborted(**said)), "session_error").abort_origin == origin


def test_an_abort_that_was_asked_for_through_this_service_is_the_users():
    traced = Traced()
    traced.push(AGENT_START, start())
    traced.mapper.ask_abort()
    assert only(traced.push(aborted()), "session_error").abort_origin == pb.SESSION_ABORT_ORIGIN_USER
    traced.push(AGENT_START, start())
    assert only(traced.push(aborted()), "session_error").abort_origin == pb.SESSION_ABORT_ORIGIN_UNSPECIFIED


def test_an_abort_that_came_too_late_does_not_colour_the_next_one():
    traced = Traced()
    traced.push(AGENT_START, start(), delta("a"))
    traced.mapper.ask_abort()
    traced.push(end(text("a")), AGENT_END, AGENT_START, start(), aborted())
    assert only(traced.frames, "session_error").abort_origin == pb.SESSION_ABORT_ORIGIN_UNSPECIFIED


def test_an_abort_closes_the_open_tools_as_failed():
    traced = Traced()
    traced.push(AGENT_START, start(), delta("a"), end(text("a"), stop="toolUse"), tool_start("c1"), tool_start("c2"))
    traced.push(start(), delta("b"))
    frames = traced.push(aborted())
    assert kinds(frames) == ["message_end", "tool_call_update", "tool_call_update", "session_error", "activity"]
    assert {change.status for change in events(frames, "tool_call_update")} == {pb.AGENT_TOOL_CALL_STATUS_FAILED}
    assert traced.state.tools == {}


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("plain", "plain"),
        ("", ""),
        (None, ""),
        (503, "503"),
        ({"message": "inside"}, "inside"),
        ({"error": {"message": "deep", "code": "x"}}, "deep"),
        ({"code": "E1"}, '{"code": "E1"}'),
        (["a", 1], '["a", 1]'),
    ],
)
def test_failure_text_is_readable_in_every_form(message, shown):
    frames = Traced().push(failed(message))
    assert kinds(frames) == ["session_error", "ERRORED"]
    assert only(frames, "session_error").message == shown


def test_failure_text_that_is_missing_is_empty():
    event = failed()
    del event["message"]["errorMessage"]
    assert only(Traced().push(event), "session_error").message == ""


def test_a_page_of_html_is_cut_and_says_so():
    page = "<html>" + "é" * 150_000
    frames = Traced().push(failed(page))
    assert 1_900 < len(only(frames, "session_error").message.encode()) <= 2_048
    assert frames[0].original_bytes == len(page.encode())


@pytest.mark.parametrize("status", ["429", None, True, 1.5, -1, 0, 600, 2**40, [429], {"code": 429}])
def test_a_status_that_is_no_status_is_unset(status):
    assert not only(Traced().push(failed("429 x", errorStatus=status)), "session_error").HasField("status")


def test_names_that_are_too_long_are_dropped_whole():
    error = only(Traced().push(failed(provider="p" * 300, model="m")), "session_error")
    assert (error.provider, error.model) == ("", "m")


FORMS = {
    "run": AGENT_START,
    "turn": TURN_START,
    "start": start(),
    "delta": delta("x"),
    "failed": failed(),
    "stream_error": STREAM_ERROR,
    "aborted": aborted(),
    "stream_abort": STREAM_ABORT,
    "whole": end(text("x")),
    "run_end": AGENT_END,
}
OPENINGS = {"run", "turn", "start"}
FAILURES = {"failed", "stream_error", "aborted", "stream_abort"}


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(sorted(FORMS)), max_size=14))
def test_any_mix_of_forms_surfaces_one_failure_a_chance(names):
    traced = Traced()
    expected, is_open = 0, True
    for name in names:
        if name in OPENINGS:
            is_open = True
        elif name in FAILURES and is_open:
            expected, is_open = expected + 1, False
        traced.push(FORMS[name])
    assert len(events(traced.frames, "session_error")) == expected
    ended = [event.message_id for event in events(traced.frames, "message_end")]
    assert len(ended) == len(set(ended))
    assert "boom" not in streamed(traced.frames)


def test_a_tool_call_that_only_the_failed_message_holds_counts_as_shown():
    traced = Traced()
    traced.push(AGENT_START, start())
    frames = traced.push(failed("boom", {"type": "toolCall", "id": "c1"}))
    assert shape(frames) == ["message_end", "session_error", "ERRORED"]


def test_a_delta_after_a_failure_without_a_message_opens_none():
    traced = Traced()
    traced.push({"type": "auto_retry_end", "success": False, "finalError": "gave up"})
    assert traced.push(delta("late")) == []


def test_a_verdict_that_the_producer_tells_is_believed():
    form = failed("slow, please", errorCategory="RATE_LIMITED", errorRetryable=True, errorRetryAfterMs=1500)
    error = only(Traced().push(form), "session_error")
    assert (error.category, error.retryable) == (failure_pb2.FAILURE_CATEGORY_RATE_LIMITED, True)
    assert error.retry_after_ms == 1500


def test_a_told_verdict_is_never_retryable_once_something_was_shown():
    told = failed("cut", errorCategory="NETWORK", errorRetryable=True)
    error = only(Traced().push(AGENT_START, start(), delta("Half"), told), "session_error")
    assert (error.category, error.retryable) == (failure_pb2.FAILURE_CATEGORY_NETWORK, False)


@pytest.mark.parametrize("category", ["NONSENSE", "", 7, None, ["NETWORK"], {"a": 1}])
def test_a_told_category_that_nobody_knows_is_as_if_untold(category):
    untold = only(Traced().push(failed("boom", errorStatus=500)), "session_error")
    told = failed("boom", errorStatus=500, errorCategory=category, errorRetryable="yes", errorRetryAfterMs="soon")
    assert only(Traced().push(told), "session_error") == untold


@pytest.mark.parametrize(
    ("wait", "expected"), [(-5, 0), (1.6, 2), (float("1e300"), 2**63 - 1), ("9", None), (True, None)]
)
def test_a_told_wait_is_a_count_of_milliseconds_or_none(wait, expected):
    error = only(Traced().push(failed("x", errorCategory="OVERLOADED", errorRetryAfterMs=wait)), "session_error")
    assert (error.retry_after_ms if error.HasField("retry_after_ms") else None) == expected
