"""Histories of sessions, written a frame at a time."""

from compass.gap import Gap
from compass.v1 import compass_pb2 as pb
from compass.v1 import failure_pb2

SESSION = "s-1"


class History:
    """A session log under construction: each method logs one frame."""

    def __init__(self) -> None:
        self.frames: list[pb.AgentSessionFrame] = []

    def log(self, *, state: int = 0, original_bytes: int = 0, **event: object) -> pb.AgentSessionFrame:
        seq = len(self.frames) + 1
        body = pb.SessionEvent(event_id=f"e{seq}", at_unix_ms=1_000 + seq, **event) if event else None
        frame = pb.AgentSessionFrame(
            session_id=SESSION, event=body, state=state, seq=seq, original_bytes=original_bytes
        )
        self.frames.append(frame)
        return frame

    def state(self, state: int) -> None:
        self.log(state=state)

    def user(self, text: str, message_id: str, **fields: object) -> None:
        self.log(user_message=pb.SessionUserMessage(text=text, message_id=message_id, **fields))

    def text(self, text: str, message_id: str) -> None:
        self.log(assistant_text=pb.SessionAssistantText(text=text, message_id=message_id))

    def thinking(self, text: str, message_id: str) -> None:
        self.log(thinking=pb.SessionThinking(text=text, message_id=message_id))

    def end(self, message_id: str, *, stop_reason: int = pb.SESSION_STOP_REASON_STOP, usage: int = 0) -> None:
        self.log(
            message_end=pb.SessionMessageEnd(
                message_id=message_id,
                outcome=pb.SESSION_MESSAGE_OUTCOME_COMPLETE,
                stop_reason=stop_reason,
                usage=pb.SessionUsage(input_tokens=usage, cost_microdollars=2 * usage) if usage else None,
            )
        )

    def cut(self, message_id: str, *, stop_reason: int = pb.SESSION_STOP_REASON_ERROR) -> None:
        self.log(
            message_end=pb.SessionMessageEnd(
                message_id=message_id, outcome=pb.SESSION_MESSAGE_OUTCOME_INCOMPLETE, stop_reason=stop_reason
            )
        )

    def failure(self, message: str, message_id: str = "") -> str:
        """Log a failure and the state that follows it. Returns its event id."""
        event_id = self.log(
            session_error=pb.SessionError(
                kind=pb.SESSION_ERROR_KIND_ERROR,
                message=message,
                message_id=message_id,
                category=failure_pb2.FAILURE_CATEGORY_RATE_LIMITED,
            )
        ).event.event_id
        self.state(pb.AGENT_SESSION_STATE_ERRORED)
        return event_id

    def abort(self, message_id: str = "", origin: int = pb.SESSION_ABORT_ORIGIN_USER) -> None:
        self.log(
            session_error=pb.SessionError(
                kind=pb.SESSION_ERROR_KIND_ABORTED, message_id=message_id, abort_origin=origin
            )
        )

    def retry(self, takes_back: str, *, attempt: int = 1) -> None:
        """Log the announcement of a retry, and the state that follows it."""
        self.log(
            activity=pb.SessionActivity(
                phase=pb.SESSION_PHASE_RETRYING,
                attempt=attempt,
                max_attempts=3,
                delay_ms=500,
                supersedes_event_id=takes_back,
            )
        )
        self.state(pb.AGENT_SESSION_STATE_WORKING)

    def activity(self, phase: int, detail: str = "") -> None:
        self.log(activity=pb.SessionActivity(phase=phase, detail=detail))

    def tool(self, tool_call_id: str, title: str) -> None:
        self.log(
            tool_call=pb.SessionToolCall(
                tool_call_id=tool_call_id, title=title, status=pb.AGENT_TOOL_CALL_STATUS_IN_PROGRESS
            )
        )

    def tool_update(
        self,
        tool_call_id: str,
        output: str = "",
        *,
        status: int = pb.AGENT_TOOL_CALL_STATUS_IN_PROGRESS,
        diffs: tuple[pb.SessionFileDiff, ...] = (),
        original_bytes: int = 0,
    ) -> None:
        update = pb.SessionToolCallUpdate(tool_call_id=tool_call_id, status=status, output=output, diffs=diffs)
        self.log(tool_call_update=update, original_bytes=original_bytes)

    def overflow(self, dropped: int) -> None:
        gap = pb.SessionGap(dropped=dropped, reason=pb.SESSION_GAP_REASON_PRODUCER_OVERFLOW)
        self.frames.append(pb.AgentSessionFrame(session_id=SESSION, seq=len(self.frames) + 1, gap=gap))

    def without(
        self, *seqs: int, reason: int = pb.SESSION_GAP_REASON_SUBSCRIBER_LAG
    ) -> list[pb.AgentSessionFrame | Gap]:
        """Tell the history as a reader sees it who was not given some seqs: each run of them as a gap in its place."""
        items: list[pb.AgentSessionFrame | Gap] = []
        missing = set(seqs)
        for frame in self.frames:
            if frame.seq not in missing:
                items.append(frame)
            elif items and isinstance(items[-1], Gap) and items[-1].last_seq == frame.seq - 1:
                first = items.pop().first_seq
                items.append(Gap(first, frame.seq, frame.seq - first + 1, reason))
            else:
                items.append(Gap(frame.seq, frame.seq, 1, reason))
        return items
