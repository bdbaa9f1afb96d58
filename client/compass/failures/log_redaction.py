"""Redacts values of any kind, and whole log events with them."""

import datetime
import enum
from collections.abc import Collection, Mapping, MutableMapping

from compass.failures.credentials import SECRET_KEY
from compass.failures.redaction import MARK, redact

_MAX_DEPTH = 12


def redact_event(_logger: object, _name: str, event_dict: MutableMapping[str, object]) -> MutableMapping[str, object]:
    """Redact a log event: a structlog processor, to be placed right before the renderer."""
    for key, value in event_dict.items():
        event_dict[key] = _redact_member(key, value, 0)
    return event_dict


def redact_value(value: object, depth: int = 0) -> object:
    """Redact a value of any kind: containers member by member, unknown objects by what they would print."""
    match value:
        case str():
            return redact(value)
        case None | bool() | int() | float() | datetime.date() | datetime.timedelta() | enum.Enum():
            return value
        case Mapping() | list() | tuple() | set() | frozenset():
            return MARK if depth > _MAX_DEPTH else _redact_members(value, depth + 1)
        case bytes() | bytearray():
            return redact(bytes(value).decode(errors="replace"))
    return redact(repr(value))


def _redact_members(value: Mapping[object, object] | Collection[object], depth: int) -> object:
    if isinstance(value, Mapping):
        return {key: _redact_member(key, member, depth) for key, member in value.items()}
    return [redact_value(member, depth) for member in value]


def _redact_member(key: object, value: object, depth: int) -> object:
    if isinstance(value, str | bytes) and value and SECRET_KEY.search(str(key)):
        return MARK
    return redact_value(value, depth)
