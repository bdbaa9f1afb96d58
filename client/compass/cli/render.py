"""A live, readable rendering of what a tail yields: text as it streams, failures unmistakable, gaps in their place."""

import re
from collections.abc import Iterable

from compass.cli import blocks, words
from compass.cli.blocks import Line
from compass.cli.printable import one_line, printable
from compass.cli.screen import Screen
from compass.fold import Item
from compass.gap import Gap
from compass.v1 import compass_pb2 as pb

THINKING_CHARS = 240
"""Reasoning is shown on one line up to so many characters."""

_STATE_STYLES = {
    pb.AGENT_SESSION_STATE_ERRORED: "bold red",
    pb.AGENT_SESSION_STATE_DISCONNECTED: "yellow",
    pb.AGENT_SESSION_STATE_STOPPED: "bold",
}


class FrameRenderer:
    """Writes frames and gaps to a screen as they come. Nothing is written twice or taken back, so it can be piped."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._open: tuple[str, str] | None = None
        """Kind and message id of the text that streams, while its line is not ended."""
        self._pieces: list[str] = []
        self._thought_chars = 0
        self._titles: dict[str, str] = {}
        self._writers = {
            "user_message": self._user_message,
            "assistant_text": self._assistant_text,
            "thinking": self._thinking,
            "message_end": self._message_end,
            "tool_call": self._tool_call,
            "tool_call_update": self._tool_call_update,
            "plan": self._plan,
            "notice": self._notice,
            "session_injection": self._injection,
            "session_error": self._error,
            "activity": self._activity,
            "prompt": self._prompt,
            "run_event": self._run_event,
        }

    def render(self, items: Iterable[Item]) -> None:
        """Write some items. Pieces of one message that come together are written together."""
        for item in items:
            if isinstance(item, Gap):
                self._write(blocks.gap_line(item))
            elif item.HasField("gap"):
                self._write(blocks.gap_line(Gap.from_frame(item)))
            else:
                self._frame(item)
        self._flush()
        self._screen.flush()

    def close(self) -> None:
        """End the line that streams."""
        self._write()

    def _frame(self, frame: pb.AgentSessionFrame) -> None:
        kind = frame.event.WhichOneof("event")
        if kind == "activity" and not frame.seq:
            self._write(_snapshot_line(frame.event.activity))
        elif kind is not None:
            self._writers[kind](frame.event)
        if frame.state:
            style = _STATE_STYLES.get(frame.state, "dim")
            self._write(Line(f"── {words.STATES.get(frame.state, 'unknown')} ──", style))

    def _write(self, *lines: Line) -> None:
        """Write whole lines; end the one that streams first."""
        self._flush()
        if self._open is not None:
            kind, _ = self._open
            folded = self._thought_chars - THINKING_CHARS
            tail = f"… {words.count(folded, 'more character')}" if kind == "thinking" and folded > 0 else ""
            self._screen.print(Line(tail, "dim italic"))
            self._open = None
        self._screen.print(*lines)

    def _stream(self, kind: str, message_id: str, text: str, label: Line) -> None:
        if self._open != (kind, message_id):
            self._write()
            self._screen.print(label, end=" ")
            self._open = (kind, message_id)
            self._thought_chars = 0
        self._pieces.append(text)

    def _flush(self) -> None:
        if self._open is None or not self._pieces:
            return
        kind, _ = self._open
        text = "".join(self._pieces)
        self._pieces.clear()
        if kind == "thinking":
            text = re.sub(r"\s+", " ", text)
            shown = text[: max(0, THINKING_CHARS - self._thought_chars)]
            self._thought_chars += len(text)
            self._screen.print(Line(one_line(shown), "dim italic"), end="")
        else:
            self._screen.print(Line(printable(text), "bold" if kind == "user_message" else ""), end="")

    def _user_message(self, event: pb.SessionEvent) -> None:
        body = event.user_message
        label = Line("user (steering) >" if body.steering else "user >", "bold cyan")
        self._stream("user_message", body.message_id, body.text, label)

    def _assistant_text(self, event: pb.SessionEvent) -> None:
        body = event.assistant_text
        self._stream("assistant_text", body.message_id, body.text, Line("agent >", "bold green"))

    def _thinking(self, event: pb.SessionEvent) -> None:
        body = event.thinking
        self._stream("thinking", body.message_id, body.text, Line("thinking", "dim"))

    def _message_end(self, event: pb.SessionEvent) -> None:
        body = event.message_end
        lines = []
        if body.outcome == pb.SESSION_MESSAGE_OUTCOME_INCOMPLETE:
            lines.append(blocks.cut_off_line(body.stop_reason))
        elif body.stop_reason == pb.SESSION_STOP_REASON_LENGTH:
            lines.append(Line("  the token limit was reached", "yellow"))
        if body.usage.ListFields():  # an agent that counts nothing reports zeros
            lines.append(blocks.usage_line(body.usage))
        self._write(*lines)

    def _tool_call(self, event: pb.SessionEvent) -> None:
        body = event.tool_call
        self._titles[body.tool_call_id] = body.title
        self._write(blocks.tool_line(body.title, body.status))

    def _tool_call_update(self, event: pb.SessionEvent) -> None:
        body = event.tool_call_update
        title = self._titles.get(body.tool_call_id, "")
        if body.status == pb.AGENT_TOOL_CALL_STATUS_IN_PROGRESS:
            if last_line := body.output.rstrip().rpartition("\n")[2]:
                self._write(Line(f"    ┆ {one_line(last_line)}", "dim"))
        else:
            self._titles.pop(body.tool_call_id, None)
            self._write(
                blocks.tool_line(title, body.status),
                *blocks.output_lines(body.output),
                *blocks.diff_lines(body.diffs),
            )

    def _plan(self, event: pb.SessionEvent) -> None:
        self._write(*blocks.plan_lines(event.plan.entries))

    def _notice(self, event: pb.SessionEvent) -> None:
        link = f" ({event.notice.link})" if event.notice.HasField("link") else ""
        self._write(Line(one_line(f"note: {event.notice.text}{link}"), "blue"))

    def _injection(self, event: pb.SessionEvent) -> None:
        body = event.session_injection
        sender = f" from {body.from_handle}" if body.from_handle else ""
        self._write(Line(one_line(f"↳ {words.INJECTIONS.get(body.op_kind, 'injected')}{sender}"), "cyan"))

    def _error(self, event: pb.SessionEvent) -> None:
        self._write(*blocks.error_lines(event.session_error))

    def _activity(self, event: pb.SessionEvent) -> None:
        line = _activity_line(event.activity)
        if line is not None:
            self._write(line)

    def _prompt(self, event: pb.SessionEvent) -> None:
        body = event.prompt
        state = words.PROMPT_STATES.get(body.state, "unknown")
        text = f": {body.text}" if body.text else ""
        self._write(Line(one_line(f"✉ prompt {body.prompt_id} {state}{text}"), "cyan"))

    def _run_event(self, event: pb.SessionEvent) -> None:
        self._write(blocks.run_line(event.run_event))


def _snapshot_line(activity: pb.SessionActivity) -> Line:
    """Show what the agent was doing already when a live reader came."""
    phase = words.PHASES.get(activity.phase, "unknown")
    return _activity_line(activity) or Line(f"… {phase}", "dim")


def _activity_line(activity: pb.SessionActivity) -> Line | None:
    """Show what the text itself does not show: waiting, retrying, compacting, silence."""
    phase = words.PHASES.get(activity.phase, "unknown")
    if activity.stalled:
        return Line(f"… nothing has come for a while: {phase}", "yellow")
    match activity.phase:
        case pb.SESSION_PHASE_RETRYING:
            of = f" of {activity.max_attempts}" if activity.max_attempts else ""
            takes_back = "; it takes back the failure above" if activity.supersedes_event_id else ""
            wait = words.seconds(activity.delay_ms)
            return Line(f"↻ retry {activity.attempt}{of} in {wait}{takes_back}", "bold yellow")
        case pb.SESSION_PHASE_COMPACTING | pb.SESSION_PHASE_AWAITING_INPUT:
            detail = f" ({one_line(activity.detail)})" if activity.detail else ""
            return Line(f"… {phase}{detail}", "yellow")
        case _:
            return None
