"""Prompts that a producer gave back and the server may not know of yet. Pure.

A return has no producer seq and no acknowledgement of its own: it is known to be durable once an event that was pushed
after it is. Until then each new stream says it again, which is harmless, since a return names the handing over that it
ends. Bound: the last return of each prompt that is open.
"""

from dataclasses import dataclass

from compass.v1 import agent_gateway_pb2 as pb


@dataclass(slots=True)
class _Return:
    message: pb.PromptReturned
    position: int
    """Position of the newest event that was pushed before it."""
    is_sent: bool = False


class Returns:
    """What to say of returned prompts on the next stream, and on this one."""

    def __init__(self) -> None:
        self._by_prompt: dict[str, _Return] = {}

    def add(self, prompt_id: str, control_seq: int, *, position: int) -> None:
        """Add a return; an earlier one of the same prompt has no meaning any more."""
        self._by_prompt.pop(prompt_id, None)
        message = pb.PromptReturned(prompt_id=prompt_id, control_seq=control_seq)
        self._by_prompt[prompt_id] = _Return(message, position)

    def take(self) -> list[pb.PromptReturned]:
        """Return what this stream has not said yet."""
        unsent = [each for each in self._by_prompt.values() if not each.is_sent]
        for each in unsent:
            each.is_sent = True
        return [each.message for each in unsent]

    def rewind(self) -> None:
        """Begin a new stream: nothing is said on it yet."""
        for each in self._by_prompt.values():
            each.is_sent = False

    def settle(self, position: int) -> None:
        """Forget what was said before an event that is acknowledged."""
        kept = {prompt_id: each for prompt_id, each in self._by_prompt.items() if each.position >= position}
        self._by_prompt = kept
