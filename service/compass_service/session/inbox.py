"""The prompts of one session: submitted, offered one at a time, recorded, returned or cancelled. Pure.

A prompt leaves the inbox only when the agent's own stream shows it as a user message, or when a person cancels it. What
is handed to the agent stays claimed, and is never offered a second time, until the agent cannot act on it any more.
"""

import hashlib
from dataclasses import dataclass

import msgspec

from compass.v1 import compass_pb2 as pb

MAX_OPEN_PROMPTS = 64
MAX_OPEN_BYTES = 1024 * 1024
MAX_PROMPT_BYTES = 128 * 1024
MAX_REMEMBERED = 128
"""Closed prompts whose request ids are still recognised. Policy: the oldest is forgotten."""

QUEUED = pb.SESSION_PROMPT_STATE_QUEUED
CLAIMED = pb.SESSION_PROMPT_STATE_CLAIMED
RECORDED = pb.SESSION_PROMPT_STATE_RECORDED
RETURNED = pb.SESSION_PROMPT_STATE_RETURNED
CANCELLED = pb.SESSION_PROMPT_STATE_CANCELLED


class Prompt(msgspec.Struct, array_like=True):
    """One prompt, without its text: that stands in the log, at text_seq."""

    number: int
    state: int
    num_bytes: int
    digest: bytes
    """Of its text: tells the same request from another with the same id."""
    request_id: str = ""
    author: str = ""
    steer: bool = False
    text_seq: int = 0
    """Seq of the frame that carries its text."""
    holder: tuple[str, int] | None = None
    """Producer id and epoch of the process that was handed it last."""
    is_lost: bool = False
    """Whether it was returned because its holder stayed away. If the holder lives after all, it has the prompt."""
    control_seq: int = 0
    """Where in the control sequence it was handed over last."""

    @property
    def prompt_id(self) -> str:
        """The id that everybody outside knows it by."""
        return f"p{self.number}"

    @property
    def is_waiting(self) -> bool:
        """Whether it may be offered, or cancelled."""
        return self.state in {QUEUED, RETURNED}


class Inbox(msgspec.Struct, array_like=True):
    """All open prompts in the order in which they are offered, and the last ones that were closed."""

    open: list[Prompt] = msgspec.field(default_factory=list)
    closed: list[Prompt] = msgspec.field(default_factory=list)
    num_prompts: int = 0


@dataclass(frozen=True, slots=True)
class Submission:
    """What a person asks to be put into the inbox."""

    text: str
    request_id: str = ""
    author: str = ""
    steer: bool = False


def digest_of(text: str) -> bytes:
    """Digest a prompt's text."""
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def find(inbox: Inbox, prompt_id: str) -> Prompt | None:
    """Return an open prompt."""
    return next((prompt for prompt in inbox.open if prompt.prompt_id == prompt_id), None)


def find_any(inbox: Inbox, prompt_id: str) -> Prompt | None:
    """Return a prompt that is open, or was closed not long ago."""
    return next((prompt for prompt in (*inbox.open, *inbox.closed) if prompt.prompt_id == prompt_id), None)


def find_request(inbox: Inbox, request_id: str) -> Prompt | None:
    """Return the prompt that an earlier request with this id made."""
    if not request_id:
        return None
    return next((prompt for prompt in (*inbox.open, *inbox.closed) if prompt.request_id == request_id), None)


def has_room(inbox: Inbox, num_bytes: int) -> bool:
    """Tell whether one more prompt of this size fits the bounds."""
    total = sum(prompt.num_bytes for prompt in inbox.open)
    return len(inbox.open) < MAX_OPEN_PROMPTS and total + num_bytes <= MAX_OPEN_BYTES


def add(inbox: Inbox, submission: Submission) -> Prompt:
    """Add a prompt at the end of the queue."""
    inbox.num_prompts += 1
    prompt = Prompt(
        inbox.num_prompts,
        QUEUED,
        len(submission.text.encode()),
        digest_of(submission.text),
        request_id=submission.request_id,
        author=submission.author,
        steer=submission.steer,
    )
    inbox.open.append(prompt)
    return prompt


def next_offer(inbox: Inbox, *, is_resting: bool) -> Prompt | None:
    """Return the prompt to hand over now: the head of the queue to a resting agent, only a steer to a working one.

    While one is claimed nothing else is offered to a resting agent: its turn has not shown yet. A claimed steer holds
    nothing up: an agent that was aborted before it took the steer keeps it until its next turn.
    """
    waiting = [prompt for prompt in inbox.open if prompt.is_waiting]
    if not is_resting:
        return next((prompt for prompt in waiting if prompt.steer), None)
    if any(prompt.state == CLAIMED and not prompt.steer for prompt in inbox.open):
        return None
    return waiting[0] if waiting else None


def close(inbox: Inbox, prompt: Prompt, state: pb.SessionPromptState.ValueType) -> None:
    """Take a prompt out of the queue: RECORDED or CANCELLED, for good."""
    inbox.open.remove(prompt)
    prompt.state = state
    if prompt.request_id:
        inbox.closed.append(prompt)
        del inbox.closed[:-MAX_REMEMBERED]


def claimed(inbox: Inbox) -> list[Prompt]:
    """Return the prompts that the agent was handed and has not shown."""
    return [prompt for prompt in inbox.open if prompt.state == CLAIMED]


def first_text_seq(inbox: Inbox) -> int | None:
    """Return the oldest seq whose frame carries the text of an open prompt."""
    return min((prompt.text_seq for prompt in inbox.open), default=None)
