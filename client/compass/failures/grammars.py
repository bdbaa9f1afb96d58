"""Grammars of identities, one per producer family. An identity is whole or absent: never cut, trimmed or repaired.

What is in its grammar and yet looks like a credential is no identity either: a well-formed id must not carry a secret.
"""

import datetime
import re
from collections.abc import Mapping

from compass.failures.redaction import redact

MAX_INT64 = 2**63 - 1
MIN_INT64 = -(2**63)
MAX_UINT64 = 2**64 - 1

Grammar = re.Pattern[str]

CODE: Grammar = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
LOCATION: Grammar = re.compile(r"[!-~]{1,256}")
"""A path, a field, a key: printable ASCII without space."""
NODE_ID: Grammar = re.compile(r"[a-z][a-z0-9_-]{0,63}")
ACTIVATION_ID: Grammar = re.compile(r"a[0-9]{20}")
STABLE_CHILD_ID: Grammar = re.compile(r"(?:wfx|wra)_[0-9a-f]{32}")
NOTIFICATION_ID: Grammar = re.compile(r"btn_[0-9a-f]{32}")
MESSAGE_ID: Grammar = re.compile(r"[0-9a-f]{32}|msg_[0-9a-z]{1,32}")
HUMAN_ID: Grammar = re.compile(r"usr_[0-9a-z]{14}|[0-9a-z]{12}")
AGENT_ID: Grammar = re.compile(r"agt_[0-9a-z]{14}|[0-9a-z]{12}")
"""An entity's id, or a member's: twelve characters without a prefix."""

_TIME: Grammar = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt]([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60)(?:\.\d{1,9})?"
    r"(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)


def identity(grammar: Grammar, value: object) -> str | None:
    """Return the value if it is an identity of this grammar, as it is, else None."""
    if not isinstance(value, str) or grammar.fullmatch(value) is None or redact(value) != value:
        return None
    return value


def instant(value: object) -> str | None:
    """Return the value if it is a time as RFC 3339 writes it, on a day that exists, else None."""
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    year, month, day = (int(part) for part in found.group(1, 2, 3))
    is_leap_second_elsewhere = found[6] == "60" and found[5] != "59"
    try:
        datetime.date(year, month, day)
    except ValueError:
        return None
    return None if is_leap_second_elsewhere else found.group()


def integer(value: object, *, minimum: int = MIN_INT64, maximum: int = MAX_INT64) -> int | None:
    """Return the value if it is a whole number within bounds; JSON through a Struct makes every number a float."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if minimum <= value <= maximum else None


def member(members: Mapping[str, object], name: str) -> object:
    """Return a member by its documented name, `dependency_path`, else by that name in camel case."""
    if name in members:
        return members[name]
    return members.get(camel(name))


def camel(name: str) -> str:
    """Spell a name in camel case."""
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))
