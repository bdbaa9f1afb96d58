"""From the text of an inner event to what the mapper reads of it: fast as a rule, lenient where it must be.

The fast way skips what is not declared. It refuses a field of another type, and any text with a lone surrogate, even in
a field that it skips. Such an event goes the slow way: parsed whole, each field taken if it fits and left out if not.
"""

import json
import types
from functools import cache
from typing import Any, NoReturn, get_args, get_origin

import msgspec

from compass.failures.bounds import valid_text
from compass_service.mapper import fields, inner
from compass_service.mapper.prose import redact_beginning
from compass_service.mapper.text import clean_all

UNREADABLE = "unreadable"
"""Stands for the type of an event that has none, or that is nested too deeply to be read."""
MAX_TYPE_CHARS = 64


class NotAnObjectError(ValueError):
    """An inner event is no JSON object. The producer's fault; sending it again will not help."""

    def __init__(self) -> None:
        super().__init__("an inner event must be one JSON object")


class Unmapped(msgspec.Struct):
    """An event that has no mapping, or that could not be read."""

    type_name: str


class _Head(msgspec.Struct):
    type: object = None


_REFUSED = (msgspec.DecodeError, UnicodeError, RecursionError)
_decode_fast = msgspec.json.Decoder(inner.Inner).decode
_decode_head = msgspec.json.Decoder(_Head).decode
_OMIT = object()


def decode(event: str | bytes) -> inner.Inner | Unmapped:
    """Read one inner event. Raises NotAnObjectError if it is no JSON object, and nothing else."""
    try:
        return _decode_fast(event)
    except _REFUSED:
        return _decode_slowly(event)


def type_name(value: object) -> str:
    """Return the type of an event as it is counted and logged: it is whatever the agent wrote there."""
    if not isinstance(value, str) or not value:
        return UNREADABLE
    return valid_text(redact_beginning(value, MAX_TYPE_CHARS)[:MAX_TYPE_CHARS])


def _decode_slowly(event: str | bytes) -> inner.Inner | Unmapped:
    try:
        head = _decode_head(event)
    except _REFUSED:
        pass
    else:
        if not (isinstance(head.type, str) and head.type in _inner_types()):
            return Unmapped(type_name(head.type))
    try:
        parsed = _parse(event)
    except RecursionError:
        return Unmapped(UNREADABLE)
    if not isinstance(parsed, dict):
        raise NotAnObjectError
    read = _fit(parsed, inner.Inner)
    return Unmapped(type_name(parsed.get("type"))) if read is _OMIT else read


def _parse(event: str | bytes) -> Any:
    text = event if isinstance(event, str) else event.decode(errors="replace")
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_int=_parse_int)
    except ValueError:
        raise NotAnObjectError from None


def _refuse_constant(_: str) -> NoReturn:
    raise ValueError("NaN and Infinity are no JSON")


def _parse_int(digits: str) -> int | float:
    # int() refuses more than 4,300 digits; nothing that is read is that large.
    return int(digits) if len(digits) < 20 else float(digits)


@cache
def _inner_types() -> frozenset[str]:
    return frozenset(_by_tag(inner.Inner))


@cache
def _by_tag(union: Any) -> dict[str, type[msgspec.Struct]]:
    """Return the members of a tagged union by their tag."""
    return {str(member.__struct_config__.tag): member for member in get_args(union) if _is_tagged(member)}


def _is_tagged(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, fields.Tagged)


def _fit(value: Any, kind: Any) -> Any:
    """Fit a parsed value to a declared type, or return _OMIT. A member that does not fit is left out, not the whole."""
    origin = get_origin(kind)
    if origin is types.UnionType:
        return _fit_union(value, kind)
    if origin is list:
        return _fit_list(value, get_args(kind)[0])
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _fit_struct(value, kind)
    return _fit_plain(value, kind)


def _fit_plain(value: Any, kind: Any) -> Any:
    if kind is object or isinstance(value, str):
        value = clean_all(value)
    if kind is int and isinstance(value, float) and value.is_integer():
        value = int(value)
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return _OMIT


def _fit_union(value: Any, kind: Any) -> Any:
    if isinstance(value, dict) and (tagged := _by_tag(kind)):
        tag = value.get("type")
        member = tagged.get(tag) if isinstance(tag, str) else None
        return _OMIT if member is None else _fit_struct(value, member)
    fits = (_fit(value, member) for member in get_args(kind))
    return next((fit for fit in fits if fit is not _OMIT), _OMIT)


def _fit_list(value: Any, kind: Any) -> Any:
    if not isinstance(value, list):
        return _OMIT
    fits = (_fit(item, kind) for item in value)
    return [fit for fit in fits if fit is not _OMIT]


def _fit_struct(value: Any, kind: type[msgspec.Struct]) -> Any:
    if not isinstance(value, dict):
        return _OMIT
    given = {}
    for field in msgspec.structs.fields(kind):
        if field.encode_name in value:
            # A delta keeps its halves: the other half of a surrogate pair may come with the next one.
            item = value[field.encode_name]
            is_delta = field.name == "delta" and isinstance(item, str)
            given[field.name] = item if is_delta else _fit(item, field.type)
    return kind(**{name: fit for name, fit in given.items() if fit is not _OMIT})
