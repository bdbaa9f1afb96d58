"""A feeding with pi's dialect, and an agent that a test plays by hand."""

import json
from typing import Any

from compass.agent import Prompt
from compass.bridge.dialects import AgentState, Answer, Inner, PiDialect
from compass.bridge.feeding import Feeding


class Talk:
    """What a test says for the agent, and what the agent is told."""

    def __init__(self, commands: list[dict[str, str]] | None = None) -> None:
        self.dialect = PiDialect()
        self.written: list[Any] = []
        self.settled: list[str] = []
        self.given_back: list[str] = []
        self.feeding = Feeding(
            self.dialect,
            write=self.written.append,
            settled=lambda prompt: self.settled.append(prompt.text),
            give_back=lambda prompt: self.given_back.append(prompt.text),
        )
        if commands is not None:
            self._hear({"type": "response", "id": "compass-commands", "success": True, "data": {"commands": commands}})

    @property
    def fed(self) -> list[str]:
        return [command["message"] for command in self.written if command["type"] == "prompt"]

    def hand(self, text: str, *, steer: bool = False) -> None:
        self.feeding.hand(Prompt(text, text, steer, len(self.written) + 1, None))

    def says(self, state: AgentState) -> None:
        """Answer the question how it stands, which is asked first if it is not."""
        self.feeding.tick()
        asked = [command["id"] for command in self.written if command["type"] == "get_state"]
        data = {
            "isStreaming": state.is_streaming,
            "isCompacting": state.is_compacting,
            "pendingMessageCount": state.num_pending,
        }
        self._hear({"type": "response", "id": asked[-1], "command": "get_state", "success": True, "data": data})

    def feed(
        self, text: str, *, steer: bool = False, state: AgentState | None = None, accepted: bool | None = True
    ) -> None:
        self.hand(text, steer=steer)
        self.says(state or AgentState())
        if accepted is not None:
            self.accept(text, accepted=accepted)

    def accept(self, text: str, *, accepted: bool = True) -> None:
        command = next(each for each in self.written if each.get("message") == text)
        self._hear({"type": "response", "id": command["id"], "command": "prompt", "success": accepted})

    def event(self, kind: str) -> None:
        self._hear({"type": kind})

    def user(self, text: str, **more: object) -> str | None:
        message = {"role": "user", "content": [{"type": "text", "text": text}], **more}
        prompt = self._hear({"type": "message_start", "message": message})
        return None if prompt is None else prompt.text

    def _hear(self, message: dict[str, object]) -> Prompt | None:
        prompt = None
        for heard in self.dialect.read(json.dumps(message).encode()):
            self.dialect.reply(heard)
            match heard:
                case Inner():
                    prompt = self.feeding.heard(heard)
                case Answer():
                    self.feeding.answered(heard)
        return prompt
