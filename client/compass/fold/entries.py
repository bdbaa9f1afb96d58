"""What a fold gathers of one message, tool call or prompt. Every write carries its seq: order of arrival is moot."""

from typing import NamedTuple, Self

from compass.fold.ranges import SeqRanges
from compass.fold.registers import ChunkedText, Latest
from compass.fold.view import FileDiff, Message, Prompt, SurfacedError, ToolCall, Usage
from compass.v1 import compass_pb2 as pb


class _Entry:
    """The extent of something that several frames make up, and its frozen form while nothing changed."""

    __slots__ = ("at_unix_ms", "first_seq", "last_seq")

    def __init__(self, seq: int, at_unix_ms: int) -> None:
        self.first_seq = self.last_seq = seq
        self.at_unix_ms = at_unix_ms

    def _extend(self, seq: int, at_unix_ms: int) -> None:
        if seq > self.last_seq:
            self.last_seq = seq
        elif seq < self.first_seq:
            self.first_seq = seq
            self.at_unix_ms = at_unix_ms


class End(NamedTuple):
    """How an assistant message ended."""

    incomplete: bool | None
    stop_reason: pb.SessionStopReason.ValueType
    usage: Usage | None

    @classmethod
    def of(cls, end: pb.SessionMessageEnd) -> Self:
        """Read the frame's event."""
        return cls(_INCOMPLETE.get(end.outcome), end.stop_reason, _usage_of(end))


_INCOMPLETE = {pb.SESSION_MESSAGE_OUTCOME_COMPLETE: False, pb.SESSION_MESSAGE_OUTCOME_INCOMPLETE: True}
_OPEN = End(None, pb.SESSION_STOP_REASON_UNSPECIFIED, None)


def _usage_of(end: pb.SessionMessageEnd) -> Usage | None:
    if not end.HasField("usage"):
        return None
    usage = end.usage
    return Usage(
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.cost_microdollars,
    )


class MessageEntry(_Entry):
    """A message."""

    __slots__ = ("_beside", "_frozen", "_text", "_thinking", "end", "message_id", "prompt_id", "role", "steering")

    def __init__(self, message_id: str, role: pb.TranscriptRole.ValueType, seq: int, at_unix_ms: int) -> None:
        super().__init__(seq, at_unix_ms)
        self.message_id = message_id
        self.role = role
        self.prompt_id = ""
        self.steering = False
        self.end: Latest[End] = Latest(_OPEN)
        self._text = ChunkedText()
        self._thinking = ChunkedText()
        self._frozen: Message | None = None
        self._beside: tuple[object, ...] = ()

    @property
    def is_assistant(self) -> bool:
        """Whether the assistant wrote it."""
        return self.role == pb.TRANSCRIPT_ROLE_ASSISTANT

    @property
    def has_ended(self) -> bool:
        """Whether its end is known."""
        return self.end.value is not _OPEN

    def touch(self, seq: int, at_unix_ms: int) -> None:
        """Note a frame of this message."""
        self._frozen = None
        self._extend(seq, at_unix_ms)

    def add_text(self, seq: int, text: str) -> None:
        """Add a piece of what it says."""
        self._text.add(seq, text)

    def add_thinking(self, seq: int, text: str) -> None:
        """Add a piece of its reasoning."""
        self._thinking.add(seq, text)

    def freeze(
        self,
        known: SeqRanges,
        *,
        tool_calls: tuple[ToolCall, ...],
        errors: tuple[SurfacedError, ...],
        superseded: tuple[Message, ...],
        has_gap: bool,
    ) -> Message:
        """Return the message as it is now, with what lies beside it."""
        beside = (tool_calls, errors, superseded, has_gap)
        if self._frozen is None or self._beside != beside:
            self._beside = beside
            end = self.end.value
            self._frozen = Message(
                message_id=self.message_id,
                role=self.role,
                text=self._text.join(known),
                thinking=self._thinking.join(known),
                tool_calls=tool_calls,
                incomplete=end.incomplete if self.is_assistant else False,  # a user message is recorded whole
                stop_reason=end.stop_reason,
                usage=end.usage,
                errors=errors,
                superseded=superseded,
                has_gap=has_gap,
                prompt_id=self.prompt_id,
                steering=self.steering,
                at_unix_ms=self.at_unix_ms,
                first_seq=self.first_seq,
                last_seq=self.last_seq,
            )
        return self._frozen


class ToolEntry(_Entry):
    """A tool call. An update without output or diffs leaves those of the update before."""

    __slots__ = ("_diffs", "_frozen", "_output", "_status", "_title", "tool_call_id")

    def __init__(self, tool_call_id: str, seq: int, at_unix_ms: int) -> None:
        super().__init__(seq, at_unix_ms)
        self.tool_call_id = tool_call_id
        self._title = Latest("")
        self._status: Latest[pb.AgentToolCallStatus.ValueType] = Latest(pb.AGENT_TOOL_CALL_STATUS_UNSPECIFIED)
        self._output = Latest(("", 0))
        self._diffs: Latest[tuple[FileDiff, ...]] = Latest(())
        self._frozen: ToolCall | None = None

    def begin(self, seq: int, at_unix_ms: int, call: pb.SessionToolCall) -> None:
        """Take the frame that began it."""
        self._frozen = None
        self._extend(seq, at_unix_ms)
        self._title.put(seq, call.title)
        self._status.put(seq, call.status)

    def update(self, seq: int, at_unix_ms: int, update: pb.SessionToolCallUpdate, original_bytes: int) -> None:
        """Take one of its updates."""
        self._frozen = None
        self._extend(seq, at_unix_ms)
        self._status.put(seq, update.status)
        if update.output:
            self._output.put(seq, (update.output, original_bytes))
        if update.diffs:
            self._diffs.put(seq, tuple(_diff_of(diff) for diff in update.diffs))

    def freeze(self) -> ToolCall:
        """Return the call as it is now."""
        if self._frozen is None:
            output, original_bytes = self._output.value
            self._frozen = ToolCall(
                tool_call_id=self.tool_call_id,
                title=self._title.value,
                status=self._status.value,
                output=output,
                diffs=self._diffs.value,
                original_bytes=original_bytes,
                first_seq=self.first_seq,
                last_seq=self.last_seq,
            )
        return self._frozen


def _diff_of(diff: pb.SessionFileDiff) -> FileDiff:
    return FileDiff(diff.path, diff.old_text if diff.HasField("old_text") else None, diff.new_text)


class PromptEntry(_Entry):
    """A prompt of the inbox."""

    __slots__ = ("_author", "_state", "_text", "prompt_id")

    def __init__(self, prompt_id: str, seq: int) -> None:
        super().__init__(seq, 0)
        self.prompt_id = prompt_id
        self._state: Latest[pb.SessionPromptState.ValueType] = Latest(pb.SESSION_PROMPT_STATE_UNSPECIFIED)
        self._text = Latest("")
        self._author = Latest("")

    def put(self, seq: int, prompt: pb.SessionPrompt) -> None:
        """Take one of its frames. Text and author stay where a frame does not repeat them."""
        self._extend(seq, 0)
        self._state.put(seq, prompt.state)
        if prompt.text:
            self._text.put(seq, prompt.text)
        if prompt.author:
            self._author.put(seq, prompt.author)

    def freeze(self) -> Prompt:
        """Return the prompt as it is now."""
        return Prompt(self.prompt_id, self._state.value, self._text.value, self._author.value, self.first_seq)
