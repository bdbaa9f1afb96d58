"""What the mapper remembers between two inner events: a small value that is saved with every commit.

Everything here is bounded. No text is kept whole, but for the edits of open tool calls, which have a budget.
"""

import msgspec

from compass.v1 import compass_pb2 as pb

MAX_UNMAPPED_TYPES = 64
MAX_OPEN_TOOLS = 64
MAX_OPEN_COMPACTIONS = 64
MAX_BLOCKS = 256
MAX_RUN_EVENT_DIGESTS = 1_024
OTHER_TYPES = "other"


class Activity(msgspec.Struct, array_like=True):
    """What the agent is doing, as `SessionActivity` has it."""

    phase: int = 0
    started_at_unix_ms: int = 0
    detail: str = ""
    attempt: int = 0
    max_attempts: int = 0
    delay_ms: int = 0
    stalled: bool = False
    supersedes_event_id: str = ""


class Counts(msgspec.Struct, array_like=True):
    """What was counted since the session began."""

    errors: int = 0
    aborts: int = 0
    dropped_producer_overflow: int = 0
    unmapped: dict[str, int] = msgspec.field(default_factory=dict)

    def count_unmapped(self, type_name: str) -> bool:
        """Count one event without a mapping. Tell whether it is the first of its type."""
        known = type_name in self.unmapped
        if not known and len(self.unmapped) >= MAX_UNMAPPED_TYPES - 1:
            type_name = OTHER_TYPES
            known = type_name in self.unmapped
        self.unmapped[type_name] = self.unmapped.get(type_name, 0) + 1
        return not known


class Usage(msgspec.Struct, array_like=True):
    """Token and cost totals over all messages."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_microdollars: int = 0


class Streamed(msgspec.Struct, array_like=True):
    """What was streamed of one kind of text, as a length and a checksum: enough to recognise it as a prefix later."""

    num_bytes: int = 0
    crc: int = 0
    half: int = 0
    """A high surrogate at the end of the last delta that waits for its other half. 0 when none does."""
    blocks: list[int] = msgspec.field(default_factory=list)
    """Content indexes that had a delta, or whose whole content was given."""


class OpenMessage(msgspec.Struct, array_like=True):
    """The assistant message that has begun and not ended."""

    message_id: str
    has_chunk: bool = False
    """Whether anything of it was shown: a text or thinking frame, or a tool call seen."""
    was_thinned: bool = False
    """Whether the producer dropped events since it began, so that its end may hold text that never came."""
    text: Streamed = msgspec.field(default_factory=Streamed)
    thinking: Streamed = msgspec.field(default_factory=Streamed)


class Edit(msgspec.Struct, array_like=True):
    """One file change, as it is asked for or as it was done."""

    path: str
    old_text: str | None
    new_text: str


class OpenTool(msgspec.Struct, array_like=True):
    """A tool call that has begun and not ended."""

    title: str
    output_chars: int = 0
    """Length of the output that was last shown."""
    edits: list[Edit] = msgspec.field(default_factory=list)
    """What its arguments ask to change. Kept because the end of a call does not repeat its arguments."""
    edits_original_bytes: int = 0
    """Size of the edits before they were cut to the budget. 0 when they were not."""


class CompactionFailure(msgspec.Struct, array_like=True):
    """A compaction that failed or was aborted, and whose turn has not gone on since."""

    message: str
    was_aborted: bool


class MapperState(msgspec.Struct):
    """Everything that a mapper knows. Two mappers with equal states map alike."""

    lifecycle: int = 0
    """AgentSessionState."""
    lifecycle_before: int = 0
    """The state that DISCONNECTED replaced."""
    activity: Activity = msgspec.field(default_factory=Activity)
    under: Activity | None = None
    """What COMPACTING or AWAITING_INPUT hides and gives way to again."""
    counts: Counts = msgspec.field(default_factory=Counts)
    usage: Usage = msgspec.field(default_factory=Usage)
    num_events: int = 0
    num_messages: int = 0
    message: OpenMessage | None = None
    message_ended: bool = False
    """Whether the last assistant message has ended and nothing has opened the way for another."""
    failed: bool = False
    """Whether a failure or an abort was surfaced since the last chance for one opened."""
    failure_event_id: str = ""
    """The failure that an automatic retry would take back. Empty when there is none."""
    provider: str = ""
    model: str = ""
    retry_open: bool = False
    retry_failed: bool = False
    """Whether something was surfaced since the last auto_retry_start."""
    num_compactions: int = 0
    compaction_failure: CompactionFailure | None = None
    abort_seen: bool = False
    """Whether the agent's own protocol shows that an abort was asked for in this run."""
    abort_asked: bool = False
    """Whether a person asked for an abort through this service."""
    last_event_ms: int = 0
    """When the last inner event came, by the service's clock."""
    tools: dict[str, OpenTool] = msgspec.field(default_factory=dict)
    cut_off_tools: list[str] = msgspec.field(default_factory=list)
    """The last calls that were closed as FAILED because their turn ended."""
    run_event_digests: list[bytes] = msgspec.field(default_factory=list)


def activity_message(state: MapperState) -> pb.SessionActivity:
    """Report the activity of a session as the wire has it."""
    activity = state.activity
    return pb.SessionActivity(
        phase=pb.SessionPhase.ValueType(activity.phase),
        started_at_unix_ms=activity.started_at_unix_ms,
        detail=activity.detail,
        attempt=activity.attempt,
        max_attempts=activity.max_attempts,
        delay_ms=activity.delay_ms,
        stalled=activity.stalled,
        supersedes_event_id=activity.supersedes_event_id,
    )
