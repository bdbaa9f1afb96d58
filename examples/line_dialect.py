"""A dialect for an agent with a protocol of its own: how a third family is taught to the bridge.

Such an agent reads `{"do": "ask" | "stop" | "how", "ref": …, "text": …}` and writes `{"is": …}`:

    {"is": "up"}                                it takes commands
    {"is": "ok" | "no", "ref": "…"}             the answer to a command
    {"is": "idle" | "busy", "ref": "…"}         the answer to "how"
    {"is": "asked", "text": "…"}                it took a question
    {"is": "says", "text": "…"}                 a piece of the answer
    {"is": "done"} or {"is": "stopped"}         the end of the answer

    compass-trace run my-session --protocol rpc --dialect line_dialect:LineDialect -- my-agent
"""

import json
from typing import Any

from compass.bridge.dialects import AgentState, Answer, Aside, Command, Heard, Inner, Ready


class LineDialect:
    """Fulfils `compass.bridge.dialects.Dialect`."""

    name = "line"

    def __init__(self) -> None:
        self._said = ""

    def opening(self) -> list[Command]:
        return []

    def is_ready(self, heard: Heard) -> bool:
        return isinstance(heard, Ready)

    def reply(self, heard: Heard) -> list[Command]:
        return []

    def read(self, line: bytes) -> list[Heard]:
        message = json.loads(line)
        text = str(message.get("text", ""))
        match message.get("is"):
            case "up":
                return [Ready()]
            case "ok" | "no" | "idle" | "busy" as word:
                ref = str(message.get("ref", ""))
                return [Answer(line, word, ref, succeeded=word != "no", data={"busy": word == "busy"})]
            case "asked":
                self._said = ""
                return [
                    _event({"type": "agent_start"}),
                    _event({"type": "message_start", "message": _message("user", text)}, user_text=text),
                    _event({"type": "message_start", "message": _message("assistant", "")}),
                ]
            case "says":
                self._said += text
                delta = {"type": "text_delta", "contentIndex": 0, "delta": text}
                return [_event({"type": "message_update", "assistantMessageEvent": delta})]
            case "done" | "stopped" as word:
                message = _message("assistant", self._said)
                message["stopReason"] = "stop" if word == "done" else "aborted"
                return [_event({"type": "message_end", "message": message}), _event({"type": "agent_end"})]
            case _:
                return [Aside()]

    def prompt(self, command_id: str, text: str, *, steer: bool) -> Command:
        return {"do": "ask", "ref": command_id, "text": text}

    def abort(self, command_id: str) -> Command:
        return {"do": "stop", "ref": command_id}

    def ask_state(self, command_id: str) -> Command:
        return {"do": "how", "ref": command_id}

    def state(self, answer: Answer) -> AgentState:
        return AgentState(is_streaming=bool(answer.data["busy"]))

    def is_settled_by(self, answer: Answer, text: str) -> bool:
        return False

    def cancel_dialog(self, dialog_id: str) -> Command:
        return {"do": "stop", "ref": dialog_id}


def _message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def _event(event: dict[str, Any], *, user_text: str | None = None) -> Inner:
    line = json.dumps(event).encode()
    return Inner(line, str(event["type"]), is_user=user_text is not None, text=user_text or "")
