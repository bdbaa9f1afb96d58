"""What leaves a producer: an inner event without the cumulative parts that repeat what was sent before.

In rpc mode an agent puts the whole message so far into each update, twice; a 2,000-word answer is then tens of
megabytes of JSON. The shapes that do so are listed here, with the keys that the mapper does not read; whatever is not
one of them goes through byte for byte. Also tells the lane that an inner event travels in.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn, TypeAlias

import msgspec

from compass.errors import InvalidEventError

Event: TypeAlias = Mapping[str, Any] | str | bytes
"""An inner event: an object, or the JSON text of one."""


class Slimmed(NamedTuple):
    """An inner event as it is sent."""

    json: str
    """Text of one JSON object, without line end."""
    num_bytes: int
    """Its size in UTF-8."""
    is_priority: bool
    """False for what may be dropped when there is no room: deltas, and the progress of tools."""


_CUMULATIVE = {
    "agent_end": frozenset({"messages"}),
    "turn_end": frozenset({"message", "toolResults"}),
    # tool_execution_start carries them, and is never dropped.
    "tool_execution_update": frozenset({"args"}),
}
_UPDATE = "message_update"
_UPDATE_CUT = frozenset({"message"})
_INNER = "assistantMessageEvent"
_INNER_CUT = frozenset({"partial"})
_STREAMING = ("text_", "thinking_", "toolcall_")
"""Inner events that stream a message. The others, `done` and `error`, come once and stay whole."""


class _Inner(msgspec.Struct):
    type: str
    partial: msgspec.Raw = msgspec.Raw()


class _Update(msgspec.Struct, tag_field="type", tag=_UPDATE):
    inner: _Inner = msgspec.field(name=_INNER)
    message: msgspec.Raw = msgspec.Raw()


_decode_update = msgspec.json.Decoder(_Update).decode
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_string = msgspec.json.Decoder(str).decode
_encode = msgspec.json.Encoder().encode
_type_names = {_encode(name): name for name in (_UPDATE, *_CUMULATIVE)}


def slim(event: Event) -> Slimmed:
    """Make an inner event ready to be sent.

    Raises InvalidEventError when it is not one JSON object, TypeError when it is neither text nor a mapping.
    """
    if isinstance(event, str):
        # A lone surrogate has no UTF-8; its JSON escape says the same.
        text, is_priority = _slim_text(event.encode("utf-8", "backslashreplace").rstrip(b"\r\n"))
    elif isinstance(event, Mapping):
        text, is_priority = _slim_object(event)
    elif isinstance(event, bytes):
        text, is_priority = _slim_text(event.rstrip(b"\r\n"))
    else:
        raise TypeError(f"an event is a mapping, str or bytes, not {type(event).__name__}")
    return Slimmed(text.decode(errors="replace"), len(text), is_priority)


def _slim_text(text: bytes) -> tuple[bytes, bool]:
    if b'"partial"' not in text and (is_priority := _lane_of_slim_update(text)) is not None:
        return text, is_priority
    try:
        members = _decode(text)
    except RecursionError:
        return text, True
    except msgspec.MsgspecError:
        # No JSON object, or a lone surrogate, which msgspec refuses even in what it skips.
        return _slim_odd_text(text)
    name = _type_names.get(bytes(members.get("type", b"")))
    if name is None:
        return text, True
    if name == _UPDATE:
        return _slim_update(text, members)
    return _without(text, members, _CUMULATIVE[name]), _is_priority(name)


def _lane_of_slim_update(text: bytes) -> bool | None:
    """Return whether an update with nothing to cut is priority. None for any other text, which is looked at closely.

    Nearly all of a stream is such updates, and this reads one in a sixth of the time.
    """
    try:
        update = _decode_update(text)
    except (msgspec.MsgspecError, RecursionError):
        return None
    inner_type = update.inner.type
    if update.message or update.inner.partial or not inner_type.startswith(_STREAMING):
        return None
    return _is_priority(_UPDATE, inner_type)


def _slim_update(text: bytes, members: dict[str, msgspec.Raw]) -> tuple[bytes, bool]:
    try:
        inner = _decode(members[_INNER])
        inner_type = _decode_string(inner["type"])
    except (KeyError, msgspec.MsgspecError):
        return text, True
    if not inner_type.startswith(_STREAMING):
        return text, True
    is_priority = _is_priority(_UPDATE, inner_type)
    if _UPDATE_CUT.isdisjoint(members) and _INNER_CUT.isdisjoint(inner):
        return text, is_priority
    members[_INNER] = msgspec.Raw(_without(members[_INNER], inner, _INNER_CUT))
    return _join(members, _UPDATE_CUT), is_priority


def _is_priority(name: object, inner_type: str = "") -> bool:
    """Tell the lane of an inner event: deltas and the progress of tools are trace, all else is priority."""
    return not (inner_type.endswith("_delta") if name == _UPDATE else name == "tool_execution_update")


def _without(text: bytes | msgspec.Raw, members: dict[str, msgspec.Raw], cut: frozenset[str]) -> bytes:
    return bytes(text) if cut.isdisjoint(members) else _join(members, cut)


def _join(members: dict[str, msgspec.Raw], cut: frozenset[str]) -> bytes:
    """Write an object again without the cut keys; every value that stays keeps its bytes."""
    return b"{%s}" % b",".join(b"%s:%s" % (_encode(key), bytes(raw)) for key, raw in members.items() if key not in cut)


def _slim_odd_text(text: bytes) -> tuple[bytes, bool]:
    """Slim a text that msgspec refuses: parse it whole, and write it again only if there is something to cut."""
    try:
        event = json.loads(text.decode(errors="replace"), parse_constant=_refuse_constant, parse_int=_parse_int)
    except RecursionError:
        return text, True
    except ValueError:
        raise InvalidEventError from None
    if not isinstance(event, dict):
        raise InvalidEventError
    kept, is_priority = _cut(event)
    return text if kept is event else _escaped(kept), is_priority


def _refuse_constant(_: str) -> NoReturn:
    raise ValueError("NaN and Infinity are no JSON")


def _parse_int(digits: str) -> int | float:
    # int() refuses more than 4,300 digits; nothing that is read is that large.
    return int(digits) if len(digits) < 20 else float(digits)


def _slim_object(event: Mapping[str, Any]) -> tuple[bytes, bool]:
    kept, is_priority = _cut(event)
    try:
        return _encode(dict(kept)), is_priority
    except UnicodeEncodeError:
        return _escaped(kept), is_priority
    except (TypeError, RecursionError) as error:
        raise InvalidEventError from error


def _cut(event: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """Return the event without its cumulative parts, the same object if it has none, and whether it is priority."""
    name = event.get("type")
    if name == _UPDATE:
        return _cut_update(event)
    cut = _CUMULATIVE.get(name) if isinstance(name, str) else None
    return (event if cut is None else _less(event, cut)), _is_priority(name)


def _cut_update(event: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    inner = event.get(_INNER)
    inner_type = inner.get("type") if isinstance(inner, Mapping) else None
    if inner is None or not (isinstance(inner_type, str) and inner_type.startswith(_STREAMING)):
        return event, True
    slim_inner = _less(inner, _INNER_CUT)
    if slim_inner is not inner:
        event = {**event, _INNER: slim_inner}
    return _less(event, _UPDATE_CUT), _is_priority(_UPDATE, inner_type)


def _less(members: Mapping[str, Any], cut: frozenset[str]) -> Mapping[str, Any]:
    if cut.isdisjoint(members):
        return members
    return {key: value for key, value in members.items() if key not in cut}


def _escaped(event: Mapping[str, Any]) -> bytes:
    """Write an object with everything outside ASCII escaped, which can carry a lone surrogate."""
    try:
        return json.dumps(event, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidEventError from error
