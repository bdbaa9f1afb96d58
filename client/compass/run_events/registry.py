"""What a workflow engine may report of a run: every kind, its fields, and the grammar of each.

Data. Both sides import it: the helpers that build run events, and the projection that reads them. A kind has no open
map; what is not declared here does not come through.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.message import Message

from compass.failures.bounds import public_prose
from compass.failures.failure import failure_from
from compass.failures.grammars import (
    ACTIVATION_ID,
    AGENT_ID,
    HUMAN_ID,
    MESSAGE_ID,
    NODE_ID,
    NOTIFICATION_ID,
    STABLE_CHILD_ID,
    identity,
    instant,
    integer,
    member,
)
from compass.v1 import failure_pb2
from compass.v1 import run_event_pb2 as pb

Value = str | int | Message
Reader = Callable[[object], Value | None]
"""Returns what goes on the wire, or None for a value outside its grammar."""


@dataclass(frozen=True, slots=True)
class Field:
    """One declared field of a kind."""

    name: str
    read: Reader
    unless: str = ""
    """Another field that keeps this one away."""
    only_with: str = ""
    """Another field without which this one says nothing."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of run event."""

    name: str
    fields: tuple[Field, ...]
    may_fail: bool
    """Whether an event of this kind may carry a failure."""


def words_of(enum: EnumDescriptor) -> dict[str, int]:
    """Name the values of an enum as payloads spell them: `timed_out` is RUN_STATUS_TIMED_OUT."""
    prefix = enum.values_by_number[0].name.removesuffix("UNSPECIFIED")
    return {value.name.removeprefix(prefix).lower(): value.number for value in enum.values if value.number}


def _enum(enum: EnumDescriptor) -> Reader:
    words = words_of(enum)
    return lambda value: words.get(value) if isinstance(value, str) else None


def _prose(value: object) -> str | None:
    return public_prose(value) if isinstance(value, str) else None


def _failure(value: object) -> failure_pb2.Failure | None:
    return failure_from(value) if isinstance(value, Mapping | str) and value else None


_ACTOR_KINDS = words_of(pb.RunActorKind.DESCRIPTOR)
_ACTOR_IDS = {"human": HUMAN_ID, "agent": AGENT_ID}


def _actor(value: object) -> pb.RunActor | None:
    """Read who did it. An id counts only in the grammar of its own family."""
    members = value if isinstance(value, Mapping) else {}
    kind = member(members, "kind")
    if not isinstance(kind, str) or kind not in _ACTOR_IDS:
        return None
    actor_id = identity(_ACTOR_IDS[kind], member(members, "id"))
    return pb.RunActor(kind=pb.RunActorKind.ValueType(_ACTOR_KINDS[kind]), id=actor_id or "")


_node: Reader = partial(identity, NODE_ID)
_count: Reader = partial(integer, minimum=0)
_status = _enum(pb.RunStatus.DESCRIPTOR)
_scope = _enum(pb.RunScope.DESCRIPTOR)

_NODE_ID = Field("node_id", _node)
_PORT = Field("port", _node)
_MESSAGE_ID = Field("message_id", partial(identity, MESSAGE_ID))
_COMPLETED_AT = Field("completed_at", instant)
_RETRY_AT = Field("retry_at", instant)
_STATUS = Field("status", _status)
_SCOPE = Field("scope", _scope)
_ACTOR = Field("actor", _actor)
FAILURE = Field("failure", _failure)

ENVELOPE = (
    Field("run_id", _node),
    Field("activation_id", partial(identity, ACTIVATION_ID)),
    Field("at", instant),
)
"""The fields of every kind."""


def _kind(name: str, *fields: Field, may_fail: bool = False) -> tuple[str, Kind]:
    return name, Kind(name, (*fields, FAILURE) if may_fail else fields, may_fail)


KINDS: Mapping[str, Kind] = dict((
    _kind("run_started", Field("workflow", _node), Field("trigger", _node)),
    _kind("run_completed", _COMPLETED_AT, _STATUS),
    _kind("run_failed", may_fail=True),
    _kind("run_canceled", Field("reason", _prose), _ACTOR),
    _kind("node_started", _NODE_ID, _PORT),
    _kind("node_completed", _NODE_ID, _PORT),
    _kind("node_failed", _NODE_ID, _RETRY_AT, may_fail=True),
    _kind("retry_scheduled", _NODE_ID, Field("attempt", partial(integer, minimum=1)), _RETRY_AT, may_fail=True),
    _kind("timeout_fired", _NODE_ID, may_fail=True),
    _kind("parallel_opened"),
    _kind("fan_out_opened", _NODE_ID, Field("count", _count)),
    _kind("fan_out_resolved", _PORT, Field("succeeded", _count), Field("failed", _count)),
    _kind("loop_broken", _NODE_ID, Field("iterations", _count)),
    _kind("approval_requested", Field("notification_id", partial(identity, NOTIFICATION_ID)), _SCOPE),
    _kind("approval_decided", Field("decision", _enum(pb.ApprovalDecision.DESCRIPTOR)), _ACTOR),
    _kind("message_sent", _MESSAGE_ID, _SCOPE),
    _kind("message_callback_completed", _MESSAGE_ID, _STATUS, may_fail=True),
    _kind(
        "effect_result",
        Field("effect_id", partial(identity, STABLE_CHILD_ID)),
        _PORT,
        _COMPLETED_AT,
        Field("notification_revision", integer),
        Field("output", _prose, unless="failure"),
        Field("status", _status, only_with="failure"),
        may_fail=True,
    ),
))  # fmt: skip
"""Every kind, by its name."""
