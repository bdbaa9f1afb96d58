"""What leaves a producer: less where an agent repeats itself, byte for byte where it does not, and nothing misread."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import compass
from client.cumulative import answer
from compass.slimming import slim
from compass_service.mapper import Mapper

RECORDINGS = sorted((Path(__file__).parents[1] / "data" / "recordings").glob("*.jsonl"))


def lines(recording):
    return recording.read_bytes().decode().rstrip("\n").split("\n")


def frames(events):
    """Map a session's events with a clock that stands still."""
    mapper = Mapper("s")
    return [draft for event in events for draft in mapper.map(event, now_ms=0)]


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_a_slimmed_recording_maps_to_the_same_frames(recording):
    whole = lines(recording)
    expected = frames(whole)
    assert frames([slim(line).json for line in whole]) == expected
    assert frames([slim(line.encode()).json for line in whole]) == expected
    assert frames([slim(json.loads(line)).json for line in whole]) == expected


def test_the_generated_answer_maps_to_the_same_frames():
    whole = list(answer(50))
    assert frames([slim(line).json for line in whole]) == frames(whole)


def test_a_cumulative_answer_of_2000_words_leaves_as_less_than_a_megabyte():
    num_whole = num_slim = 0
    for line in answer(2_000):
        num_whole += len(line)
        num_slim += slim(line).num_bytes
    assert num_whole > 30_000_000
    assert num_slim < 1_000_000


def update(inner_type, **more):
    return {"type": "message_update", "assistantMessageEvent": {"type": inner_type, **more}}


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"message_end","message":{"content":[{"type":"text","text":"kept"}]}}',
        '{ "type" : "message_update", "assistantMessageEvent" : {"type":"text_delta","delta":"a"} }',
        '{"type":"message_update","message":{"odd":1}}',
        '{"type":"message_update","assistantMessageEvent":7,"message":{}}',
        '{"type":"message_update","assistantMessageEvent":{"partial":{}},"message":{}}',
        '{"type":"message_update","assistantMessageEvent":{"type":"error","error":{"a":1},"partial":{}},"message":{}}',
        '{"type":"message_update","assistantMessageEvent":{"type":"done","message":{}},"message":{}}',
        '{"type":"agent_end","willRetry":true}',
        '{"type":["agent_end"],"messages":[1]}',
        '{"messages":[1]}',
        '{"type":"made_up","message":{},"partial":1}',
        '{"n":1e5,"big":123456789012345678901234567890,"s":"\\u00e9\\n"}',
        "{}",
    ],
)
def test_what_is_no_known_cumulative_shape_goes_through_byte_for_byte(text):
    assert slim(text).json == text
    assert slim(text.encode()).json == text


@pytest.mark.parametrize(
    ("event", "kept"),
    [
        ({"type": "agent_end", "messages": [1], "willRetry": True}, {"type": "agent_end", "willRetry": True}),
        ({"type": "turn_end", "message": {}, "toolResults": [], "x": 1}, {"type": "turn_end", "x": 1}),
        (
            {"type": "tool_execution_update", "toolCallId": "c", "args": {"path": "p"}, "partialResult": {"a": 1}},
            {"type": "tool_execution_update", "toolCallId": "c", "partialResult": {"a": 1}},
        ),
        (
            {**update("text_delta", delta="a", partial={"b": 1}, contentIndex=0), "message": {"c": 1}, "x": None},
            {**update("text_delta", delta="a", contentIndex=0), "x": None},
        ),
        ({**update("toolcall_end", toolCall={"id": 1}), "message": {}}, update("toolcall_end", toolCall={"id": 1})),
        (update("thinking_start", partial={}), update("thinking_start")),
    ],
)
def test_the_cumulative_parts_are_cut_off_and_the_rest_stays(event, kept):
    assert json.loads(slim(event).json) == kept
    assert json.loads(slim(json.dumps(event)).json) == kept


def test_an_event_given_as_an_object_is_left_as_it_was():
    event = {**update("text_delta", delta="a", partial={"b": 1}), "message": {}}
    before = json.dumps(event)
    slim(event)
    assert json.dumps(event) == before


@pytest.mark.parametrize(
    ("event", "is_priority"),
    [
        (update("text_delta", delta="a"), False),
        (update("thinking_delta", delta="a"), False),
        (update("toolcall_delta", delta="a"), False),
        ({"type": "tool_execution_update"}, False),
        (update("text_start"), True),
        (update("odd_delta"), True),
        ({**update("odd_delta"), "message": {}}, True),
        (update("text_end", content="a"), True),
        (update("error", reason="error"), True),
        ({"type": "message_update"}, True),
        ({"type": "message_end"}, True),
        ({"type": "agent_end", "messages": []}, True),
        ({"type": "tool_execution_end"}, True),
        ({}, True),
    ],
)
def test_only_deltas_and_the_progress_of_tools_may_be_dropped(event, is_priority):
    assert slim(event).is_priority is is_priority
    assert slim(json.dumps(event)).is_priority is is_priority
    assert slim(json.dumps({**event, "odd": "\ud83d"})).is_priority is is_priority


def test_a_line_end_is_no_part_of_the_event():
    assert slim('{"a":1}\r\n').json == '{"a":1}'
    assert slim(b'{"a":1}\n').json == '{"a":1}'


def test_a_lone_surrogate_in_an_escape_survives_slimming():
    text = '{"type":"message_update","assistantMessageEvent":{"type":"text_delta","delta":"\\ud83d","partial":{}}}'
    assert json.loads(slim(text).json) == update("text_delta", delta="\ud83d")
    unslimmed = '{"type": "message_end", "n": 1e5, "text": "\\ud83d"}'
    assert slim(unslimmed).json == unslimmed


def test_a_lone_surrogate_in_a_string_or_an_object_becomes_its_escape():
    assert slim('{"a":"\ud83d"}').json == '{"a":"\\ud83d"}'
    assert slim({"a": "\ud83d"}).json == '{"a":"\\ud83d"}'


def test_bytes_that_are_no_utf8_become_replacement_characters():
    assert slim(b'{"a":"\xff"}').json == '{"a":"\ufffd"}'


@pytest.mark.parametrize("text", ['{"a":"\u2028\u0085\\u0000"}', '{"a":"\x7f"}'])
def test_separators_and_control_characters_pass_unchanged(text):
    assert slim(text).json == text


@pytest.mark.parametrize("text", ["", "{", "[1]", '"text"', "null", '{"a":NaN}', '{"a":1} x', "{'a':1}", '{"a":"\n"}'])
def test_what_is_not_one_json_object_is_refused(text):
    with pytest.raises(compass.InvalidEventError):
        slim(text)
    with pytest.raises(compass.InvalidEventError):
        slim(text.encode())


def test_an_object_that_json_cannot_hold_is_refused():
    with pytest.raises(compass.InvalidEventError):
        slim({"a": object()})
    with pytest.raises(compass.InvalidEventError):
        slim({"a": object(), "b": "\ud83d"})


def test_an_event_nested_too_deeply_to_read_passes_unread():
    deep = '{"type":"agent_end","messages":' + "[" * 100_000 + "]" * 100_000 + "}"
    assert slim(deep) == (deep, len(deep), True)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
surrogates = st.text(st.characters(categories=["Cs", "Lu", "Po"]), max_size=6)


@given(
    inner=st.dictionaries(st.sampled_from(["type", "delta", "partial", "content", "x"]), json_values | surrogates),
    inner_type=st.sampled_from(["text_delta", "toolcall_end", "error", "thinking_start"]),
    rest=st.dictionaries(st.sampled_from(["message", "messages", "args", "é", "x"]), json_values | surrogates),
    name=st.sampled_from(["message_update", "agent_end", "turn_end", "tool_execution_update", "other"]),
)
def test_text_and_object_are_slimmed_alike(inner, inner_type, rest, name):
    event = {**rest, "type": name, "assistantMessageEvent": {**inner, "type": inner_type}}
    as_object = slim(event)
    as_text = slim(json.dumps(event))
    assert json.loads(as_object.json) == json.loads(as_text.json)
    assert as_object.is_priority == as_text.is_priority


def test_what_is_neither_text_nor_a_mapping_is_refused_by_its_type():
    with pytest.raises(TypeError, match="not int"):
        slim(5)
