"""The agent's plan, whole each time."""

from collections.abc import Iterable

from compass.v1 import compass_pb2 as pb
from compass_service.mapper import inner
from compass_service.mapper.prose import shorten
from compass_service.mapper.text import size
from compass_service.mapper.writer import FrameWriter

MAX_ENTRIES = 256
MAX_ENTRY_CHARS = 200
_STATUSES = {
    "pending": pb.AGENT_PLAN_ENTRY_STATUS_PENDING,
    "in_progress": pb.AGENT_PLAN_ENTRY_STATUS_IN_PROGRESS,
    "completed": pb.AGENT_PLAN_ENTRY_STATUS_COMPLETED,
    "abandoned": pb.AGENT_PLAN_ENTRY_STATUS_COMPLETED,
}


def todo_reminder(writer: FrameWriter, event: inner.TodoReminder) -> None:
    """Write the plan as the agent reminds itself of it."""
    _write(writer, [(todo.content, todo.status) for todo in event.todos])


def todo_auto_clear(writer: FrameWriter, _: inner.TodoAutoClear) -> None:
    """Write that there is no plan any more."""
    _write(writer, [])


def plan_of_phases(writer: FrameWriter, result: object) -> None:
    """Write the plan that a tool result reports, if it does."""
    details = result.get("details") if isinstance(result, dict) else None
    phases = details.get("phases") if isinstance(details, dict) else None
    if isinstance(phases, list):
        _write(writer, list(_tasks(phases)))


def _tasks(phases: Iterable[object]) -> Iterable[tuple[str, str]]:
    for phase in phases:
        tasks = phase.get("tasks") if isinstance(phase, dict) else None
        for task in tasks if isinstance(tasks, list) else ():
            content, status = (task.get("content"), task.get("status")) if isinstance(task, dict) else (None, None)
            if isinstance(content, str):
                yield content, status if isinstance(status, str) else ""


def _write(writer: FrameWriter, tasks: list[tuple[str, str]]) -> None:
    shown = [(shorten(content, MAX_ENTRY_CHARS), status) for content, status in tasks[:MAX_ENTRIES]]
    was_cut = len(tasks) > len(shown) or any(content.original_bytes for content, _ in shown)
    entries = [
        pb.AgentPlanEntry(content=content.text, status=_STATUSES.get(status, pb.AGENT_PLAN_ENTRY_STATUS_UNSPECIFIED))
        for content, status in shown
    ]
    original_bytes = sum(size(content) for content, _ in tasks) if was_cut else 0
    writer.event(pb.SessionEvent(plan=pb.SessionPlan(entries=entries)), original_bytes=original_bytes)
