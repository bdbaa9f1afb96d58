"""Pieces of a session as lines for a terminal, each with its style. Text of an agent is made printable here."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from compass.cli import words
from compass.cli.printable import one_line, printable
from compass.failures.categories import Category
from compass.gap import Gap
from compass.v1 import compass_pb2 as pb
from compass.v1 import run_event_pb2

OUTPUT_LINES = 12
"""A tool's output is shown up to so many lines."""


class Line(NamedTuple):
    """One line, without its line feed, and its style."""

    text: str
    style: str = ""


def failure_lines(error: pb.SessionError) -> Iterator[Line]:
    """Show a failure so that nobody takes it for an answer: what, where, the agent's words, and what to do."""
    yield Line(f"✗ ERROR  {' · '.join(_failure_facts(error))}", "bold white on red")
    yield from _indented(error.message or "(the agent gave no message)", "red")
    if error.HasField("failure") and error.failure.problem:
        yield from _indented(": ".join(filter(None, (error.failure.code, error.failure.problem))), "red")
    try:
        yield Line(f"  → {Category(error.category).advice}", "yellow")
    except ValueError:
        return  # a category that this version does not know has no advice


def _failure_facts(error: pb.SessionError) -> Iterator[str]:
    yield words.category(error)
    if error.HasField("status"):
        yield f"status {error.status}"
    if origin := "/".join(filter(None, (error.provider, error.model))):
        yield one_line(origin)
    if error.HasField("retry_after_ms"):
        yield f"retry after {words.seconds(error.retry_after_ms)}"
    elif error.retryable:
        yield "a retry may help"


def abort_lines(error: pb.SessionError) -> Iterator[Line]:
    """Show an abort as what it is: a deliberate stop."""
    origin = words.ABORT_ORIGINS.get(error.abort_origin, "origin unknown")
    yield Line(f"■ aborted, {origin}" if "unknown" in origin else f"■ aborted {origin}", "bold magenta")
    if error.message:
        yield from _indented(error.message, "magenta")


def error_lines(error: pb.SessionError) -> Iterator[Line]:
    """Show a failure or an abort."""
    return abort_lines(error) if error.kind == pb.SESSION_ERROR_KIND_ABORTED else failure_lines(error)


def cut_off_line(stop_reason: pb.SessionStopReason.ValueType) -> Line:
    """Mark a message that is not whole."""
    return Line(
        f"⚠ incomplete: {words.CUT_OFF.get(stop_reason, 'cut off, or frames of it are missing')}", "bold yellow"
    )


def gap_line(gap: Gap) -> Line:
    """Show what is missing here."""
    reason = words.GAP_REASONS.get(gap.reason, "no reason given")
    if gap.seq is not None:
        return Line(f"┄┄ {words.count(gap.dropped, 'event')} of the agent missing: {reason} ┄┄", "yellow")
    where = f"seq {gap.first_seq}" if gap.first_seq == gap.last_seq else f"seq {gap.first_seq} to {gap.last_seq}"
    return Line(f"┄┄ {words.count(gap.dropped, 'frame')} missing ({where}): {reason} ┄┄", "yellow")


def tool_line(title: str, status: pb.AgentToolCallStatus.ValueType) -> Line:
    """Show a tool call and how it stands."""
    mark, style = _TOOL_MARKS.get(status, ("▸", "cyan"))
    return Line(f"  {mark} {one_line(title) or '(a tool)'}", style)


_TOOL_MARKS = {
    pb.AGENT_TOOL_CALL_STATUS_COMPLETED: ("✓", "green"),
    pb.AGENT_TOOL_CALL_STATUS_FAILED: ("✗ failed:", "red"),
}


def output_lines(output: str) -> Iterator[Line]:
    """Show the output of a tool, folded."""
    lines = printable(output).rstrip("\n").split("\n") if output else []
    for line in lines[:OUTPUT_LINES]:
        yield Line(f"    {line}", "dim")
    if len(lines) > OUTPUT_LINES:
        yield Line(f"    … {words.count(len(lines) - OUTPUT_LINES, 'more line')}", "dim")


def diff_lines(diffs: Iterable[pb.SessionFileDiff]) -> Iterator[Line]:
    """Show which files changed, and by how much."""
    for diff in diffs:
        old, new = diff.old_text.count("\n"), diff.new_text.count("\n")
        what = f"-{old} +{new} lines" if diff.HasField("old_text") else f"new, {words.count(new, 'line')}"
        yield Line(f"    ± {one_line(diff.path)} ({what})", "cyan")


def plan_lines(entries: Iterable[pb.AgentPlanEntry]) -> Iterator[Line]:
    """Show the plan."""
    shown = [Line(f"  {_PLAN_MARKS.get(entry.status, '[ ]')} {one_line(entry.content)}", "blue") for entry in entries]
    yield Line("plan" if shown else "plan cleared", "bold blue")
    yield from shown


_PLAN_MARKS = {
    pb.AGENT_PLAN_ENTRY_STATUS_IN_PROGRESS: "[>]",
    pb.AGENT_PLAN_ENTRY_STATUS_COMPLETED: "[x]",
}


def usage_line(usage: pb.SessionUsage) -> Line:
    """Show tokens and cost."""
    parts = [f"{usage.input_tokens:,} in", f"{usage.output_tokens:,} out"]
    if usage.cache_read_tokens or usage.cache_write_tokens:
        parts.append(f"{usage.cache_read_tokens:,} from cache, {usage.cache_write_tokens:,} to cache")
    if usage.cost_microdollars:
        parts.append(f"${usage.cost_microdollars / 1_000_000:.4f}")
    return Line(f"  {' · '.join(parts)}", "dim")


def run_line(event: run_event_pb2.SessionRunEvent) -> Line:
    """Show what a workflow engine reported."""
    detail = event.WhichOneof("detail")
    if detail is None:
        return Line(f"run {event.run_id}: something this version does not know", "dim")
    body = getattr(event, detail)
    parts = [f"run {event.run_id}: {detail.replace('_', ' ')}", getattr(body, "node_id", "")]
    failed = "failure" in body.DESCRIPTOR.fields_by_name and body.HasField("failure")
    if failed:
        parts.append(body.failure.problem or body.failure.message or body.failure.code)
    return Line(one_line(" · ".join(filter(None, parts))), "bold red" if failed else "blue")


def _indented(text: str, style: str) -> Iterator[Line]:
    for line in printable(text).split("\n"):
        yield Line(f"  {line}", style)
