"""Text on its way through the mapper: nothing lost, nothing twice, nothing that protobuf cannot carry."""

import itertools
import json
from zlib import crc32

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mapping import (
    AGENT_END,
    AGENT_START,
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
    thinking,
    thought,
    update,
    user,
)

from compass.limits import MAX_FRAME_BYTES, MAX_TEXT_CHUNK_BYTES
from compass.v1 import compass_pb2 as pb
from compass_service.mapper import Mapper, MapperState
from compass_service.mapper.state import Streamed


def test_each_delta_is_one_frame_of_its_message():
    traced = Traced()
    traced.push(AGENT_START, start(), thought("hm"), delta("a", 1), delta("b", 1))
    assert kinds(traced.frames)[2:] == ["thinking", "activity", "assistant_text", "assistant_text"]
    ids = {event.message_id for arm in ("thinking", "assistant_text") for event in events(traced.frames, arm)}
    assert ids == {"m1"}


def test_an_empty_delta_gives_no_frame():
    traced = Traced()
    traced.push(start())
    assert traced.push(delta(""), thought("")) == []


def test_a_block_that_had_deltas_ends_without_a_frame():
    traced = Traced()
    traced.push(start(), delta("whole"))
    assert traced.push(update("text_end", contentIndex=0, content="whole")) == []


def test_a_block_that_had_no_delta_gives_its_content_once():
    traced = Traced()
    traced.push(start(), thought("hm", 0))
    frames = traced.push(*[update("text_end", contentIndex=1, content="whole")] * 2)
    assert shape(frames) == ["assistant_text"]
    assert streamed(frames) == "whole"
    assert shape(traced.push(end(thinking("hm"), text("whole")))) == ["message_end"]


def test_a_thinking_block_that_had_no_delta_gives_its_content_once():
    traced = Traced()
    traced.push(start())
    frames = traced.push(*[update("thinking_end", contentIndex=0, content="hm")] * 2)
    assert kinds(frames) == ["thinking"]


def test_a_message_that_was_never_streamed_gives_its_content_at_its_end():
    traced = Traced()
    traced.push(start())
    frames = traced.push(end(thinking("hm"), text("Hello "), text("you")))
    assert shape(frames) == ["thinking", "assistant_text", "message_end"]
    assert streamed(frames) == "Hello you"


def test_what_was_dropped_at_the_end_of_a_message_is_added():
    traced = Traced()
    traced.push(start(), delta("Hello "))
    traced.take(traced.mapper.overflow(2, now_ms=traced.tick()))
    frames = traced.push(end(text("Hello you")))
    assert shape(frames) == ["assistant_text", "message_end"]
    assert streamed(traced.frames) == "Hello you"


def test_what_was_dropped_in_the_middle_of_a_message_is_left_to_the_gap():
    traced = Traced()
    traced.push(start(), delta("Hello "))
    traced.take(traced.mapper.overflow(1, now_ms=traced.tick()))
    traced.push(delta("friend"))
    assert shape(traced.push(end(text("Hello dear friend")))) == ["message_end"]


def test_a_failed_message_never_adds_text_that_was_not_streamed():
    traced = Traced()
    traced.push(start(), delta("Half an "))
    frames = traced.push(failed("reset", text("Half an Error: connection reset")))
    assert shape(frames) == ["message_end", "session_error", "ERRORED"]
    assert streamed(traced.frames) == "Half an "


def test_a_failed_message_adds_what_the_producer_had_to_drop():
    traced = Traced()
    traced.push(start(), delta("Half an "))
    traced.take(traced.mapper.overflow(1, now_ms=traced.tick()))
    traced.push(aborted("stop", text("Half an answer")))
    assert streamed(traced.frames) == "Half an answer"


def test_a_late_delta_does_not_bring_an_ended_message_back():
    traced = Traced()
    traced.push(start(), delta("a"), end(text("a")), AGENT_END)
    assert traced.push(delta("b"), update("text_end", contentIndex=3, content="c"), end(text("abc"))) == []
    assert traced.state.counts.unmapped == {"message_update": 2, "message_end": 1}


def test_a_message_that_never_said_it_begins_is_opened_by_its_first_delta():
    traced = Traced()
    frames = traced.push(delta("Hi"), end(text("Hi")))
    assert shape(frames) == ["assistant_text", "message_end"]
    assert phases(frames) == ["RESPONDING"]


def test_text_over_the_bound_is_split_at_characters_and_never_cut():
    traced = Traced()
    long = "aé€😀" * 40_000
    frames = traced.push(start(), delta(long))
    chunks = events(frames, "assistant_text")
    assert "".join(chunk.text for chunk in chunks) == long
    assert [len(chunk.text.encode()) <= MAX_TEXT_CHUNK_BYTES for chunk in chunks] == [True] * 4
    assert all(frame.original_bytes == 0 for frame in frames)


def test_a_long_user_message_is_split_under_one_id():
    long = "é" * MAX_TEXT_CHUNK_BYTES
    frames = Traced().push(user(long), prompt_id="p1")
    messages = events(frames, "user_message")
    assert "".join(message.text for message in messages) == long
    assert [(message.message_id, message.prompt_id) for message in messages] == [("m1", "p1")] * 2


@pytest.mark.parametrize("odd", ["\u2028", "\u0085", "\u0000", "\u000b\u000c\r\n", "\ufeff", "\U0010ffff", "\ufffe"])
def test_text_is_carried_code_point_for_code_point(odd):
    traced = Traced()
    traced.push(start(), delta(f"a{odd}b"), end(text(f"a{odd}b")))
    assert streamed(traced.frames) == f"a{odd}b"


def test_a_lone_surrogate_becomes_the_replacement_character():
    traced = Traced()
    traced.push(start(), delta("a\ud83db"), delta("c\ude00"))
    assert streamed(traced.frames) == "a\ufffdbc\ufffd"


def test_a_surrogate_pair_that_two_deltas_share_is_joined():
    traced = Traced()
    frames = traced.push(start(), delta("a\ud83d"), delta("\ude00b"))
    assert [chunk.text for chunk in events(frames, "assistant_text")] == ["a", "😀b"]


def test_a_half_pair_waits_for_an_empty_delta_and_survives_a_restart():
    traced = Traced()
    traced.push(start(), delta("\ud83d"), delta(""))
    restored = Traced(msgspec.msgpack.decode(msgspec.msgpack.encode(traced.state), type=MapperState))
    assert streamed(restored.push(delta("\ude00"))) == "😀"


def test_a_half_pair_at_the_end_of_a_message_is_replaced():
    traced = Traced()
    frames = traced.push(start(), delta("a\ud83d"), end(text("a\ud83d")))
    assert streamed(frames) == "a\ufffd"
    assert shape(frames)[-1] == "message_end"


def test_a_half_pair_of_an_aborted_message_is_replaced():
    frames = Traced().push(start(), delta("a\ud83d"), aborted())
    assert streamed(frames) == "a\ufffd"


def test_halves_of_answer_and_reasoning_are_kept_apart():
    traced = Traced()
    traced.push(start(), delta("\ud83d", 1), thought("\ud83e", 0), delta("\ude00", 1), thought("\udd14", 0))
    assert streamed(traced.frames) == "😀"
    assert streamed(traced.frames, "thinking") == "🤔"


def test_a_lone_surrogate_in_a_field_that_is_not_read_harms_nothing():
    traced = Traced()
    event = delta("fine")
    event["message"] = {"content": [text("\ud83d")], "\udfff": "\udfff"}
    assert streamed(traced.push(start(), event)) == "fine"


def test_a_cumulative_stream_costs_no_more_than_its_text():
    traced = Traced()
    traced.push(AGENT_START, start())
    words = [f"word{number} " for number in range(5_000)]
    whole, num_bytes = "", 0
    for word in words:
        whole += word
        event = delta(word)
        event["message"] = event["assistantMessageEvent"]["partial"] = {"content": [text(whole)]}
        for draft in traced.mapper.map(json.dumps(event), now_ms=traced.tick()):
            num_bytes += len(draft.body) - 50
            traced.take([draft])
    traced.push(end(text(whole)))
    assert streamed(traced.frames) == whole
    assert num_bytes < 5 * len(whole)


def test_the_hand_made_encoding_is_that_of_the_generated_classes():
    long = "é" * 70_000
    for arm, piece in (("assistant_text", delta), ("thinking", thought)):
        for content in ("a", "é\u0000", "x" * 127, "x" * 128, long):
            mapper = Mapper("a-session:with.id")
            mapper.map(json.dumps(start(timestamp=1_796_072_600_000)), now_ms=5)
            drafts = mapper.map(json.dumps(piece(content)), now_ms=1_796_072_600_123)
            drafts += mapper.map(json.dumps(end(text(content + "."), timestamp=1_796_072_600_000)), now_ms=7)
            for draft in drafts:
                frame = pb.AgentSessionFrame.FromString(draft.body)
                if frame.event.HasField(arm):
                    assert draft.body == frame.SerializeToString(deterministic=True)
                    assert frame.agent_at_unix_ms == (1_796_072_600_000 if frame.event.at_unix_ms == 7 else 0)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(alphabet=st.characters(), max_size=6), max_size=8), st.data())
def test_any_text_cut_anywhere_arrives_as_one_text(parts, data):
    """Cut the UTF-16 of a text at any code unit, as an agent written in JavaScript does."""
    whole = "".join(parts)
    units = whole.encode("utf-16-le", "surrogatepass")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(units) // 2), max_size=6)))
    edges = [0, *cuts, len(units) // 2]
    traced = Traced()
    traced.push(start())
    for first, last in itertools.pairwise(edges):
        traced.push(delta(units[2 * first : 2 * last].decode("utf-16-le", "surrogatepass")))
    traced.push(end(text(whole), text("."), stop="length"))
    assert streamed(traced.frames) == units.decode("utf-16-le", "replace") + "."


def test_no_text_makes_a_frame_larger_than_the_bound():
    traced = Traced()
    traced.push(start(), delta("😀" * 300_000), thought("\u0000" * 600_000), end(text("x" * 900_000)))
    assert max(frame.ByteSize() for frame in traced.frames) < MAX_FRAME_BYTES


def test_the_end_of_a_message_is_unique_and_says_what_it_used():
    traced = Traced()
    usage = {"input": 10, "output": 5, "cacheRead": 3, "cacheWrite": 2, "cost": {"total": 0.0123456}}
    frames = traced.push(start(), delta("a"), end(text("a"), usage=usage), end(text("a"), usage=usage))
    ended = only(frames, "message_end")
    assert ended.usage.cost_microdollars == 12_346
    assert ended.outcome == pb.SESSION_MESSAGE_OUTCOME_COMPLETE
    assert traced.state.usage.input_tokens == 10
    assert traced.state.usage.cost_microdollars == 12_346


def test_a_half_pair_is_replaced_when_the_end_of_the_message_does_not_continue_it():
    traced = Traced()
    traced.push(start(), delta("a\ud83d"), end(text("b")))
    assert streamed(traced.frames) == "a\ufffd"


def test_an_empty_delta_does_not_stand_for_its_block():
    traced = Traced()
    traced.push(start(), delta(""), update("text_end", contentIndex=0, content="whole"))
    assert streamed(traced.frames) == "whole"


def test_an_index_is_the_same_as_an_integer_and_as_a_float():
    traced = Traced()
    traced.push(start(), delta("b", 1.0), update("text_end", contentIndex=0.0, content="a"))
    traced.push(update("text_end", contentIndex=1, content="b"))
    assert streamed(traced.frames) == "ba"


@pytest.mark.parametrize("index", [-1, 10**6, 10**30])
def test_an_index_that_is_none_can_be_streamed_and_saved(index):
    traced = Traced()
    traced.push(start(), delta("a", index), thought("b", index))
    assert streamed(traced.frames) == "a"
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(traced.state), type=MapperState) == traced.state


def test_a_checksum_that_lies_never_cuts_a_character_in_two():
    traced = Traced()
    traced.push(start())
    traced.state.message.text = Streamed(num_bytes=1, crc=crc32("é".encode()[:1]))
    assert shape(traced.push(end(text("é")))) == ["message_end"]
