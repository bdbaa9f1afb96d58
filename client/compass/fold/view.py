"""The values that a fold shows: plain, frozen, compared by value. They say what is known, never how it was learned."""

from dataclasses import dataclass
from enum import Enum

from compass.failures.categories import Category
from compass.gap import Gap
from compass.v1 import compass_pb2 as pb
from compass.v1 import run_event_pb2


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and cost of one message, or of all of them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_microdollars: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.cost_microdollars + other.cost_microdollars,
        )


@dataclass(frozen=True, slots=True)
class FileDiff:
    """One file change of a tool call."""

    path: str
    old_text: str | None
    """None when the file was created."""
    new_text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call as it is now."""

    tool_call_id: str
    title: str
    """Empty when the frame that began the call is missing."""
    status: pb.AgentToolCallStatus.ValueType = pb.AGENT_TOOL_CALL_STATUS_UNSPECIFIED
    output: str = ""
    diffs: tuple[FileDiff, ...] = ()
    original_bytes: int = 0
    """Size of the output before it was cut, 0 when it was not."""
    first_seq: int = 0
    last_seq: int = 0


@dataclass(frozen=True, slots=True)
class SurfacedError:
    """One session_error: a failure or an abort, by `error.kind`."""

    seq: int
    event_id: str
    at_unix_ms: int
    error: pb.SessionError

    @property
    def is_abort(self) -> bool:
        """Whether it is a deliberate stop, which is never shown as an error."""
        return self.error.kind == pb.SESSION_ERROR_KIND_ABORTED

    @property
    def category(self) -> Category | None:
        """What kind of failure it is, None for an abort and for a category that this version does not know."""
        try:
            return Category(self.error.category)
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class Message:
    """One user or assistant message."""

    message_id: str
    role: pb.TranscriptRole.ValueType = pb.TRANSCRIPT_ROLE_UNSPECIFIED
    text: str = ""
    """What was said. Never holds failure text."""
    thinking: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    incomplete: bool | None = None
    """None while it was never judged, True when it was cut off, False when it is whole."""
    stop_reason: pb.SessionStopReason.ValueType = pb.SESSION_STOP_REASON_UNSPECIFIED
    usage: Usage | None = None
    errors: tuple[SurfacedError, ...] = ()
    """What failed or was aborted here: failures that no retry took back, and aborts."""
    superseded: tuple["Message", ...] = ()
    """Earlier attempts at this answer, taken back by a retry."""
    has_gap: bool = False
    """Whether frames are missing that may belong to it. Its text is then not to be taken for whole."""
    prompt_id: str = ""
    """Inbox prompt that a user message came from."""
    steering: bool = False
    """Whether a user message was injected into a running turn."""
    at_unix_ms: int = 0
    """When its first frame was mapped."""
    first_seq: int = 0
    last_seq: int = 0


@dataclass(frozen=True, slots=True)
class Retry:
    """The announcement of another attempt."""

    seq: int
    attempt: int
    """Number of the coming attempt, from 1."""
    max_attempts: int
    """0 when unknown."""
    delay_ms: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """One failed attempt that a retry took back."""

    error: SurfacedError
    retry: Retry
    message: Message | None
    """The partial answer that was taken back with it, None when none had begun."""


class CardOutcome(Enum):
    """What became of a failed call."""

    FAILED = "failed"
    """Its last failure stands."""
    RETRYING = "retrying"
    """Its last failure was taken back; the attempt that follows has no end yet."""
    RECOVERED = "recovered"
    """A later attempt brought a whole message."""
    ABORTED = "aborted"
    """The retries were aborted."""
    ABANDONED = "abandoned"
    """A retry was announced and the session went on, or stopped, without an end of it."""


@dataclass(frozen=True, slots=True)
class ErrorCard:
    """One failed call, however many attempts it took."""

    error: SurfacedError
    """Its newest failure."""
    attempts: tuple[Attempt, ...]
    """Failures that a retry took back, oldest first. Holds `error` too unless the outcome is FAILED."""
    outcome: CardOutcome


@dataclass(frozen=True, slots=True)
class PlanEntry:
    """One entry of the plan."""

    content: str
    status: pb.AgentPlanEntryStatus.ValueType = pb.AGENT_PLAN_ENTRY_STATUS_UNSPECIFIED


@dataclass(frozen=True, slots=True)
class Notice:
    """A free-standing advisory line."""

    seq: int
    text: str
    link: str | None


@dataclass(frozen=True, slots=True)
class Injection:
    """A message that was injected into the running session."""

    seq: int
    op_kind: pb.SessionInjectionKind.ValueType = pb.SESSION_INJECTION_KIND_UNSPECIFIED
    message_id: str = ""
    from_handle: str = ""
    traceparent: str = ""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt of the inbox, where it is now."""

    prompt_id: str
    state: pb.SessionPromptState.ValueType = pb.SESSION_PROMPT_STATE_UNSPECIFIED
    text: str = ""
    author: str = ""
    first_seq: int = 0


@dataclass(frozen=True, slots=True)
class RunEvent:
    """Something that a workflow engine reported."""

    seq: int
    event: run_event_pb2.SessionRunEvent


@dataclass(frozen=True, slots=True)
class Activity:
    """What the agent is doing."""

    phase: pb.SessionPhase.ValueType = pb.SESSION_PHASE_UNSPECIFIED
    started_at_unix_ms: int = 0
    detail: str = ""
    attempt: int = 0
    max_attempts: int = 0
    delay_ms: int = 0
    stalled: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """Everything that a pane shows of one session."""

    session_id: str = ""
    state: pb.AgentSessionState.ValueType = pb.AGENT_SESSION_STATE_UNSPECIFIED
    activity: Activity | None = None
    messages: tuple[Message, ...] = ()
    """In order. Attempts that a retry took back are not among them."""
    tool_calls: tuple[ToolCall, ...] = ()
    """All of them, in order."""
    plan: tuple[PlanEntry, ...] = ()
    errors: tuple[ErrorCard, ...] = ()
    """One card for each failed call. An abort is never among them."""
    aborts: tuple[SurfacedError, ...] = ()
    errors_before_messages: tuple[SurfacedError, ...] = ()
    """Failures that stand, and aborts, from before the first message: they lie beside no message."""
    notices: tuple[Notice, ...] = ()
    injections: tuple[Injection, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    run_events: tuple[RunEvent, ...] = ()
    gaps: tuple[Gap, ...] = ()
    """What is missing still, in order."""
    usage: Usage = Usage()
    """Totals over all messages, attempts that were taken back included: they cost as much."""
    head_seq: int = 0
    """Newest seq that was seen or told as missing."""
