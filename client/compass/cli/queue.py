"""The queue of a session's inbox, for a person."""

from collections.abc import Iterator, Sequence

from compass.cli import words
from compass.cli.facts import columns
from compass.cli.printable import one_line
from compass.v1 import compass_pb2 as pb


def queue_lines(prompts: Sequence[pb.SessionPrompt]) -> Iterator[str]:
    """Write each prompt on a line: id, state, text."""
    return columns([(prompt.prompt_id, _state(prompt), one_line(prompt.text)) for prompt in prompts])


def _state(prompt: pb.SessionPrompt) -> str:
    return words.PROMPT_STATES.get(prompt.state, "unknown")
