"""Builds run events for an agent's event stream: one function a kind, the fields that it declares as arguments.

A value outside its grammar raises ValueError here, at its source; on the way to a pane it would be dropped.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, Required, TypedDict, Unpack

from compass.failures.redaction import redact
from compass.run_events.registry import ENVELOPE, KINDS, Field
from compass.v1 import run_event_pb2 as pb

RunStatus = Literal["succeeded", "failed", "canceled", "timed_out"]
RunScope = Literal["run", "channel", "thread", "direct"]
Decision = Literal["approved", "rejected"]
Instant = datetime | str
"""A moment: an aware datetime, or RFC 3339 text."""
Failure = Mapping[str, object]
"""Members of `compass.v1.Failure` by their names: code, stage, path, problem, hint, message, diagnostics, receipt."""


class Actor(TypedDict):
    """Who did something in a run."""

    kind: Literal["human", "agent"]
    id: str


class Envelope(TypedDict, total=False):
    """What every kind takes beside its own fields."""

    run_id: Required[str]
    activation_id: str
    at: Instant


class RunEvent(TypedDict):
    """An inner event, ready to be published."""

    type: Literal["run_event"]
    kind: str
    payload: dict[str, object]


def run_started(*, workflow: str, trigger: str | None = None, **envelope: Unpack[Envelope]) -> RunEvent:
    """Build: the run began."""
    return _event("run_started", envelope, workflow=workflow, trigger=trigger)


def run_completed(*, status: RunStatus, completed_at: Instant | None = None, **envelope: Unpack[Envelope]) -> RunEvent:
    """Build: the run ended normally."""
    return _event("run_completed", envelope, status=status, completed_at=completed_at)


def run_failed(*, failure: Failure, **envelope: Unpack[Envelope]) -> RunEvent:
    """Build: the run failed."""
    return _event("run_failed", envelope, failure=failure)


def run_canceled(*, reason: str | None = None, actor: Actor | None = None, **envelope: Unpack[Envelope]) -> RunEvent:
    """Build: the run was canceled."""
    return _event("run_canceled", envelope, reason=reason, actor=actor)


def node_started(*, node_id: str, port: str | None = None, **envelope: Unpack[Envelope]) -> RunEvent:
    """Build: a node began."""
    return _event("node_started", envelope, node_id=node_id, port=port)


def node_completed(*, node_id: str, port: str | None = None, **envelope: Unpack[Envelope]) -> RunEvent:
    """Build: a node ended normally."""
    return _event("node_completed", envelope, node_id=node_id, port=port)


def node_failed(
    *,
    node_id: str,
    failure: Failure,
    retry_at: Instant | None = None,
    **envelope: Unpack[Envelope],
) -> RunEvent:
    """Build: a node failed. Without `retry_at` it will not be tried again."""
    return _event("node_failed", envelope, node_id=node_id, failure=failure, retry_at=retry_at)


def retry_scheduled(
    *,
    node_id: str,
    attempt: int,
    retry_at: Instant | None = None,
    failure: Failure | None = None,
    **envelope: Unpack[Envelope],
) -> RunEvent:
    """Build: a failed node will be tried again, as attempt number `attempt`."""
    return _event("retry_scheduled", envelope, node_id=node_id, attempt=attempt, retry_at=retry_at, failure=failure)


def timeout_fired(*, node_id: str, failure: Failure | None = None, **envelope: Unpack[Envelope]) -> RunEvent:
    """Build: a node ran out of time."""
    return _event("timeout_fired", envelope, node_id=node_id, failure=failure)


def parallel_opened(**envelope: Unpack[Envelope]) -> RunEvent:
    """Build: a parallel section began."""
    return _event("parallel_opened", envelope)


def fan_out_opened(*, node_id: str, count: int, **envelope: Unpack[Envelope]) -> RunEvent:
    """Build: a fan-out of `count` branches began."""
    return _event("fan_out_opened", envelope, node_id=node_id, count=count)


def fan_out_resolved(
    *,
    succeeded: int,
    failed: int,
    port: str | None = None,
    **envelope: Unpack[Envelope],
) -> RunEvent:
    """Build: every branch of a fan-out has ended."""
    return _event("fan_out_resolved", envelope, succeeded=succeeded, failed=failed, port=port)


def loop_broken(*, node_id: str, iterations: int, **envelope: Unpack[Envelope]) -> RunEvent:
    """Build: a loop was left before its condition ended it."""
    return _event("loop_broken", envelope, node_id=node_id, iterations=iterations)


def approval_requested(*, notification_id: str, scope: RunScope, **envelope: Unpack[Envelope]) -> RunEvent:
    """Build: a person or an agent was asked to approve."""
    return _event("approval_requested", envelope, notification_id=notification_id, scope=scope)


def approval_decided(*, decision: Decision, actor: Actor | None = None, **envelope: Unpack[Envelope]) -> RunEvent:
    """Build: an approval was given or refused."""
    return _event("approval_decided", envelope, decision=decision, actor=actor)


def message_sent(*, message_id: str, scope: RunScope, **envelope: Unpack[Envelope]) -> RunEvent:
    """Build: the run sent a message."""
    return _event("message_sent", envelope, message_id=message_id, scope=scope)


def message_callback_completed(
    *,
    message_id: str,
    status: RunStatus,
    failure: Failure | None = None,
    **envelope: Unpack[Envelope],
) -> RunEvent:
    """Build: the receiver of a message has answered."""
    return _event("message_callback_completed", envelope, message_id=message_id, status=status, failure=failure)


def effect_result(
    *,
    effect_id: str,
    port: str | None = None,
    completed_at: Instant | None = None,
    notification_revision: int | None = None,
    output: str | None = None,
    failure: Failure | None = None,
    status: RunStatus | None = None,
    **envelope: Unpack[Envelope],
) -> RunEvent:
    """Build: an effect has a result, either `output`, or `failure` with `status`."""
    return _event(
        "effect_result",
        envelope,
        effect_id=effect_id,
        port=port,
        completed_at=completed_at,
        notification_revision=notification_revision,
        output=output,
        failure=failure,
        status=status,
    )


def _event(kind: str, envelope: Mapping[str, object], **fields: object) -> RunEvent:
    payload = {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in {**envelope, **fields}.items()
        if value is not None
    }
    for field in (*ENVELOPE, *KINDS[kind].fields):
        if field.name in payload:
            _check(kind, field, payload)
    return {"type": "run_event", "kind": kind, "payload": payload}


def _check(kind: str, field: Field, payload: Mapping[str, object]) -> None:
    value = field.read(payload[field.name])
    if value is None or (isinstance(value, pb.RunActor) and not value.id):
        raise ValueError(f"{kind}: {field.name} is outside its grammar: {redact(repr(payload[field.name]))[:256]}")
    if field.unless in payload:
        raise ValueError(f"{kind}: {field.name} and {field.unless} exclude each other")
    if field.only_with and field.only_with not in payload:
        raise ValueError(f"{kind}: {field.name} needs {field.only_with}")
