"""Text of an agent as a terminal may show it: what would steer the terminal is shown as an escape, never sent."""

import json
import re
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

# C0 but tab and line feed, DEL, C1, and what reorders or breaks a line behind the reader's back.
_STEERING = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
_STEERS = re.compile(f"[{_STEERING}]")
_BREAKS_LINE = re.compile(f"[\t\n{_STEERING}]")


def printable(text: str) -> str:
    """Show control characters as escapes; tabs and line feeds stay. A carriage return before a line feed goes."""
    return _STEERS.sub(_escape, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Show control characters as escapes, tabs and line feeds too."""
    return _BREAKS_LINE.sub(_escape, text)


def json_line(message: Message) -> str:
    """Write a message as canonical protobuf JSON on one line."""
    return to_json(MessageToDict(message))


def to_json(value: Any) -> str:
    """Write a value as JSON on one line, safe for a terminal and for readers that break lines at U+2028."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _STEERS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()
