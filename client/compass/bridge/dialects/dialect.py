"""The seam for a family of agents: how it is spoken to, and what its lines mean. docs/bridge.md says how to add one."""

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

from compass.bridge.dialects.heard import AgentState, Answer, Heard

Command: TypeAlias = Mapping[str, Any]
"""One line for the agent's standard input: a JSON object."""


class Dialect(Protocol):
    """One family of agents in its rpc protocol. One object serves one process, and may remember what it has read.

    What goes into the session must be inner events of the pi family: a dialect whose agent writes something else turns
    it into those in `read`.
    """

    name: str
    """Name of the family, shown as the agent's."""

    def opening(self) -> list[Command]:
        """Return what is said as soon as the process runs."""
        ...

    def read(self, line: bytes) -> list[Heard]:
        """Read one line. Raises ValueError for what is no line of this protocol."""
        ...

    def is_ready(self, heard: Heard) -> bool:
        """Tell whether this says that the agent can take its first prompt."""
        ...

    def reply(self, heard: Heard) -> list[Command]:
        """Return what the protocol itself wants to be said to this."""
        ...

    def prompt(self, command_id: str, text: str, *, steer: bool) -> Command:
        """Hand over a prompt, into the running turn if it steers and there is one."""
        ...

    def abort(self, command_id: str) -> Command:
        """Ask for an abort of the running turn."""
        ...

    def ask_state(self, command_id: str) -> Command:
        """Ask what the agent is doing."""
        ...

    def state(self, answer: Answer) -> AgentState:
        """Read the answer to `ask_state`."""
        ...

    def is_settled_by(self, answer: Answer, text: str) -> bool:
        """Tell whether the agent has dealt with a prompt by its answer alone: a command that becomes no message."""
        ...

    def cancel_dialog(self, dialog_id: str) -> Command:
        """Answer a dialog as a person who closes it."""
        ...
