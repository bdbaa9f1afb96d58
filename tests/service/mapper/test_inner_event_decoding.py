"""What is taken for an inner event, and how what is not as expected is read."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mapping import (
    AGENT_START,
    Traced,
    delta,
    end,
    events,
    failed,
    kinds,
    only,
    shape,
    start,
    streamed,
    text,
    tool_end,
    tool_start,
    update,
    user,
)

from compass_service.mapper import Mapper, NotAnObjectError


@pytest.mark.parametrize(
    "event",
    [
        "",
        "   ",
        "null",
        "7",
        '"agent_start"',
        "[]",
        '[{"type": "agent_start"}]',
        "{",
        '{"type": "agent_start"} x',
        '{"type": "agent_start"}{}',
        "{'type': 'agent_start'}",
        '{"type": "agent_start", "x": NaN}',
        '{"type": "nope", "x": Infinity}',
        '{"type": "nope", "x": "a\nb"}',
        "\ufeff{}",
        b"\xff\xfe",
    ],
)
def test_what_is_no_json_object_is_refused_and_changes_nothing(event):
    traced = Traced()
    with pytest.raises(NotAnObjectError):
        traced.push(event)
    assert traced.state.counts.unmapped == {}


@pytest.mark.parametrize("event", ['{"type":"agent_start"}\n', b' \t{"type":"agent_start"}\r\n'])
def test_space_around_an_object_is_no_matter(event):
    assert shape(Traced().push(event)) == ["WORKING"]


def test_the_type_may_come_last_and_twice():
    assert shape(Traced().push('{"messages": [{"type": "x"}], "type": "a", "type": "agent_start"}')) == ["WORKING"]


@pytest.mark.parametrize(
    "odd",
    ["1e999", "-1e999", "1" * 5_000, "1." + "9" * 5_000, "[" * 400 + "]" * 400, '"\\ud83d"', '{"\\udfff": []}'],
)
def test_odd_values_in_fields_that_are_not_read_harm_nothing(odd):
    traced = Traced()
    event = f'{{"type": "agent_start", "x": {odd}}}'
    assert shape(traced.push(event)) == ["WORKING"]


@pytest.mark.parametrize("odd", ["1e999", "-1e999", "1" * 5_000, '"\\ud83d"', '["\\ud83d"]', "null", "{}", "-0.0"])
def test_odd_values_in_fields_that_are_read_harm_nothing(odd):
    message = f'{{"role": "assistant", "stopReason": "error", "errorMessage": {odd}, "errorStatus": {odd}, '
    message += f'"timestamp": {odd}, "usage": {{"input": {odd}, "cost": {{"total": {odd}}}}}}}'
    traced = Traced()
    assert kinds(traced.push(f'{{"type": "message_end", "message": {message}}}')) == ["session_error", "ERRORED"]


def test_an_event_that_is_nested_too_deeply_is_counted():
    traced = Traced()
    assert traced.push('{"type": "agent_start", "x": ' + "[" * 100_000 + "]" * 100_000 + "}") == []
    assert traced.state.counts.unmapped == {"unreadable": 1}


def test_bytes_that_are_no_text_become_replacement_characters():
    event = b'{"type":"notice","message":"a\xffb"}'
    assert only(Traced().push(event), "notice").text == "a\ufffdb"


@pytest.mark.parametrize("odd", [None, 7, [], {}, True, "x", 1.5])
def test_a_field_of_another_type_reads_as_absent(odd):
    traced = Traced()
    traced.push(
        AGENT_START,
        user(odd),
        {"type": "message_start", "message": odd},
        start(provider=odd, model=odd, timestamp=odd),
        update(odd, contentIndex=odd, delta=odd),
        {"type": "message_update", "assistantMessageEvent": odd},
        delta(odd, odd),
        delta("fine", odd),
        tool_start(odd, odd, _i=odd, path=odd, edits=odd),
        tool_end(odd, odd, odd, is_error=odd),
        {"type": "todo_reminder", "todos": odd},
        {"type": "todo_reminder", "todos": [odd, {"content": odd}, {"content": "x", "status": odd}]},
        {"type": "compaction_end", "aborted": odd, "skipped": odd, "errorMessage": odd},
        {"type": "agent_end", "willRetry": odd, "isTerminal": odd},
        end(text("fine"), stop=odd, usage=odd),
        failed(odd, errorStatus=odd, abortOrigin=odd, usage={"cost": odd}),
    )
    assert streamed(traced.frames).startswith("x" if odd == "x" else "fine")
    assert len(events(traced.frames, "session_error")) == 1


def test_a_block_of_another_type_is_left_out_and_the_rest_is_read():
    frames = Traced().push(start(), end(text("a"), text(7), {"type": None}, text("b")))
    assert streamed(frames) == "ab"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
TYPES = st.sampled_from(
    [
        "agent_start",
        "agent_end",
        "turn_start",
        "message_start",
        "message_update",
        "message_end",
        "tool_execution_start",
        "tool_execution_update",
        "tool_execution_end",
        "todo_reminder",
        "compaction_start",
        "auto_compaction_end",
        "auto_retry_start",
        "auto_retry_end",
        "notice",
        "run_event",
        "irc_message",
        "unheard_of",
    ],
)
FAILURE_TEXT = "failure text that is no content"
BLOCKS = st.fixed_dictionaries({"type": st.sampled_from(["text", "thinking", "toolCall"]), "text": JSON})
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["user", "assistant", "toolResult", "custom"]),
        "content": JSON | st.lists(BLOCKS, max_size=3),
        "stopReason": st.sampled_from(["stop", "error", "aborted", "length", "toolUse"]),
        "errorMessage": st.just(FAILURE_TEXT) | st.just({"message": FAILURE_TEXT}),
        "errorStatus": JSON,
        "usage": JSON,
        "timestamp": JSON,
    },
)
UPDATES = st.fixed_dictionaries(
    {"type": st.sampled_from(["text_delta", "thinking_delta", "text_end", "error", "toolcall_start", "x"])},
    optional={"delta": JSON, "content": JSON, "contentIndex": JSON, "reason": JSON, "error": MESSAGES},
)
EVENTS = st.fixed_dictionaries(
    {"type": TYPES},
    optional={
        "message": MESSAGES | JSON,
        "assistantMessageEvent": UPDATES | JSON,
        "toolCallId": st.sampled_from(["c1", "c2"]) | JSON,
        "toolName": st.just("todo") | JSON,
        "args": JSON,
        "result": JSON,
        "partialResult": JSON,
        "todos": JSON,
        "errorMessage": st.just(FAILURE_TEXT),
        "finalError": st.just(FAILURE_TEXT),
        "aborted": JSON,
        "willRetry": JSON,
        "kind": JSON,
        "payload": JSON,
    },
)


@settings(max_examples=150, deadline=None)
@given(st.lists(EVENTS | st.dictionaries(st.text(max_size=8), JSON, max_size=4), max_size=8))
def test_no_object_makes_the_mapper_raise_or_failure_text_content(inner_events):
    traced = Traced()
    traced.push(*inner_events)
    shown = streamed(traced.frames) + streamed(traced.frames, "thinking")
    assert FAILURE_TEXT not in shown


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=30) | st.binary(max_size=30))
def test_any_text_is_mapped_or_refused(event):
    mapper = Mapper("s1")
    try:
        mapper.map(event, now_ms=1)
    except NotAnObjectError:
        with pytest.raises((ValueError, AssertionError)):
            assert isinstance(json.loads(event), dict)
