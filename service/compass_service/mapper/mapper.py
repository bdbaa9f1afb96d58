"""The mapper of one session: which arm maps which inner event, and the verbs that the session calls."""

from collections.abc import Callable
from typing import Any

from compass.v1 import compass_pb2 as pb
from compass_service.frames import Draft
from compass_service.mapper import (
    activity,
    compaction,
    inner,
    lifecycle,
    message,
    notices,
    plan,
    retry,
    run,
    run_events,
    tools,
)
from compass_service.mapper.decode import Unmapped, decode
from compass_service.mapper.numbers import MAX_INT64
from compass_service.mapper.state import MapperState
from compass_service.mapper.unmapped import count_unmapped, silent
from compass_service.mapper.writer import FrameWriter

Arm = Callable[[FrameWriter, Any], None]


def _unmapped(writer: FrameWriter, event: Unmapped) -> None:
    count_unmapped(writer, event.type_name)


_ARMS: dict[type, Arm] = {
    inner.MessageUpdate: message.message_update,
    inner.MessageStart: message.message_start,
    inner.MessageEnd: message.message_end,
    inner.AgentStart: run.agent_start,
    inner.TurnStart: run.turn_start,
    inner.TurnEnd: silent,
    inner.AgentEnd: run.agent_end,
    inner.AgentSettled: run.agent_settled,
    inner.ToolStart: tools.tool_start,
    inner.ToolUpdate: tools.tool_update,
    inner.ToolEnd: tools.tool_end,
    inner.TodoReminder: plan.todo_reminder,
    inner.TodoAutoClear: plan.todo_auto_clear,
    inner.AutoCompactionStart: compaction.compaction_start,
    inner.CompactionStart: compaction.compaction_start,
    inner.AutoCompactionEnd: compaction.compaction_end,
    inner.CompactionEnd: compaction.compaction_end,
    inner.RetryStart: retry.retry_start,
    inner.RetryEnd: retry.retry_end,
    inner.Notice: notices.notice,
    inner.IrcMessage: notices.irc_message,
    inner.FallbackApplied: notices.fallback_applied,
    inner.FallbackSucceeded: notices.fallback_succeeded,
    inner.RunEvent: run_events.run_event,
    inner.UiRequest: notices.ui_request,
    inner.UiResponse: notices.dialog_closed,
    inner.Response: run.response,
    inner.SessionHeader: silent,
    inner.Ready: silent,
    inner.CommandsUpdate: silent,
    inner.ModelChanged: silent,
    Unmapped: _unmapped,
}


class Mapper:
    """Maps the inner events of one session, in order.

    Everything it knows is in `state`, which can be saved with msgspec.msgpack after any call and given to a new mapper.
    Every method returns the frames it causes, without their seq; an empty list when there are none.
    """

    def __init__(self, session_id: str, state: MapperState | None = None) -> None:
        self.state = MapperState() if state is None else state
        self._writer = FrameWriter(session_id, self.state)

    def map(self, event: str | bytes, *, now_ms: int, prompt_id: str = "") -> list[Draft]:
        """Map one inner event. Raises NotAnObjectError if it is no JSON object, and nothing else."""
        read = decode(event)
        writer = self._writer
        writer.begin(now_ms=now_ms, prompt_id=prompt_id)
        self.state.last_event_ms = now_ms
        if self.state.lifecycle != pb.AGENT_SESSION_STATE_STOPPED:
            if self.state.activity.stalled:
                activity.revive(writer)
            _ARMS[type(read)](writer, read)
        return writer.drafts

    def overflow(self, dropped: int, *, now_ms: int) -> list[Draft]:
        """Log that the producer dropped inner events before it sent the next."""
        self._writer.begin(now_ms=now_ms)
        counts = self.state.counts
        counts.dropped_producer_overflow = min(counts.dropped_producer_overflow + dropped, MAX_INT64)
        if self.state.message is not None:
            self.state.message.was_thinned = True
        self._writer.gap(pb.SessionGap(dropped=dropped, reason=pb.SESSION_GAP_REASON_PRODUCER_OVERFLOW))
        return self._writer.drafts

    def ask_abort(self) -> None:
        """Remember that a person asks for an abort through this service: if one follows, it was their choice."""
        self.state.abort_asked = True

    def stall(self, *, now_ms: int) -> list[Draft]:
        """Mark the phase of a working agent stalled; the next inner event takes the mark away."""
        self._writer.begin(now_ms=now_ms)
        activity.stall(self._writer)
        return self._writer.drafts

    def prompt(self, prompt: pb.SessionPrompt, *, now_ms: int) -> list[Draft]:
        """Tell where a prompt of the inbox is now."""
        self._writer.begin(now_ms=now_ms)
        self._writer.event(pb.SessionEvent(prompt=prompt))
        return self._writer.drafts

    def ready(self, *, now_ms: int) -> list[Draft]:
        """Enter READY from STARTING: the agent can take a prompt."""
        self._writer.begin(now_ms=now_ms)
        lifecycle.ready(self._writer)
        return self._writer.drafts

    def start(self, *, now_ms: int) -> list[Draft]:
        """Enter STARTING, if nothing is known of the session yet."""
        self._writer.begin(now_ms=now_ms)
        lifecycle.start(self._writer)
        return self._writer.drafts

    def detach(self, *, now_ms: int) -> list[Draft]:
        """Enter DISCONNECTED: the producer is gone without a word, and the turn is not judged."""
        self._writer.begin(now_ms=now_ms)
        lifecycle.detach(self._writer)
        return self._writer.drafts

    def reattach(self, *, now_ms: int) -> list[Draft]:
        """Go back to the state before DISCONNECTED: the producer has come back."""
        self._writer.begin(now_ms=now_ms)
        lifecycle.reattach(self._writer)
        return self._writer.drafts

    def lose(self, *, now_ms: int) -> list[Draft]:
        """Judge a session whose producer will not come back: ERRORED if it was working, else nothing."""
        self._writer.begin(now_ms=now_ms)
        lifecycle.lose(self._writer)
        return self._writer.drafts

    def close(self, *, now_ms: int) -> list[Draft]:
        """End what is open, then enter STOPPED."""
        self._writer.begin(now_ms=now_ms)
        lifecycle.close(self._writer)
        return self._writer.drafts

    def exit(self, *, code: int | None, signal: str, last_stderr: str, now_ms: int) -> list[Draft]:
        """Judge a session whose agent process has ended: ERRORED, with how it ended."""
        self._writer.begin(now_ms=now_ms)
        lifecycle.exit_process(self._writer, code=code, signal=signal, last_stderr=last_stderr)
        return self._writer.drafts
