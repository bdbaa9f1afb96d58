"""Reads JSON-like values that stand inside prose, as agents and SDKs write them into their error messages.

Understands JSON, the way Python prints a dict, either of them lower-cased, and one that was cut off at its end. It
reads what is there and never fails; what it cannot read is prose.
"""

import json
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

from compass.failures.bounds import valid_text

MAX_TEXT_CHARS = 64 * 1024
_MAX_DEPTH = 24
_MAX_VALUES = 16

_OPENING = re.compile(r"[{\[]")
_TOKEN = re.compile(
    r"""\s*+(?:
      (?P<mark>[{}\[\](),:])
    | (?P<string>"(?:[^"\\]|\\.)*+(?:"|\Z)|'(?:[^'\\]|\\.)*+(?:'|\Z))
    | (?P<number>-?\d++(?:\.\d++)?(?:[eE][+-]?\d++)?)
    | (?P<word>[A-Za-z_][\w.+-]*+)
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(U[0-9a-fA-F]{8}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_SHORT_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_WORDS: dict[str, object] = {"true": True, "false": False, "null": None, "none": None}


class Embedded(NamedTuple):
    """What a text holds: the values found in it, and the prose around them."""

    values: list[object]
    prose: str


def read_text(text: str) -> Embedded:
    """Split a text into the JSON-like objects and lists in it, and the prose between them."""
    text = text[:MAX_TEXT_CHARS]
    whole = _whole(text)
    if isinstance(whole, dict | list | str):
        return Embedded([whole], "")
    if '{\\"' in text and '{"' not in text:
        text = text.replace('\\"', '"')
    values, prose, at = [], [], 0
    for start, end, value in _spans(text):
        values.append(value)
        prose.append(text[at:start])
        at = end
    prose.append(text[at:])
    return Embedded(values, " ".join(prose).strip())


def _whole(text: str) -> object:
    if not text.lstrip().startswith(("{", "[", '"')):
        return None
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def _spans(text: str) -> Iterator[tuple[int, int, object]]:
    at = 0
    for _ in range(_MAX_VALUES):
        opening = _OPENING.search(text, at)
        if opening is None:
            return
        reader = _Reader(text, opening.start())
        value = reader.value(0)
        at = max(reader.at, opening.end())
        if value:
            yield opening.start(), at, value


class _Reader:
    """One pass over a text from an opening bracket; stops where the text stops making sense."""

    def __init__(self, text: str, at: int) -> None:
        self.at = at
        self._text = text
        self._failed = False

    def value(self, depth: int) -> object:
        """Read one value; None where there is none."""
        token = self._next()
        if token is None or depth > _MAX_DEPTH:
            self._failed = True
            return None
        kind, text = token
        if kind == "mark":
            return self._container(text, depth)
        if kind == "string":
            return _unquote(text)
        if kind == "number":
            return float(text) if set(text) & set(".eE") else int(text[:20])
        return _WORDS.get(text.casefold(), text)

    def _container(self, mark: str, depth: int) -> object:
        if mark == "{":
            return self._members(depth)
        if mark in "[(":
            return self._items(depth)
        self._failed = True
        return None

    def _members(self, depth: int) -> dict[str, object]:
        members: dict[str, object] = {}
        while not self._failed and not self._skip("}"):
            key = self.value(depth + 1)
            if not self._skip(":"):
                self._failed = True
                break
            members[str(key)] = self.value(depth + 1)
            self._skip(",")
        return members

    def _items(self, depth: int) -> list[object]:
        items: list[object] = []
        while not self._failed and not self._skip("])"):
            item = self.value(depth + 1)
            if not self._failed:
                items.append(item)
            self._skip(",")
        return items

    def _next(self) -> tuple[str, str] | None:
        found = _TOKEN.match(self._text, self.at)
        if found is None or found.lastgroup is None:
            return None
        self.at = found.end()
        return found.lastgroup, found.group(found.lastgroup)

    def _skip(self, marks: str) -> bool:
        """Step over one of these marks, if it is next."""
        found = _TOKEN.match(self._text, self.at)
        if found is None or found.group("mark") is None or found.group("mark") not in marks:
            return False
        self.at = found.end()
        return True


def _unquote(token: str) -> str:
    body = token[1:-1] if len(token) > 1 and token.endswith(token[0]) else token[1:]
    return valid_text(_ESCAPE.sub(_unescape, body)) if "\\" in body else body


def _unescape(found: re.Match[str]) -> str:
    """Read an escape as JSON or as Python writes it."""
    escape = found[1]
    if len(escape) > 1:
        code = int(escape[1:], 16)
        return chr(code) if code <= sys.maxunicode else "\ufffd"
    return _SHORT_ESCAPES.get(escape, escape)
