"""Run events go through their closed schemas, and each is told once."""

import msgspec
import pytest
from mapping import Traced, failed, kinds, only

from compass.lanes import is_priority
from compass.v1 import compass_pb2 as pb


def reported(kind="node_started", **payload):
    return {"type": "run_event", "kind": kind, "payload": payload}


def test_a_run_event_is_written_by_its_schema():
    event = reported(run_id="nightly", node_id="build", port="in", secret="x")
    detail = only(Traced().push(event), "run_event")
    assert (detail.run_id, detail.node_started.node_id, detail.node_started.port) == ("nightly", "build", "in")
    assert "secret" not in str(detail)


@pytest.mark.parametrize("kind", ["unheard_of", None, 7, ["node_started"]])
def test_an_unknown_kind_is_an_empty_event_and_counted(kind):
    traced = Traced()
    frames = traced.push(reported(kind, node_id="build"), reported(kind, node_id="build"))
    assert kinds(frames) == ["run_event", "run_event"]
    assert frames[0].event.run_event.ByteSize() == 0
    assert traced.state.counts.unmapped == {"run_event": 2}


@pytest.mark.parametrize("payload", [None, 7, "text", []])
def test_a_payload_that_is_none_gives_the_bare_kind(payload):
    detail = only(Traced().push({"type": "run_event", "kind": "node_started", "payload": payload}), "run_event")
    assert detail.WhichOneof("detail") == "node_started"


def test_a_run_event_that_is_reported_again_is_not_told_again():
    traced = Traced()
    event = reported(run_id="nightly", node_id="build")
    assert kinds(traced.push(event, event, reported(run_id="nightly", node_id="test"))) == ["run_event", "run_event"]


def test_a_different_cut_is_a_different_event():
    traced = Traced()
    failures = [{"code": "E1", "receipt": {"omittedCount": count}} for count in (1, 2)]
    assert kinds(traced.push(*(reported("run_failed", failure=failure) for failure in failures))) == ["run_event"] * 2


def test_only_the_last_1024_are_remembered_and_survive_a_restart():
    traced = Traced()
    traced.push(*(reported(node_id=f"n{number}") for number in range(1_025)))
    assert len(msgspec.msgpack.encode(traced.state)) < 16 * 1024
    restored = Traced(msgspec.msgpack.decode(msgspec.msgpack.encode(traced.state), type=type(traced.state)))
    assert restored.push(reported(node_id="n1024"), reported(node_id="n1")) == []
    assert kinds(restored.push(reported(node_id="n0"))) == ["run_event"]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (reported("run_completed"), True),
        (reported("run_failed", failure={"code": "E1"}), True),
        (reported("run_canceled"), True),
        (reported("node_failed", node_id="build", failure={"code": "E1"}), True),
        (reported("node_failed", node_id="build"), False),
        (reported("node_started", node_id="build"), False),
    ],
)
def test_run_events_travel_in_the_lane_of_what_they_say(event, expected):
    (frame,) = Traced().push(event)
    assert is_priority(frame) is expected


def test_a_structured_failure_beside_the_text_comes_through_its_schema():
    failure = {"code": "E_QUOTA", "stage": "generate", "path": "bad path", "problem": "no credit left"}
    error = only(Traced().push(failed("402 no credit", failure=failure)), "session_error")
    assert (error.failure.code, error.failure.stage, error.failure.path) == ("E_QUOTA", "generate", "")
    assert error.failure.receipt.dropped_count == 1
    assert error.message == "402 no credit"


@pytest.mark.parametrize("failure", [None, "text", 7, []])
def test_a_failure_that_is_not_structured_is_unset(failure):
    assert not only(Traced().push(failed("boom", failure=failure)), "session_error").HasField("failure")


def test_an_abort_has_no_structured_failure():
    event = {
        "type": "message_end",
        "message": {"role": "assistant", "stopReason": "aborted", "failure": {"code": "E1"}},
    }
    error = only(Traced().push(event), "session_error")
    assert error.kind == pb.SESSION_ERROR_KIND_ABORTED
    assert not error.HasField("failure")
