"""A mapper with a clock, fed with inner events as Python values, and what it wrote as the generated messages."""

import json
from pathlib import Path
from typing import Any

from compass.lanes import is_priority
from compass.limits import MAX_FRAME_BYTES
from compass.v1 import compass_pb2 as pb
from compass_service.frames import Draft
from compass_service.mapper import Mapper, MapperState

RECORDINGS = sorted((Path(__file__).parents[2] / "data" / "recordings").glob("*.jsonl"))
FIRST_MS = 1_000_000
STEP_MS = 10


class Traced:
    """One session under test. Every frame it writes is checked for what holds for all frames."""

    def __init__(self, state: MapperState | None = None) -> None:
        self.mapper = Mapper("s1", state)
        self.now_ms = FIRST_MS
        self.frames: list[pb.AgentSessionFrame] = []

    @property
    def state(self) -> MapperState:
        return self.mapper.state

    def push(self, *events: dict[str, Any] | str | bytes, prompt_id: str = "") -> list[pb.AgentSessionFrame]:
        """Map events. Returns the frames of all of them."""
        written = []
        for event in events:
            text = json.dumps(event) if isinstance(event, dict) else event
            written += self.take(self.mapper.map(text, now_ms=self.tick(), prompt_id=prompt_id))
        return written

    def tick(self) -> int:
        self.now_ms += STEP_MS
        return self.now_ms

    def take(self, drafts: list[Draft]) -> list[pb.AgentSessionFrame]:
        """Read drafts back, and check what every frame must be."""
        frames = []
        for draft in drafts:
            frame = pb.AgentSessionFrame.FromString(draft.body)
            assert frame.session_id == "s1"
            assert frame.seq == 0
            assert len(draft.body) < MAX_FRAME_BYTES - 16, "no room left for a seq"
            assert draft.is_priority == is_priority(frame)
            frames.append(frame)
        self.frames += frames
        return frames


def kind(frame: pb.AgentSessionFrame) -> str:
    """Name a frame by what it carries: an event's arm, a state or a gap."""
    if frame.HasField("gap"):
        return "gap"
    if frame.HasField("event"):
        return str(frame.event.WhichOneof("event"))
    return pb.AgentSessionState.Name(frame.state).removeprefix("AGENT_SESSION_STATE_")


def kinds(frames: list[pb.AgentSessionFrame]) -> list[str]:
    return [kind(frame) for frame in frames]


def shape(frames: list[pb.AgentSessionFrame]) -> list[str]:
    """Name frames without the activity between them."""
    return [name for name in kinds(frames) if name != "activity"]


def phases(frames: list[pb.AgentSessionFrame]) -> list[str]:
    return [
        pb.SessionPhase.Name(frame.event.activity.phase).removeprefix("SESSION_PHASE_")
        for frame in frames
        if frame.event.HasField("activity")
    ]


def events(frames: list[pb.AgentSessionFrame], arm: str) -> list[Any]:
    """Return what frames carry of one arm."""
    return [getattr(frame.event, arm) for frame in frames if frame.event.HasField(arm)]


def only(frames: list[pb.AgentSessionFrame], arm: str) -> Any:
    found = events(frames, arm)
    assert len(found) == 1, f"{len(found)} frames of {arm} in {kinds(frames)}"
    return found[0]


def streamed(frames: list[pb.AgentSessionFrame], arm: str = "assistant_text") -> str:
    return "".join(event.text for event in events(frames, arm))


# Inner events, as the recordings spell them.

AGENT_START = {"type": "agent_start"}
TURN_START = {"type": "turn_start"}
AGENT_END: dict[str, Any] = {"type": "agent_end", "messages": []}


def user(text: Any = "do it", **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}] if isinstance(text, str) else text
    return {"type": "message_start", "message": {"role": "user", "content": content, **more}}


def start(*content: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "message_start", "message": {"role": "assistant", "content": list(content), **more}}


def end(*content: dict[str, Any], stop: Any = "stop", **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": list(content), "stopReason": stop, **more}
    return {"type": "message_end", "message": message}


def update(kind_: str, **fields: Any) -> dict[str, Any]:
    return {"type": "message_update", "assistantMessageEvent": {"type": kind_, **fields}}


def delta(text: Any, index: Any = 0) -> dict[str, Any]:
    return update("text_delta", contentIndex=index, delta=text)


def thought(text: Any, index: Any = 0) -> dict[str, Any]:
    return update("thinking_delta", contentIndex=index, delta=text)


def text(content: Any) -> dict[str, Any]:
    return {"type": "text", "text": content}


def thinking(content: Any) -> dict[str, Any]:
    return {"type": "thinking", "thinking": content}


def failed(message: Any = "boom", *content: dict[str, Any], **more: Any) -> dict[str, Any]:
    return end(*content, stop="error", errorMessage=message, **more)


def aborted(message: Any = "Request was aborted", *content: dict[str, Any], **more: Any) -> dict[str, Any]:
    return end(*content, stop="aborted", errorMessage=message, **more)


def tool_start(call_id: Any = "c1", name: Any = "bash", **args: Any) -> dict[str, Any]:
    return {"type": "tool_execution_start", "toolCallId": call_id, "toolName": name, "args": args}


def tool_update(partial: Any, call_id: Any = "c1", name: Any = "bash") -> dict[str, Any]:
    return {"type": "tool_execution_update", "toolCallId": call_id, "toolName": name, "partialResult": partial}


def tool_end(result: Any, call_id: Any = "c1", name: Any = "bash", *, is_error: Any = False) -> dict[str, Any]:
    return {
        "type": "tool_execution_end",
        "toolCallId": call_id,
        "toolName": name,
        "result": result,
        "isError": is_error,
    }


def output(content: str, **details: Any) -> dict[str, Any]:
    return {"content": [text(content)], "details": details}
