"""A mapper is its state: saved and restored anywhere, it goes on as if nothing had happened; and it stays small."""

import msgspec
import pytest
from mapping import (
    AGENT_START,
    RECORDINGS,
    Traced,
    delta,
    kinds,
    output,
    start,
    thought,
    tool_start,
    tool_update,
)

from compass.v1 import compass_pb2 as pb
from compass_service.mapper import Mapper, MapperState, activity_message


def saved(state):
    return msgspec.msgpack.encode(state)


def restored(mapper):
    return Mapper("s1", msgspec.msgpack.decode(saved(mapper.state), type=MapperState))


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_a_restart_after_any_event_changes_nothing(recording):
    events = [line for line in recording.read_text(encoding="utf-8").split("\n") if line]
    straight, restarted = Mapper("s1"), Mapper("s1")
    for number, event in enumerate(events):
        restarted = restored(restarted)
        assert restarted.map(event, now_ms=number) == straight.map(event, now_ms=number)
        assert saved(restarted.state) == saved(straight.state)


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_a_session_can_be_lost_or_closed_after_any_event(recording):
    events = [line for line in recording.read_text(encoding="utf-8").split("\n") if line]
    mapper = Mapper("s1")
    for number, event in enumerate(events):
        mapper.map(event, now_ms=number)
        lost = restored(mapper)
        errors = lost.state.counts.errors
        was_working = mapper.state.lifecycle == pb.AGENT_SESSION_STATE_WORKING
        lost.detach(now_ms=number)
        frames = lost.lose(now_ms=number)
        assert lost.state.counts.errors == errors + bool(frames)
        assert not was_working or frames
        closed = restored(mapper).close(now_ms=number)
        assert pb.AgentSessionFrame.FromString(closed[-1].body).state == pb.AGENT_SESSION_STATE_STOPPED


def test_a_mapper_takes_the_state_that_it_is_given():
    state = MapperState()
    mapper = Mapper("s1", state)
    mapper.map('{"type": "agent_start"}', now_ms=1)
    assert mapper.state is state
    assert state.lifecycle == pb.AGENT_SESSION_STATE_WORKING


def test_a_state_of_any_length_of_session_is_small():
    traced = Traced()
    traced.push(AGENT_START, start())
    for number in range(2_000):
        traced.push(delta("some text ", number), thought("some thought", number))
        traced.push(tool_start(f"call_{number}", _i="x" * 400), {"type": f"type_{number}" + "y" * 100})
        traced.push(tool_start(f"edit_{number}", path="p" * 500, edits=[{"oldText": "o" * 900, "newText": "n"}]))
        traced.push(tool_update(output("z" * number), f"call_{number}"), {"type": "compaction_start"})
    assert len(saved(traced.state)) < 96 * 1024


def test_the_state_of_a_plain_session_is_tiny():
    traced = Traced()
    traced.push(AGENT_START, start(), *(delta(f"word{number} ") for number in range(2_000)))
    assert len(saved(traced.state)) < 700


def test_the_activity_is_reported_as_it_was_written():
    traced = Traced()
    traced.push({"type": "auto_retry_start", "attempt": 2, "maxAttempts": 3, "delayMs": 5})
    written = [frame.event.activity for frame in traced.frames if kinds([frame]) == ["activity"]]
    assert activity_message(traced.state) == written[-1]
