"""Projects a run event as it was reported onto its closed schema: only what is declared, only within its grammar."""

from collections.abc import Iterable, Mapping

from google.protobuf.message import Message

from compass.failures.grammars import member
from compass.run_events.registry import ENVELOPE, KINDS, Field, Value
from compass.v1 import run_event_pb2 as pb


def project(kind: object, payload: object) -> pb.SessionRunEvent:
    """Return the public form of a run event.

    An unknown kind gives an empty event: nothing of its payload comes through. A payload's members may be spelled in
    snake case, as documented, or in camel case; where both are there the documented one counts. Never raises.
    """
    schema = KINDS.get(kind) if isinstance(kind, str) else None
    if schema is None:
        return pb.SessionRunEvent()
    members = payload if isinstance(payload, Mapping) else {}
    event = pb.SessionRunEvent()
    _fill(event, read_fields(ENVELOPE, members))
    detail: Message = getattr(event, schema.name)
    detail.SetInParent()
    _fill(detail, read_fields(schema.fields, members))
    return event


def read_fields(fields: Iterable[Field], members: Mapping[str, object]) -> dict[str, Value]:
    """Read the members that are declared, each by its own grammar, and leave out what another one excludes."""
    read = {field.name: value for field in fields if (value := field.read(member(members, field.name))) is not None}
    return {
        field.name: read[field.name]
        for field in fields
        if field.name in read and field.unless not in read and (not field.only_with or field.only_with in read)
    }


def _fill(message: Message, values: Mapping[str, Value]) -> None:
    for name, value in values.items():
        if isinstance(value, Message):
            getattr(message, name).CopyFrom(value)
        else:
            setattr(message, name, value)
