"""What an agent must do, as a sequence that survives: prompts handed over, aborts asked for. Pure.

An item stays until the agent says it has applied it, or until what it asks for has shown in the agent's own stream.
"""

import msgspec


class Control(msgspec.Struct, array_like=True):
    """One thing that the agent must do."""

    control_seq: int
    prompt_number: int = 0
    """The prompt to take. 0 = abort the running turn."""

    @property
    def is_abort(self) -> bool:
        """Whether it asks for an abort."""
        return self.prompt_number == 0


class ControlSequence(msgspec.Struct, array_like=True):
    """The items that the agent may not have applied yet, in order."""

    items: list[Control] = msgspec.field(default_factory=list)
    last_seq: int = 0
    abort_again: bool = False
    """Whether an abort was asked for during a compaction, which the agent ignores: the turn behind it must get it."""

    def add(self, prompt_number: int = 0) -> Control:
        """Append an item."""
        self.last_seq += 1
        item = Control(self.last_seq, prompt_number)
        self.items.append(item)
        return item

    def after(self, control_seq: int) -> list[Control]:
        """Return what comes after a place in the sequence."""
        return [item for item in self.items if item.control_seq > control_seq]

    def applied(self, control_seq: int) -> None:
        """Forget what the agent says it has applied."""
        self.items = self.after(control_seq)

    def drop_prompt(self, prompt_number: int) -> None:
        """Forget the handing over of a prompt."""
        self.items = [item for item in self.items if item.prompt_number != prompt_number or item.is_abort]

    def drop_aborts(self) -> None:
        """Forget aborts: the turn they were meant for is over."""
        self.items = [item for item in self.items if not item.is_abort]
        self.abort_again = False

    def clear(self) -> None:
        """Forget everything: the process it was meant for is gone."""
        self.items = []
        self.abort_again = False
