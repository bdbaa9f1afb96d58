"""Reports of sessions and servers as names and values for a person."""

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from compass.cli import words
from compass.cli.printable import one_line
from compass.v1 import compass_pb2 as pb

Fact: TypeAlias = tuple[str, str]

SESSION_COLUMNS = ("SESSION", "STATE", "DOING", "HEAD", "ERRORS", "ABORTS", "CHANGED", "TITLE")


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Align the cells of rows."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def session_row(info: pb.SessionInfo) -> Sequence[str]:
    """Write one session as a row of SESSION_COLUMNS."""
    return (
        one_line(info.session_id),
        words.STATES.get(info.state, "unknown"),
        _doing(info),
        f"{info.head_seq:,}",
        f"{info.counts.errors:,}",
        f"{info.counts.aborts:,}",
        _ago(info.updated_at_unix_ms),
        one_line(info.title),
    )


def session_facts(info: pb.SessionInfo) -> Iterator[Fact]:
    """Write one session in full."""
    yield "session", one_line(info.session_id)
    yield "state", words.STATES.get(info.state, "unknown")
    yield "doing", _doing(info)
    yield "agent", one_line(f"{info.agent_name} {info.agent_version}".strip() or "-")
    yield "title", one_line(info.title or "-")
    yield "producer", "attached" if info.producer_attached else "not attached"
    yield "created", _ago(info.created_at_unix_ms)
    yield "changed", _ago(info.updated_at_unix_ms)
    yield "seqs", f"{info.first_kept_seq:,} to {info.head_seq:,}"
    yield from _counts(info.counts)
    yield "tokens", f"{info.usage.input_tokens:,} in, {info.usage.output_tokens:,} out"
    yield "cost", f"${info.usage.cost_microdollars / 1_000_000:.4f}"


def _counts(counts: pb.SessionCounts) -> Iterator[Fact]:
    yield "frames", f"{counts.frames:,}"
    yield "errors", f"{counts.errors:,}"
    yield "aborts", f"{counts.aborts:,}"
    yield "dropped by the agent", words.count(counts.dropped_producer_overflow, "event")
    yield "dropped for slow readers", words.count(counts.dropped_subscriber_lag, "frame")
    yield "taken by retention", words.count(counts.dropped_retention, "frame")
    for kind, number in sorted(counts.unmapped.items()):
        yield f"unmapped {one_line(kind)}", words.count(number, "event")


def server_facts(target: str, info: pb.GetServerInfoResponse) -> Iterator[Fact]:
    """Write what a server says of itself."""
    yield "server", target
    yield "version", one_line(info.version)
    yield "contract", one_line(info.contract_version)
    yield "log", one_line(info.log_backend)
    for field, value in info.limits.ListFields():
        yield field.name.replace("_", " "), f"{value:,}"


def aligned(facts: Iterable[Fact]) -> Iterator[str]:
    """Align names and values."""
    return columns(list(facts))


def _doing(info: pb.SessionInfo) -> str:
    if not info.HasField("activity"):
        return "-"
    activity = info.activity
    phase = words.PHASES.get(activity.phase, "unknown")
    silent = ", silent for long" if activity.stalled else ""
    return one_line(f"{phase} ({activity.detail})" if activity.detail else phase) + silent


def _ago(unix_ms: int) -> str:
    seconds = max(0, int(time.time() - unix_ms / 1_000))
    for unit_s, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= unit_s:
            return f"{words.count(seconds // unit_s, name)} ago"
    return f"{words.count(seconds, 'second')} ago"
