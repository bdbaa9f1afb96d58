"""One test or more for each row of the mapping table that has no file of its own."""

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
    thinking,
    thought,
    tool_start,
    update,
    user,
)

from compass.v1 import compass_pb2 as pb
from compass.v1 import failure_pb2


def test_a_plain_answer_gives_its_frames_in_order():
    traced = Traced()
    traced.push(AGENT_START, TURN_START, start(), delta("Hello "), delta("you"), end(text("Hello you")), AGENT_END)
    assert kinds(traced.frames) == [
        "WORKING",
        "activity",
        "activity",
        "assistant_text",
        "assistant_text",
        "message_end",
        "READY",
        "activity",
    ]
    assert phases(traced.frames) == ["THINKING", "RESPONDING", "IDLE"]


@pytest.mark.parametrize("event", [AGENT_START, TURN_START])
def test_a_run_or_turn_that_starts_is_working_once(event):
    traced = Traced()
    assert shape(traced.push(event, event)) == ["WORKING"]
    assert traced.state.lifecycle == pb.AGENT_SESSION_STATE_WORKING


def test_a_user_message_is_recorded_with_its_prompt_and_time():
    frames = Traced().push(user("do it", timestamp=1_796_072_600_965), prompt_id="p7")
    message = only(frames, "user_message")
    assert (message.text, message.prompt_id, message.steering) == ("do it", "p7", False)
    assert frames[0].agent_at_unix_ms == 1_796_072_600_965
    assert frames[0].event.at_unix_ms != frames[0].agent_at_unix_ms


@pytest.mark.parametrize(
    ("content", "expected"),
    [("plain", "plain"), ([text("a"), {"type": "image", "data": "…"}, text("b")], "a\nb"), (None, ""), (7, "")],
)
def test_the_text_of_a_user_message_is_read_in_every_form(content, expected):
    event = {"type": "message_start", "message": {"role": "user", "content": content}}
    assert only(Traced().push(event), "user_message").text == expected


@pytest.mark.parametrize(
    ("mark", "kind", "is_steering"),
    [
        ({"steering": True}, pb.SESSION_INJECTION_KIND_STEER, True),
        ({"deliverAs": "steer"}, pb.SESSION_INJECTION_KIND_STEER, True),
        ({"deliverAs": "followUp"}, pb.SESSION_INJECTION_KIND_DELIVER, False),
        ({"injection": {"kind": "deliver"}}, pb.SESSION_INJECTION_KIND_DELIVER, False),
    ],
)
def test_an_injected_message_is_told_beside_its_user_message(mark, kind, is_steering):
    frames = Traced().push(user("now this", **mark))
    assert kinds(frames) == ["user_message", "session_injection"]
    message, injection = only(frames, "user_message"), only(frames, "session_injection")
    assert message.steering is is_steering
    assert (injection.op_kind, injection.message_id) == (kind, message.message_id)


def test_an_injection_says_who_sent_it_and_in_which_trace():
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    source = {"kind": "steer", "from": "ann", "traceparent": trace}
    injection = only(Traced().push(user(injection=source)), "session_injection")
    assert (injection.from_handle, injection.traceparent) == ("ann", trace)


def test_a_trace_context_outside_its_grammar_is_dropped():
    source = {"kind": "steer", "from": "a" * 300, "traceparent": "token=abc"}
    injection = only(Traced().push(user(injection=source)), "session_injection")
    assert (injection.from_handle, injection.traceparent) == ("", "")


def test_each_message_has_an_id_of_its_own():
    traced = Traced()
    for number in range(3):
        traced.push(AGENT_START, user(), start(), delta(str(number)), end(text(str(number))), AGENT_END)
    ids = [event.message_id for event in events(traced.frames, "user_message") + events(traced.frames, "message_end")]
    assert len(set(ids)) == 6
    assert len({frame.event.event_id for frame in traced.frames if frame.HasField("event")}) == traced.state.num_events


def test_a_message_that_starts_over_an_open_one_leaves_that_one_incomplete():
    traced = Traced()
    traced.push(AGENT_START, start(), delta("half"))
    frames = traced.push(start())
    ended = only(frames, "message_end")
    assert (ended.message_id, ended.outcome) == ("m1", pb.SESSION_MESSAGE_OUTCOME_INCOMPLETE)
    assert ended.stop_reason == pb.SESSION_STOP_REASON_UNSPECIFIED


def test_a_run_that_ends_with_a_message_open_leaves_it_incomplete():
    traced = Traced()
    traced.push(AGENT_START, start(), delta("half"))
    frames = traced.push(AGENT_END)
    assert only(frames, "message_end").outcome == pb.SESSION_MESSAGE_OUTCOME_INCOMPLETE
    assert shape(frames) == ["message_end", "READY"]


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        ("stop", pb.SESSION_STOP_REASON_STOP),
        ("length", pb.SESSION_STOP_REASON_LENGTH),
        ("toolUse", pb.SESSION_STOP_REASON_TOOL_USE),
        ("whatever", pb.SESSION_STOP_REASON_UNSPECIFIED),
    ],
)
def test_a_normal_end_is_complete_with_its_stop_reason(stop, reason):
    ended = only(Traced().push(start(), delta("a"), end(text("a"), stop=stop)), "message_end")
    assert (ended.outcome, ended.stop_reason) == (pb.SESSION_MESSAGE_OUTCOME_COMPLETE, reason)
    assert not ended.HasField("usage")


@pytest.mark.parametrize("stop", ["stop", "length"])
@pytest.mark.parametrize("content", [[], [text("")], [thinking(""), text("")], [{"type": "fallback"}]])
def test_an_empty_completion_is_a_malformed_response(stop, content):
    traced = Traced()
    traced.push(AGENT_START, start())
    frames = traced.push(end(*content, stop=stop))
    assert shape(frames) == ["session_error", "ERRORED"]
    error = only(frames, "session_error")
    assert error.message == "empty completion"
    assert error.category == failure_pb2.FAILURE_CATEGORY_MALFORMED_RESPONSE
    assert error.retryable


@pytest.mark.parametrize(
    "content",
    [[text("a")], [thinking("hm")], [{"type": "toolCall", "id": "c1"}], [{"type": "image", "data": "…"}]],
)
def test_a_completion_that_says_anything_is_none(content):
    assert shape(Traced().push(start(), end(*content)))[-1] == "message_end"


def test_a_tool_call_in_the_stream_makes_a_message_no_empty_completion():
    frames = Traced().push(start(), update("toolcall_start", contentIndex=0), end())
    assert shape(frames) == ["message_end"]


def test_a_message_that_only_asks_for_a_tool_may_be_empty():
    assert shape(Traced().push(start(), end(stop="toolUse"))) == []


def test_a_settled_agent_is_ready_and_rests():
    traced = Traced()
    traced.push(AGENT_START, {**AGENT_END, "willRetry": True})
    assert traced.state.lifecycle == pb.AGENT_SESSION_STATE_WORKING
    assert kinds(traced.push({"type": "agent_settled"}, {"type": "agent_settled"})) == ["READY", "activity"]


@pytest.mark.parametrize("more", [{"willRetry": True}, {"isTerminal": False}])
def test_a_run_that_announces_more_does_not_end_the_turn(more):
    traced = Traced()
    traced.push(AGENT_START)
    assert traced.push({**AGENT_END, **more}) == []
    assert shape(traced.push(AGENT_START, AGENT_END)) == ["READY"]


def test_a_session_whose_turn_failed_stays_errored_until_it_works_again():
    traced = Traced()
    traced.push(AGENT_START, start(), failed())
    assert traced.push(AGENT_END, {"type": "agent_settled"}) == []
    assert shape(traced.push(AGENT_START)) == ["WORKING"]


def test_thinking_again_within_an_answer_keeps_the_phase():
    traced = Traced()
    traced.push(AGENT_START, start(), delta("a"), thought("hm", 1), delta("b", 2))
    assert phases(traced.frames) == ["THINKING", "RESPONDING"]


@pytest.mark.parametrize(
    "event",
    [
        update("text_start", contentIndex=0),
        update("thinking_start", contentIndex=0),
        update("start"),
        update("done", reason="stop"),
        {"type": "turn_end", "message": {"role": "assistant", "stopReason": "stop"}},
        {"type": "message_end", "message": {"role": "user", "content": "a"}},
        {"type": "message_start", "message": {"role": "toolResult", "content": []}},
        {"type": "message_end", "message": {"role": "toolResult", "content": []}},
        {"type": "session", "version": 3},
        {"type": "ready"},
        {"type": "response", "command": "prompt", "success": True},
        {"type": "available_commands_update", "commands": []},
        {"type": "model_changed"},
        {"type": "extension_ui_request", "id": "1", "method": "setWidget"},
        {"type": "agent_settled"},
    ],
    ids=lambda event: event["type"],
)
def test_silent_events_give_no_frame_and_are_not_counted(event):
    traced = Traced()
    traced.push(AGENT_START, AGENT_END)
    assert traced.push(event) == []
    assert traced.state.counts.unmapped == {}


def test_anything_else_gives_no_frame_and_is_counted_by_type():
    traced = Traced()
    frames = traced.push(
        {"type": "goal_updated"},
        {"type": "goal_updated"},
        update("unheard_of"),
        {"type": "message_start", "message": {"role": "custom"}},
        {"type": 7},
        {},
    )
    assert frames == []
    assert traced.state.counts.unmapped == {
        "goal_updated": 2,
        "message_update": 1,
        "message_start": 1,
        "unreadable": 2,
    }


def test_at_most_64_types_are_counted_apart():
    traced = Traced()
    traced.push(*({"type": f"type{number}"} for number in range(100)), {"type": "type3"})
    unmapped = traced.state.counts.unmapped
    assert (len(unmapped), unmapped["type3"], unmapped["other"]) == (64, 2, 37)


def test_a_very_long_type_is_cut():
    traced = Traced()
    traced.push({"type": "x" * 10_000})
    assert traced.state.counts.unmapped == {"x" * 64: 1}


def test_an_unmapped_type_is_logged_once(capsys):
    traced = Traced()
    traced.push({"type": "goal_updated"}, {"type": "goal_updated"})
    assert capsys.readouterr().out.count("goal_updated") == 1


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"type": "notice", "level": "warning", "message": "careful"}, "careful"),
        ({"type": "irc_message", "message": {"role": "custom", "content": "hello from B"}}, "hello from B"),
        ({"type": "retry_fallback_applied", "from": "big", "to": "small"}, "Model fallback: big → small"),
        (
            {"type": "retry_fallback_applied", "from": "big", "to": "small", "reason": "quota"},
            "Model fallback: big → small (quota)",
        ),
        ({"type": "retry_fallback_succeeded", "model": "small"}, "Model fallback succeeded: small"),
    ],
)
def test_advisory_events_give_a_notice(event, expected):
    frames = Traced().push(event)
    assert kinds(frames) == ["notice"]
    assert only(frames, "notice").text == expected


def test_a_notice_may_have_a_link():
    assert (
        only(Traced().push({"type": "notice", "message": "m", "link": "https://a.b"}), "notice").link == "https://a.b"
    )


@pytest.mark.parametrize(
    "event",
    [{"type": "notice"}, {"type": "irc_message", "message": {"role": "custom", "content": "hidden", "display": False}}],
)
def test_a_notice_without_words_gives_no_frame(event):
    assert Traced().push(event) == []


def test_a_long_notice_is_cut_and_says_so():
    frames = Traced().push({"type": "notice", "message": "é" * 5_000})
    assert len(only(frames, "notice").text.encode()) <= 2_048
    assert frames[0].original_bytes == 10_000


@pytest.mark.parametrize("method", ["select", "confirm", "input", "editor"])
def test_a_dialog_waits_for_input_until_the_agent_goes_on(method):
    traced = Traced()
    traced.push(AGENT_START)
    traced.push({"type": "extension_ui_request", "id": "1", "method": method, "title": "Delete?"})
    assert traced.state.activity.detail == "Delete?"
    thinking_since = only(traced.frames[:2], "activity").started_at_unix_ms
    traced.push(start())
    assert traced.state.activity.started_at_unix_ms == thinking_since
    traced.push(delta("ok"))
    assert phases(traced.frames) == ["THINKING", "AWAITING_INPUT", "THINKING", "RESPONDING"]


@pytest.mark.parametrize(
    "closing",
    [
        {"type": "extension_ui_response", "id": "1", "value": "yes"},
        {"type": "extension_ui_request", "id": "2", "method": "cancel", "targetId": "1"},
    ],
)
def test_a_dialog_that_is_answered_goes_back_to_what_the_agent_did(closing):
    traced = Traced()
    traced.push(AGENT_START)
    thinking_since = traced.state.activity.started_at_unix_ms
    traced.push({"type": "extension_ui_request", "id": "1", "method": "confirm"}, closing, closing)
    assert phases(traced.frames) == ["THINKING", "AWAITING_INPUT", "THINKING"]
    assert traced.state.activity.started_at_unix_ms == thinking_since


def test_a_run_that_starts_over_another_leaves_no_tool_running():
    traced = Traced()
    traced.push(AGENT_START, tool_start())
    assert shape(traced.push(AGENT_START)) == ["tool_call_update"]
