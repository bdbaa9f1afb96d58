"""A view as plain JSON values: what two folds in two languages compare."""

from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message as ProtoMessage

from compass.fold.view import Activity, Injection, Message, PlanEntry, Prompt, ToolCall, View
from compass.gap import Gap
from compass.v1 import compass_pb2 as pb

_ENUMS: dict[tuple[type, str], Any] = {
    (View, "state"): pb.AgentSessionState,
    (Activity, "phase"): pb.SessionPhase,
    (Message, "role"): pb.TranscriptRole,
    (Message, "stop_reason"): pb.SessionStopReason,
    (ToolCall, "status"): pb.AgentToolCallStatus,
    (PlanEntry, "status"): pb.AgentPlanEntryStatus,
    (Injection, "op_kind"): pb.SessionInjectionKind,
    (Prompt, "state"): pb.SessionPromptState,
    (Gap, "reason"): pb.SessionGapReason,
}


def view_to_dict(view: View) -> dict[str, Any]:
    """Write a view in its canonical form.

    Every field is there, in lowerCamelCase; numbers are numbers; enums are written by name; what does not exist is
    null. Protobuf messages inside (session_error, run_event) are in their canonical protobuf JSON.
    """
    return _fields_of(view)


def _fields_of(value: Any) -> dict[str, Any]:
    written = {}
    for field in fields(value):
        content = getattr(value, field.name)
        enum = _ENUMS.get((type(value), field.name))
        written[_camel(field.name)] = _written(content) if enum is None else _name_of(enum, content)
    return written


def _written(value: Any) -> Any:
    match value:
        case tuple():
            return [_written(item) for item in value]
        case Enum():
            return value.value
        case ProtoMessage():
            return MessageToDict(value)
        case _ if is_dataclass(value):
            return _fields_of(value)
        case _:
            return value


def _name_of(enum: Any, number: int) -> str | int:
    """Name an enum value; one that this version does not know keeps its number."""
    return str(enum.Name(number)) if number in enum.values() else number


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)
