from datetime import UTC, datetime

import pytest

from compass import run_events
from compass.run_events import project
from compass.v1 import run_event_pb2 as pb

HEX = "0123456789abcdef0123456789abcdef"
HUMAN: run_events.Actor = {"kind": "human", "id": "usr_0123456789abcd"}
FAILURE = {"code": "E_DISK", "stage": "write", "message": "disk full"}
ENVELOPE = {"run_id": "run-1", "activation_id": "a" + "0" * 20, "at": datetime(2026, 11, 30, 10, tzinfo=UTC)}

EVENTS = [
    run_events.run_started(**ENVELOPE, workflow="deploy", trigger="push"),
    run_events.run_completed(**ENVELOPE, status="succeeded", completed_at="2026-11-30T10:00:00Z"),
    run_events.run_failed(**ENVELOPE, failure=FAILURE),
    run_events.run_canceled(**ENVELOPE, reason="not needed", actor=HUMAN),
    run_events.node_started(**ENVELOPE, node_id="build", port="in"),
    run_events.node_completed(**ENVELOPE, node_id="build", port="out"),
    run_events.node_failed(**ENVELOPE, node_id="build", failure=FAILURE, retry_at="2026-11-30T10:00:00Z"),
    run_events.retry_scheduled(
        **ENVELOPE, node_id="build", attempt=2, retry_at="2026-11-30T10:00:00Z", failure=FAILURE
    ),
    run_events.timeout_fired(**ENVELOPE, node_id="build", failure=FAILURE),
    run_events.parallel_opened(**ENVELOPE),
    run_events.fan_out_opened(**ENVELOPE, node_id="build", count=0),
    run_events.fan_out_resolved(**ENVELOPE, succeeded=2, failed=0, port="out"),
    run_events.loop_broken(**ENVELOPE, node_id="build", iterations=3),
    run_events.approval_requested(**ENVELOPE, notification_id=f"btn_{HEX}", scope="direct"),
    run_events.approval_decided(**ENVELOPE, decision="rejected", actor=HUMAN),
    run_events.message_sent(**ENVELOPE, message_id=HEX, scope="channel"),
    run_events.message_callback_completed(**ENVELOPE, message_id=HEX, status="timed_out", failure=FAILURE),
    run_events.effect_result(
        **ENVELOPE,
        effect_id=f"wfx_{HEX}",
        port="out",
        completed_at="2026-11-30T10:00:00Z",
        notification_revision=0,
        failure=FAILURE,
        status="failed",
    ),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event["kind"])
def test_what_a_builder_is_given_comes_out_of_the_projection_whole(event):
    projected = project(event["kind"], event["payload"])
    given = set(event["payload"]) - {"run_id", "activation_id", "at"}
    detail = getattr(projected, event["kind"])
    shown = {field.name for field, _ in detail.ListFields()}
    assert shown == given
    assert (projected.run_id, projected.activation_id) == ("run-1", "a" + "0" * 20)
    assert projected.at == "2026-11-30T10:00:00+00:00"


def test_a_builder_exists_for_every_kind():
    assert {event["kind"] for event in EVENTS} == set(run_events.KINDS)


def test_an_event_is_an_inner_event_of_type_run_event():
    event = run_events.effect_result(run_id="r", effect_id=f"wra_{HEX}", output="42")
    assert event == {
        "type": "run_event",
        "kind": "effect_result",
        "payload": {"run_id": "r", "effect_id": f"wra_{HEX}", "output": "42"},
    }
    assert project(event["kind"], event["payload"]).effect_result == pb.EffectResult(
        effect_id=f"wra_{HEX}", output="42"
    )


@pytest.mark.parametrize(
    ("build", "names"),
    [
        (lambda: run_events.run_started(run_id="Run 1", workflow="w"), "run_id"),
        (lambda: run_events.node_started(run_id="r", node_id="N"), "node_id"),
        (lambda: run_events.run_completed(run_id="r", status="fine"), "status"),
        (lambda: run_events.run_completed(run_id="r", status="failed", completed_at="today"), "completed_at"),
        (lambda: run_events.run_started(run_id="r", workflow="w", at=datetime(2026, 1, 1)), "at"),
        (lambda: run_events.retry_scheduled(run_id="r", node_id="n", attempt=0), "attempt"),
        (
            lambda: run_events.approval_decided(run_id="r", decision="approved", actor={"kind": "agent", "id": "me"}),
            "actor",
        ),
        (lambda: run_events.effect_result(run_id="r", effect_id=f"wfx_{HEX}", output="x", failure=FAILURE), "output"),
        (lambda: run_events.effect_result(run_id="r", effect_id=f"wfx_{HEX}", status="failed"), "status"),
    ],
)
def test_a_value_outside_its_grammar_is_refused_at_its_source(build, names):
    with pytest.raises(ValueError, match=names):
        build()


def test_the_refusal_does_not_repeat_a_credential():
    with pytest.raises(ValueError, match="redacted") as refusal:
        run_events.run_started(run_id="sk-ant-0123456789abcdef", workflow="w")
    assert "0123456789" not in str(refusal.value)
