"""Inner events as the doors hand them over, and what their frames show. Pure."""

from typing import NamedTuple

from compass.v1 import compass_pb2 as pb
from compass_service import frames


class Event(NamedTuple):
    """One inner event as a door hands it over."""

    json: str | bytes
    prompt_id: str = ""


def shows_prompt(draft: frames.Draft, prompt_id: str) -> bool:
    """Tell whether a frame is the user message that a prompt became."""
    frame = pb.AgentSessionFrame.FromString(draft.body)
    return frame.event.HasField("user_message") and frame.event.user_message.prompt_id == prompt_id
