"""What the agent is handed and when, and which of its user messages came from which prompt. No I/O, no clock.

    handed over ──▶ waiting ──(the agent can take it)──▶ fed ──(its user message)──▶ recorded
                                                          └──(refused, or idle without it)──▶ given back

Matching is by order: agents expand templates, so the text that is shown need not be the text that was fed.
"""

from collections.abc import Callable
from dataclasses import dataclass

from compass.agent import Prompt
from compass.bridge.dialects import AgentState, Answer, Command, Dialect, Inner

IDLE_SIGHTINGS = 2
"""How often an agent must say that it is idle before a prompt that it accepted counts as dropped: what it has to say of
that prompt may be on its way when it answers first."""


ASK_AGAIN_TICKS = 6
"""After how many ticks without an answer the agent is asked again: what else it writes may have garbled the first."""


@dataclass(slots=True)
class _Fed:
    prompt: Prompt
    command_id: str
    is_accepted: bool = False
    idle_sightings: int = 0


class Feeding:
    """The prompts between the service and the agent's standard input.

    Bound: what the service hands over, one prompt and the steers of one inbox. `tick` must be called now and then while
    `is_due`.
    """

    def __init__(
        self,
        dialect: Dialect,
        *,
        write: Callable[[Command], None],
        settled: Callable[[Prompt], None],
        give_back: Callable[[Prompt], None],
    ) -> None:
        self._dialect = dialect
        self._write = write
        self._settled = settled
        self._give_back = give_back
        self._waiting: list[Prompt] = []
        self._fed: list[_Fed] = []
        self._asked_id: str | None = None
        self._num_unanswered_ticks = 0
        self._num_commands = 0
        self._is_retrying = False
        self._num_compactions = 0

    @property
    def is_due(self) -> bool:
        """Whether there is a prompt that something must become of."""
        return bool(self._waiting or self._fed)

    def hand(self, prompt: Prompt) -> None:
        """Take a prompt for the agent."""
        self._waiting.append(prompt)
        self.tick()

    def abort(self) -> None:
        """Forward an abort. Whether there is a turn to abort, and when to ask again, the service knows."""
        self._write(self._dialect.abort(self._next_id()))

    def tick(self) -> None:
        """Ask the agent how it stands, if anything depends on it and no answer is under way, or none has come."""
        if not self.is_due:
            return
        self._num_unanswered_ticks += 1
        if self._asked_id is None:
            self._asked_id = self._next_id()
        elif self._num_unanswered_ticks <= ASK_AGAIN_TICKS:
            return
        # Asked again by the same id: whichever answer comes first is as good.
        self._num_unanswered_ticks = 0
        self._write(self._dialect.ask_state(self._asked_id))

    def heard(self, event: Inner) -> Prompt | None:
        """Follow an inner event. Returns the prompt that it shows as a user message."""
        match event.kind:
            case "auto_retry_start":
                self._is_retrying = True
            case "auto_retry_end" | "agent_start":
                self._is_retrying = False
            case "compaction_start" | "auto_compaction_start":
                self._num_compactions += 1
            case "compaction_end" | "auto_compaction_end":
                self._num_compactions = max(0, self._num_compactions - 1)
        for fed in self._fed:
            fed.idle_sightings = 0
        return self._match(event.text) if event.is_user else None

    def answered(self, answer: Answer) -> None:
        """Follow the answer to a command."""
        if answer.command_id == self._asked_id:
            self._asked_id = None
            self._seen(self._dialect.state(answer))
            return
        fed = next((fed for fed in self._fed if fed.command_id == answer.command_id), None)
        if fed is None:
            return
        if not answer.succeeded:
            self._fed.remove(fed)
            self._give_back(fed.prompt)
        elif self._dialect.is_settled_by(answer, fed.prompt.text):
            self._fed.remove(fed)
            self._settled(fed.prompt)
        else:
            fed.is_accepted = True

    def _match(self, text: str) -> Prompt | None:
        """Take the oldest prompt that was fed; a later one only if it says exactly this and the oldest does not."""
        if not self._fed:
            return None
        fed = next((fed for fed in self._fed if fed.prompt.text == text), self._fed[0])
        self._fed.remove(fed)
        return fed.prompt

    def _seen(self, state: AgentState) -> None:
        """Act on what the agent says of itself."""
        if state.is_compacting or self._num_compactions or self._is_retrying:
            return
        if state.is_idle and not state.num_pending:
            self._find_dropped()
        for prompt in list(self._waiting):
            if prompt.steer or (state.is_idle and not self._has_turn_coming):
                self._feed(prompt)

    @property
    def _has_turn_coming(self) -> bool:
        return any(not fed.prompt.steer or not fed.is_accepted for fed in self._fed)

    def _find_dropped(self) -> None:
        """Give back what the agent accepted and will never show: it is idle, and was so before."""
        for fed in [fed for fed in self._fed if fed.is_accepted]:
            fed.idle_sightings += 1
            if fed.idle_sightings >= IDLE_SIGHTINGS:
                self._fed.remove(fed)
                self._give_back(fed.prompt)

    def _feed(self, prompt: Prompt) -> None:
        self._waiting.remove(prompt)
        fed = _Fed(prompt, self._next_id())
        # A steer that is pending in an idle agent comes behind the prompt that wakes it.
        self._fed.insert(len(self._fed) if prompt.steer else 0, fed)
        self._write(self._dialect.prompt(fed.command_id, prompt.text, steer=prompt.steer))

    def _next_id(self) -> str:
        self._num_commands += 1
        return f"compass-{self._num_commands}"
