"""What a fold has gathered so far: one write for each kind of frame. Order of arrival leaves no trace in it."""

from compass.fold.entries import End, MessageEntry, PromptEntry, ToolEntry
from compass.fold.ranges import SeqRanges
from compass.fold.registers import Latest
from compass.fold.view import Activity, Injection, Notice, PlanEntry, Retry, RunEvent, SurfacedError
from compass.gap import Gap
from compass.v1 import compass_pb2 as pb
from compass.v1 import run_event_pb2


class Gathered:
    """Entries by id, values by the highest seq, and which seqs are known or told as missing."""

    def __init__(self) -> None:
        self.session_id = ""
        self.known = SeqRanges()
        self.told_missing: dict[pb.SessionGapReason.ValueType, SeqRanges] = {}
        self.overflows: list[Gap] = []
        self.last_told_seq = 0
        self.state: Latest[pb.AgentSessionState.ValueType] = Latest(pb.AGENT_SESSION_STATE_UNSPECIFIED)
        self.activity: Latest[Activity | None] = Latest(None)
        self.plan: Latest[tuple[PlanEntry, ...]] = Latest(())
        self.messages: dict[str, MessageEntry] = {}
        self.tools: dict[str, ToolEntry] = {}
        self.prompts: dict[str, PromptEntry] = {}
        self.errors: list[SurfacedError] = []
        self.retries: dict[str, Retry] = {}
        """Announced retries by the event id of the failure that each takes back."""
        self.notices: list[Notice] = []
        self.injections: list[Injection] = []
        self.run_events: list[RunEvent] = []
        self._takers = {
            "assistant_text": self._take_text,
            "thinking": self._take_thinking,
            "tool_call": self._take_tool_call,
            "tool_call_update": self._take_tool_call_update,
            "plan": self._take_plan,
            "notice": self._take_notice,
            "session_injection": self._take_injection,
            "session_error": self._take_error,
            "user_message": self._take_user_message,
            "message_end": self._take_message_end,
            "activity": self._take_activity,
            "prompt": self._take_prompt,
            "run_event": self._take_run_event,
        }

    def take_gap(self, gap: Gap) -> None:
        """Note what is told as missing. A gap that was logged has a seq, and nothing will ever fill it."""
        if gap.seq is not None:
            if self.known.add(gap.seq):
                self.overflows.append(gap)
        elif gap.first_seq <= gap.last_seq:
            self.told_missing.setdefault(gap.reason, SeqRanges()).add_range(gap.first_seq, gap.last_seq + 1)
            self.last_told_seq = max(self.last_told_seq, gap.last_seq)

    def take_snapshot(self, frame: pb.AgentSessionFrame) -> None:
        """Note where a live tail begins: a state or an activity without seq, which any frame with a seq overrides."""
        if frame.state:
            self.state.put(0, frame.state)
        if frame.event.HasField("activity"):
            self.activity.put(0, _activity_of(frame.event.activity))

    def take(self, frame: pb.AgentSessionFrame) -> None:
        """Note a frame of the log. One that is known already changes nothing."""
        seq = frame.seq
        if not self.known.add(seq):
            return
        if frame.state:
            self.state.put(seq, frame.state)
        kind = frame.event.WhichOneof("event")
        if kind is not None:
            self._takers[kind](seq, frame)

    def _message(self, message_id: str, role: pb.TranscriptRole.ValueType, seq: int, at_unix_ms: int) -> MessageEntry:
        entry = self.messages.get(message_id)
        if entry is None:
            entry = self.messages[message_id] = MessageEntry(message_id, role, seq, at_unix_ms)
        entry.touch(seq, at_unix_ms)
        return entry

    def _take_text(self, seq: int, frame: pb.AgentSessionFrame) -> None:
        event = frame.event
        body = event.assistant_text
        self._message(body.message_id, pb.TRANSCRIPT_ROLE_ASSISTANT, seq, event.at_unix_ms).add_text(seq, body.text)

    def _take_thinking(self, seq: int, frame: pb.AgentSessionFrame) -> None:
        event = frame.event
        body = event.thinking
        self._message(body.message_id, pb.TRANSCRIPT_ROLE_ASSISTANT, seq, event.at_unix_ms).add_thinking(seq, body.text)

    def _take_user_message(self, seq: int, frame: pb.AgentSessionFrame) -> None:
        body = frame.event.user_message
        entry = self._message(body.message_id, pb.TRANSCRIPT_ROLE_USER, seq, frame.event.at_unix_ms)
        entry.add_text(seq, body.text)
        entry.prompt_id = entry.prompt_id or body.prompt_id
        entry.steering = entry.steering or body.steering

    def _take_message_end(self, seq: int, frame: pb.AgentSessionFrame) -> None:
        body = frame.event.message_end
        entry = self._message(body.message_id, pb.TRANSCRIPT_ROLE_ASSISTANT, seq, frame.event.at_unix_ms)
        entry.end.put(seq, End.of(body))

    def _tool(self, tool_call_id: str, seq: int, at_unix_ms: int) -> ToolEntry:
        entry = self.tools.get(tool_call_id)
        if entry is None:
            entry = self.tools[tool_call_id] = ToolEntry(tool_call_id, seq, at_unix_ms)
        return entry

    def _take_tool_call(self, seq: int, frame: pb.AgentSessionFrame) -> None:
        event = frame.event
        body = event.tool_call
        self._tool(body.tool_call_id, seq, event.at_unix_ms).begin(seq, event.at_unix_ms, body)

    def _take_tool_call_update(self, seq: int, frame: pb.AgentSessionFrame) -> None:
        event = frame.event
        body = event.tool_call_update
        entry = self._tool(body.tool_call_id, seq, event.at_unix_ms)
        entry.update(seq, event.at_unix_ms, body, frame.original_bytes)

    def _take_plan(self, seq: int, frame: pb.AgentSessionFrame) -> None:
        self.plan.put(seq, tuple(PlanEntry(entry.content, entry.status) for entry in frame.event.plan.entries))

    def _take_notice(self, seq: int, frame: pb.AgentSessionFrame) -> None:
        body = frame.event.notice
        self.notices.append(Notice(seq, body.text, body.link if body.HasField("link") else None))

    def _take_injection(self, seq: int, frame: pb.AgentSessionFrame) -> None:
        body = frame.event.session_injection
        self.injections.append(Injection(seq, body.op_kind, body.message_id, body.from_handle, body.traceparent))

    def _take_error(self, seq: int, frame: pb.AgentSessionFrame) -> None:
        error = pb.SessionError()
        error.CopyFrom(frame.event.session_error)  # a reference would keep the whole response alive
        self.errors.append(SurfacedError(seq, frame.event.event_id, frame.event.at_unix_ms, error))

    def _take_activity(self, seq: int, frame: pb.AgentSessionFrame) -> None:
        body = frame.event.activity
        self.activity.put(seq, _activity_of(body))
        taken_back = body.supersedes_event_id
        if taken_back and (taken_back not in self.retries or seq > self.retries[taken_back].seq):
            self.retries[taken_back] = Retry(seq, body.attempt, body.max_attempts, body.delay_ms)

    def _take_prompt(self, seq: int, frame: pb.AgentSessionFrame) -> None:
        body = frame.event.prompt
        self.prompts.setdefault(body.prompt_id, PromptEntry(body.prompt_id, seq)).put(seq, body)

    def _take_run_event(self, seq: int, frame: pb.AgentSessionFrame) -> None:
        event = run_event_pb2.SessionRunEvent()
        event.CopyFrom(frame.event.run_event)
        self.run_events.append(RunEvent(seq, event))


def _activity_of(body: pb.SessionActivity) -> Activity:
    return Activity(
        phase=body.phase,
        started_at_unix_ms=body.started_at_unix_ms,
        detail=body.detail,
        attempt=body.attempt,
        max_attempts=body.max_attempts,
        delay_ms=body.delay_ms,
        stalled=body.stalled,
    )
