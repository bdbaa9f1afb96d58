"""What people ask of a session's agent: prompts and aborts, and when the agent is handed them.

Works on the checkpoint and the mapper of one session, and returns the frames that tell of it; the session commits them.
"""

from compass.v1 import compass_pb2 as pb
from compass_service.frames import Draft
from compass_service.mapper import Mapper
from compass_service.problems import (
    InboxFullError,
    PromptClosedError,
    PromptConflictError,
    PromptNotFoundError,
)
from compass_service.session import inbox as inboxes
from compass_service.session.checkpoint import Checkpoint
from compass_service.session.control import Control
from compass_service.session.inbox import Prompt, Submission

_RESTING_STATES = frozenset({pb.AGENT_SESSION_STATE_READY, pb.AGENT_SESSION_STATE_ERRORED})
_RESTING_PHASES = frozenset({pb.SESSION_PHASE_UNSPECIFIED, pb.SESSION_PHASE_IDLE})


class Prompts:
    """The inbox and the control sequence of one session, as the verbs of the session use them."""

    def __init__(self, session_id: str, checkpoint: Checkpoint, mapper: Mapper, texts: dict[int, str]) -> None:
        self._session_id = session_id
        self._checkpoint = checkpoint
        self._mapper = mapper
        self._texts = texts
        """Texts of the open prompts. Kept by the session, since a restored checkpoint needs them too."""

    # -- asked by people --------------------------------------------------------------------------------------------

    def submit(self, submission: Submission, *, first_seq: int, now_ms: int) -> tuple[Prompt, list[Draft]]:
        """Put a prompt into the queue; a request that was made before is answered with its prompt and no frame.

        Raises PromptConflictError for the same request id with another text, InboxFullError.
        """
        inbox = self._checkpoint.inbox
        known = inboxes.find_request(inbox, submission.request_id)
        if known is not None:
            if known.digest != inboxes.digest_of(submission.text):
                raise PromptConflictError(self._session_id, prompt_id=known.prompt_id)
            return known, []
        if not inboxes.has_room(inbox, len(submission.text.encode())):
            raise InboxFullError(self._session_id, limit=inboxes.MAX_OPEN_PROMPTS, max_bytes=inboxes.MAX_OPEN_BYTES)
        prompt = inboxes.add(inbox, submission)
        prompt.text_seq = first_seq
        self._texts[prompt.number] = submission.text
        return prompt, self._tell(prompt, now_ms, text=submission.text)

    def cancel(self, prompt_id: str, *, now_ms: int) -> list[Draft]:
        """Cancel a prompt that the agent was not handed. One that is cancelled already stays so.

        Raises PromptNotFoundError, PromptClosedError for one that is past cancelling.
        """
        prompt = inboxes.find_any(self._checkpoint.inbox, prompt_id)
        if prompt is None:
            raise PromptNotFoundError(self._session_id, prompt_id=prompt_id)
        if prompt.state == inboxes.CANCELLED:
            return []
        if not prompt.is_waiting:
            state = pb.SessionPromptState.Name(pb.SessionPromptState.ValueType(prompt.state))
            raise PromptClosedError(self._session_id, prompt_id=prompt_id, state=state)
        return self._close(prompt, inboxes.CANCELLED, now_ms)

    def abort(self) -> None:
        """Ask for an abort of the running turn. Asked of a resting agent it means nothing."""
        if self.is_resting and not inboxes.claimed(self._checkpoint.inbox):
            return
        controls = self._checkpoint.controls
        self._mapper.ask_abort()
        controls.add()
        # Neither a compaction nor an agent that was only just handed its prompt heeds an abort: their turn must.
        controls.abort_again = self.is_resting or self._mapper.state.activity.phase == pb.SESSION_PHASE_COMPACTING

    # -- shown by the agent -----------------------------------------------------------------------------------------

    def recorded(self, prompt_id: str, *, now_ms: int) -> list[Draft]:
        """Note that the agent's stream shows a prompt as a user message: the truth, whatever was thought before."""
        prompt = inboxes.find(self._checkpoint.inbox, prompt_id)
        return [] if prompt is None else self._close(prompt, inboxes.RECORDED, now_ms)

    def returned(self, prompt_id: str, *, control_seq: int, first_seq: int, now_ms: int) -> list[Draft]:
        """Put a prompt that the agent cannot act on any more back to its place at the head of the queue.

        `control_seq` says which handing over ended, 0 the latest: a late return says nothing about a newer one.
        """
        prompt = inboxes.find(self._checkpoint.inbox, prompt_id)
        if prompt is None or prompt.state != inboxes.CLAIMED or control_seq not in {0, prompt.control_seq}:
            return []
        self._checkpoint.controls.drop_prompt(prompt.number)
        return self._return(prompt, first_seq=first_seq, now_ms=now_ms)

    def _return(self, prompt: Prompt, *, first_seq: int, now_ms: int) -> list[Draft]:
        prompt.state = inboxes.RETURNED
        prompt.is_lost = False
        prompt.text_seq = first_seq
        return self._tell(prompt, now_ms, text=self._texts[prompt.number])

    def holder_lost(self, *, first_seq: int, now_ms: int) -> list[Draft]:
        """Return what a process was handed that stays away. It may live: then `holder_back` takes it back."""
        drafts: list[Draft] = []
        for prompt in inboxes.claimed(self._checkpoint.inbox):
            # Its control item stays: whether the process ever read it is not known, and it tells when it is back.
            drafts += self._return(prompt, first_seq=first_seq + len(drafts), now_ms=now_ms)
            prompt.is_lost = True
        return drafts

    def holder_back(self, holder: tuple[str, int], *, now_ms: int) -> list[Draft]:
        """Claim again what the process that is back was handed before: to offer it again could run it twice."""
        drafts: list[Draft] = []
        for prompt in self._checkpoint.inbox.open:
            if prompt.is_lost and prompt.holder == holder and prompt.state == inboxes.RETURNED:
                prompt.state = inboxes.CLAIMED
                drafts += self._tell(prompt, now_ms)
        return drafts

    def process_ended(self, *, first_seq: int, now_ms: int) -> list[Draft]:
        """Return everything that a process was handed and will never show."""
        self._checkpoint.controls.clear()
        drafts: list[Draft] = []
        for prompt in inboxes.claimed(self._checkpoint.inbox):
            drafts += self._return(prompt, first_seq=first_seq + len(drafts), now_ms=now_ms)
        return drafts

    # -- handed to the agent ----------------------------------------------------------------------------------------

    @property
    def is_resting(self) -> bool:
        """Whether the agent waits for a prompt, as far as its stream tells."""
        state = self._mapper.state
        return (
            state.lifecycle in _RESTING_STATES
            and state.activity.phase in _RESTING_PHASES
            and state.message is None
            and not state.num_compactions
        )

    def offer(self, holder: tuple[str, int], *, now_ms: int) -> list[Draft]:
        """Hand over what the agent may have now, and repeat an abort that a compaction swallowed."""
        controls = self._checkpoint.controls
        if self.is_resting and not inboxes.claimed(self._checkpoint.inbox):
            controls.drop_aborts()
        elif controls.abort_again and self._is_past_compaction():
            controls.abort_again = False
            controls.add()
        drafts: list[Draft] = []
        while (prompt := inboxes.next_offer(self._checkpoint.inbox, is_resting=self.is_resting)) is not None:
            prompt.state = inboxes.CLAIMED
            prompt.holder, prompt.is_lost = holder, False
            prompt.control_seq = controls.add(prompt.number).control_seq
            drafts += self._tell(prompt, now_ms)
        return drafts

    def action(self, control: Control) -> tuple[Prompt, str] | None:
        """Return the prompt that a control item hands over, with its text. None for an abort, or if it is settled."""
        for prompt in self._checkpoint.inbox.open:
            if prompt.number == control.prompt_number:
                return prompt, self._texts[prompt.number]
        return None

    def listed(self) -> list[pb.SessionPrompt]:
        """Report the open prompts in the order in which they will be offered."""
        return [_message(prompt, self._texts[prompt.number]) for prompt in self._checkpoint.inbox.open]

    # -- inside -----------------------------------------------------------------------------------------------------

    def _is_past_compaction(self) -> bool:
        state = self._mapper.state
        return not state.num_compactions and state.lifecycle == pb.AGENT_SESSION_STATE_WORKING

    def _close(self, prompt: Prompt, state: pb.SessionPromptState.ValueType, now_ms: int) -> list[Draft]:
        inboxes.close(self._checkpoint.inbox, prompt, state)
        self._checkpoint.controls.drop_prompt(prompt.number)
        self._texts.pop(prompt.number, None)
        return self._tell(prompt, now_ms)

    def _tell(self, prompt: Prompt, now_ms: int, *, text: str = "") -> list[Draft]:
        return self._mapper.prompt(_message(prompt, text), now_ms=now_ms)


def _message(prompt: Prompt, text: str) -> pb.SessionPrompt:
    state = pb.SessionPromptState.ValueType(prompt.state)
    return pb.SessionPrompt(prompt_id=prompt.prompt_id, state=state, text=text, author=prompt.author)
