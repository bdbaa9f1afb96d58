"""Compaction in both spellings, alone, overlapping, failing, aborted, and late."""

import pytest
from mapping import (
    AGENT_END,
    AGENT_START,
    Traced,
    delta,
    end,
    failed,
    kinds,
    only,
    phases,
    shape,
    start,
    text,
    tool_end,
    tool_start,
)

from compass.v1 import compass_pb2 as pb


@pytest.fixture(params=["auto_compaction", "compaction"])
def spelling(request):
    return request.param


def begin(spelling, reason="threshold"):
    return {"type": f"{spelling}_start", "reason": reason}


def over(spelling, **fields):
    return {"type": f"{spelling}_end", "aborted": False, "willRetry": False, **fields}


def test_compacting_shows_its_reason_and_goes_back_to_what_was(spelling):
    traced = Traced()
    traced.push(AGENT_START, tool_start())
    since = traced.state.activity.started_at_unix_ms
    traced.push(begin(spelling, "overflow"))
    assert traced.state.activity.detail == "overflow"
    traced.push(over(spelling))
    assert phases(traced.frames) == ["THINKING", "RUNNING_TOOL", "COMPACTING", "RUNNING_TOOL"]
    assert (traced.state.activity.detail, traced.state.activity.started_at_unix_ms) == ("bash", since)


def test_compacting_on_a_fresh_session_ends_idle(spelling):
    traced = Traced()
    traced.push(begin(spelling), over(spelling))
    assert phases(traced.frames) == ["COMPACTING", "IDLE"]


def test_compactions_that_overlap_end_with_the_last(spelling):
    traced = Traced()
    traced.push(begin(spelling), begin(spelling))
    assert traced.push(over(spelling)) == []
    assert phases(traced.push(over(spelling))) == ["IDLE"]


def test_a_turn_that_goes_on_under_a_compaction_is_shown_after_it(spelling):
    traced = Traced()
    traced.push(AGENT_START, start(), begin(spelling), delta("a"))
    responding_since = traced.now_ms
    traced.push(delta("b"), over(spelling))
    assert traced.state.activity.started_at_unix_ms == responding_since
    assert phases(traced.frames) == ["THINKING", "COMPACTING", "RESPONDING"]


def test_a_turn_that_ends_under_a_compaction_is_idle_after_it(spelling):
    traced = Traced()
    traced.push(AGENT_START, start(), delta("a"), end(text("a")), begin(spelling), AGENT_END)
    assert traced.state.lifecycle == pb.AGENT_SESSION_STATE_READY
    traced.push(over(spelling))
    assert phases(traced.frames)[-2:] == ["COMPACTING", "IDLE"]


def test_an_end_that_comes_late_changes_nothing(spelling):
    traced = Traced()
    traced.push(begin(spelling), AGENT_START, start(), delta("a"))
    assert traced.push(over(spelling), over(spelling)) == []
    assert phases(traced.frames) == ["COMPACTING", "THINKING", "RESPONDING"]


@pytest.mark.parametrize(
    "fields", [{}, {"skipped": True, "errorMessage": "too small"}, {"result": {"summary": "s"}}, {"willRetry": True}]
)
def test_a_compaction_that_worked_or_was_not_needed_is_no_notice(spelling, fields):
    traced = Traced()
    traced.push(AGENT_START, begin(spelling))
    assert kinds(traced.push(over(spelling, **fields))) == ["activity"]
    assert shape(traced.push(AGENT_END)) == ["READY"]


@pytest.mark.parametrize(
    ("fields", "notice"),
    [
        ({"errorMessage": "quota exceeded"}, "Compaction failed: quota exceeded"),
        ({"errorMessage": {"message": "quota"}}, "Compaction failed: quota"),
        ({"aborted": True}, "Compaction was aborted"),
    ],
)
def test_a_compaction_that_did_not_work_is_a_notice(spelling, fields, notice):
    traced = Traced()
    traced.push(AGENT_START, begin(spelling))
    frames = traced.push(over(spelling, **fields))
    assert kinds(frames) == ["activity", "notice"]
    assert only(frames, "notice").text == notice


def test_a_turn_that_a_failed_compaction_ended_is_a_failure(spelling):
    traced = Traced()
    traced.push(AGENT_START, begin(spelling), over(spelling, errorMessage="quota exceeded"))
    frames = traced.push(AGENT_END)
    assert kinds(frames) == ["session_error", "ERRORED", "activity"]
    assert only(frames, "session_error").message == "quota exceeded"
    assert traced.push(AGENT_END) == []


def test_a_turn_that_an_aborted_compaction_ended_is_an_abort_and_no_crash(spelling):
    traced = Traced()
    traced.push(AGENT_START, begin(spelling), over(spelling, aborted=True))
    frames = traced.push(AGENT_END)
    assert kinds(frames) == ["session_error", "READY", "activity"]
    assert only(frames, "session_error").kind == pb.SESSION_ERROR_KIND_ABORTED


def test_a_turn_that_goes_on_after_a_failed_compaction_is_none(spelling):
    traced = Traced()
    traced.push(AGENT_START, begin(spelling), over(spelling, errorMessage="quota"), start(), delta("a"), end(text("a")))
    assert shape(traced.push(AGENT_END)) == ["READY"]


def test_a_later_compaction_that_works_takes_a_failed_one_back(spelling):
    traced = Traced()
    traced.push(AGENT_START, begin(spelling), over(spelling, errorMessage="quota", willRetry=True))
    traced.push(begin(spelling), over(spelling))
    assert shape(traced.push(AGENT_END)) == ["READY"]


def test_a_failed_message_and_its_failed_compaction_are_one_failure(spelling):
    traced = Traced()
    traced.push(AGENT_START, start(), failed("prompt is too long"), begin(spelling, "overflow"))
    traced.push(over(spelling, errorMessage="quota"), AGENT_END)
    assert traced.state.counts.errors == 1
    assert traced.state.lifecycle == pb.AGENT_SESSION_STATE_ERRORED


def test_tools_that_end_under_a_compaction_leave_no_phase_behind(spelling):
    traced = Traced()
    traced.push(AGENT_START, tool_start(), begin(spelling), tool_end("done"), over(spelling))
    assert phases(traced.frames) == ["THINKING", "RUNNING_TOOL", "COMPACTING", "THINKING"]


DIALOG = {"type": "extension_ui_request", "id": "1", "method": "confirm", "title": "Sure?"}
ANSWER = {"type": "extension_ui_response", "id": "1"}


def test_a_compaction_over_a_dialog_goes_back_to_the_turn(spelling):
    traced = Traced()
    traced.push(AGENT_START, DIALOG, begin(spelling), over(spelling))
    assert phases(traced.frames) == ["THINKING", "AWAITING_INPUT", "COMPACTING", "THINKING"]


def test_a_compaction_that_ends_under_a_dialog_leaves_it_open(spelling):
    traced = Traced()
    traced.push(AGENT_START, begin(spelling), DIALOG, over(spelling))
    assert phases(traced.frames) == ["THINKING", "COMPACTING", "AWAITING_INPUT"]
    assert phases(traced.push(ANSWER)) == ["THINKING"]
