"""`pi --mode rpc` (@mariozechner/pi-coding-agent): JSON lines both ways, answers by id, state on request."""

import contextlib
import json
from collections.abc import Mapping
from typing import Any

import msgspec

from compass.bridge.dialects.dialect import Command
from compass.bridge.dialects.heard import AgentState, Answer, Aside, Dialog, Heard, Inner, Ready

_DIALOGS = frozenset({"select", "confirm", "input", "editor"})
_ASIDES = frozenset({"extension_ui_request", "extension_error", "available_commands_update", "queue_update"})
_READ_WHOLE = frozenset({"response", "ready", "extension_ui_request", "message_start", "rpc_chunk", ""})
_OPENING_ID = "compass-opening"
_COMMANDS_ID = "compass-commands"


class PiDialect:
    """Says nothing by itself at its start: the first answer to get_state says that it is ready."""

    name = "pi"

    def __init__(self) -> None:
        self._extension_commands: frozenset[str] = frozenset()

    def opening(self) -> list[Command]:
        """Ask for its state and its commands."""
        return [self.ask_state(_OPENING_ID), {"id": _COMMANDS_ID, "type": "get_commands"}]

    def read(self, line: bytes) -> list[Heard]:
        """Read one line."""
        return [self.heard(line, parse(line))]

    def heard(self, line: bytes, message: Mapping[str, Any]) -> Heard:
        """Tell what a message means."""
        match message.get("type"):
            case "response":
                return answer_of(line, message)
            case "ready":
                return Ready(message)
            case "extension_ui_request" if message.get("method") in _DIALOGS:
                return Dialog(line, str(message.get("id", "")))
            case kind if kind in _ASIDES:
                return Aside()
            case kind:
                return _inner(line, str(kind), message)

    def is_ready(self, heard: Heard) -> bool:
        """Wait for the first answer to get_state."""
        return isinstance(heard, Answer) and heard.command_id == _OPENING_ID

    def reply(self, heard: Heard) -> list[Command]:
        """Say nothing; note which commands its extensions have."""
        if isinstance(heard, Answer) and heard.command_id == _COMMANDS_ID:
            listed = heard.data.get("commands")
            commands = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
            self._extension_commands = frozenset(
                str(each.get("name")) for each in commands if each.get("source") == "extension"
            )
        return []

    def prompt(self, command_id: str, text: str, *, steer: bool) -> Command:
        """Prompt. A steer that comes too late begins a turn of its own, where `steer` would wait for the next one."""
        command = {"id": command_id, "type": "prompt", "message": text}
        return {**command, "streamingBehavior": "steer"} if steer else command

    def abort(self, command_id: str) -> Command:
        """Abort."""
        return {"id": command_id, "type": "abort"}

    def ask_state(self, command_id: str) -> Command:
        """Ask for its state."""
        return {"id": command_id, "type": "get_state"}

    def state(self, answer: Answer) -> AgentState:
        """Read its state. An agent that answers with an error is not known to be idle."""
        data = answer.data
        pending = data.get("pendingMessageCount", data.get("queuedMessageCount", 0))
        return AgentState(
            is_streaming=bool(data.get("isStreaming")) or not answer.succeeded,
            is_compacting=bool(data.get("isCompacting")),
            num_pending=pending if isinstance(pending, int) else 0,
        )

    def is_settled_by(self, answer: Answer, text: str) -> bool:
        """Tell whether an extension's command took the prompt."""
        name = text[1:].split(" ", 1)[0]
        return answer.succeeded and text.startswith("/") and name in self._extension_commands

    def cancel_dialog(self, dialog_id: str) -> Command:
        """Close a dialog."""
        return {"type": "extension_ui_response", "id": dialog_id, "cancelled": True}


class _Head(msgspec.Struct):
    type: str = ""


_head = msgspec.json.Decoder(_Head).decode


def parse(line: bytes) -> dict[str, Any]:
    """Read a line as a JSON object, of which only what is needed here is built. Raises ValueError.

    Each update of a message may be megabytes that repeat the message so far.
    """
    with contextlib.suppress(msgspec.MsgspecError, RecursionError):
        if (kind := _head(line).type) not in _READ_WHOLE:
            return {"type": kind}
    try:
        message = json.loads(line.decode(errors="replace"))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(message, dict):
        raise ValueError("no JSON object")  # noqa: TRY004 - one error for whatever is no line of the protocol
    return message


def answer_of(line: bytes, message: Mapping[str, Any]) -> Answer:
    """Read a response."""
    data = message.get("data")
    return Answer(
        line,
        str(message.get("command", "")),
        str(message.get("id", "")),
        bool(message.get("success")),
        data if isinstance(data, dict) else {},
    )


def _inner(line: bytes, kind: str, message: Mapping[str, Any]) -> Inner:
    shown = message.get("message")
    if kind != "message_start" or not isinstance(shown, dict) or shown.get("role") != "user":
        return Inner(line, kind)
    # What an agent says to itself in the user's role came from nobody's prompt.
    return Inner(line, kind, is_user=shown.get("attribution") != "agent", text=_text_of(shown.get("content")))


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))
