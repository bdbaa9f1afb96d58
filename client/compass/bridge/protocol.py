"""Which protocol an agent speaks, told by its command line and by what it says first."""

from collections.abc import Sequence
from enum import Enum
from pathlib import PurePath

from compass.bridge.dialects import DIALECTS


class Protocol(Enum):
    """How the agent's process is spoken to."""

    AUTO = "auto"
    """Not known: what the agent says first decides; one that says nothing is asked."""
    JSON = "json"
    """It writes inner events and hears nothing: no prompts and no aborts."""
    RPC = "rpc"
    """Commands in, inner events and answers out."""


def protocol_of(command: Sequence[str]) -> Protocol:
    """Tell the protocol by `--mode` on the agent's command line."""
    for index, argument in enumerate(command):
        name, _, value = argument.partition("=")
        if name == "--mode":
            mode = value or (command[index + 1] if index + 1 < len(command) else "")
            return Protocol.RPC if mode.startswith("rpc") else Protocol.JSON
    return Protocol.AUTO


def dialect_of(command: Sequence[str]) -> str:
    """Tell the family of agents by the program's name; the protocol of pi is what all of them share."""
    names = (PurePath(argument).stem for argument in command[:2])
    return next((name for name in names if name in DIALECTS), "pi")
