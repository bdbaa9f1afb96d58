"""Tool calls: begun, growing, ended; and closed as FAILED when their end cannot come any more."""

import hashlib

from compass.failures import redact
from compass.limits import MAX_TOOL_OUTPUT_CHARS
from compass.v1 import compass_pb2 as pb
from compass_service.mapper import activity, inner
from compass_service.mapper.diffs import diffs_of, wanted_edits
from compass_service.mapper.output import output_of, title_of
from compass_service.mapper.plan import plan_of_phases
from compass_service.mapper.prose import shorten
from compass_service.mapper.state import MAX_OPEN_TOOLS, OpenTool
from compass_service.mapper.text import size
from compass_service.mapper.unmapped import count_unmapped
from compass_service.mapper.writer import FrameWriter

MAX_TOOL_CALL_ID_BYTES = 256
GROWTH = 1.25
"""An update is shown once the output is this much longer than what was last shown."""
_COMPLETED = pb.AGENT_TOOL_CALL_STATUS_COMPLETED
_FAILED = pb.AGENT_TOOL_CALL_STATUS_FAILED
_PLAN_TOOLS = frozenset({"todo", "todo_write"})


def tool_start(writer: FrameWriter, event: inner.ToolStart) -> None:
    """Write a tool call."""
    call_id = _call_id(writer, event)
    if call_id:
        _begin(writer, call_id, event)


def tool_update(writer: FrameWriter, event: inner.ToolUpdate) -> None:
    """Write the output so far, if the call is new or the output has grown by enough."""
    call_id = _call_id(writer, event)
    if not call_id:
        return
    tool = writer.state.tools.get(call_id)
    if tool is None:
        # It ended, perhaps by an abort, and must not begin again.
        count_unmapped(writer, "tool_execution_update")
        return
    text = output_of(event.partial_result)
    num_chars = min(len(text), MAX_TOOL_OUTPUT_CHARS)
    if not num_chars or num_chars < tool.output_chars * GROWTH:
        return
    tool.output_chars = num_chars
    output = shorten(text, MAX_TOOL_OUTPUT_CHARS)
    update = pb.SessionToolCallUpdate(
        tool_call_id=call_id,
        status=pb.AGENT_TOOL_CALL_STATUS_IN_PROGRESS,
        output=output.text,
    )
    writer.event(pb.SessionEvent(tool_call_update=update), original_bytes=output.original_bytes)


def tool_end(writer: FrameWriter, event: inner.ToolEnd) -> None:
    """Write how a tool call ended, with its output, its diffs, and the plan if it changed that."""
    call_id = _call_id(writer, event)
    if not call_id:
        return
    tool = writer.state.tools.pop(call_id, None)
    output = shorten(output_of(event.result), MAX_TOOL_OUTPUT_CHARS)
    diffs = diffs_of(event.result, tool) if not event.is_error else None
    update = pb.SessionToolCallUpdate(
        tool_call_id=call_id,
        # What its turn's end has closed as FAILED stays so: a late end adds its output and relabels nothing.
        status=_FAILED if event.is_error or call_id in writer.state.cut_off_tools else _COMPLETED,
        output=output.text,
        diffs=diffs.messages if diffs else (),
    )
    original_bytes = output.original_bytes + (diffs.original_bytes if diffs else 0)
    writer.event(pb.SessionEvent(tool_call_update=update), original_bytes=original_bytes)
    if event.tool_name in _PLAN_TOOLS and not event.is_error:
        plan_of_phases(writer, event.result)
    if tool is not None:
        _go_on(writer)


def fail_open(writer: FrameWriter) -> None:
    """Close every open tool call as FAILED."""
    open_tools, writer.state.tools = writer.state.tools, {}
    for call_id in open_tools:
        update = pb.SessionToolCallUpdate(tool_call_id=call_id, status=_FAILED)
        writer.event(pb.SessionEvent(tool_call_update=update))
    writer.state.cut_off_tools = [*writer.state.cut_off_tools, *open_tools][-MAX_OPEN_TOOLS:]


def _call_id(writer: FrameWriter, event: inner.ToolStart | inner.ToolUpdate | inner.ToolEnd) -> str:
    call_id = event.tool_call_id
    if not call_id:
        count_unmapped(writer, str(event.__struct_config__.tag))
    elif size(call_id) > MAX_TOOL_CALL_ID_BYTES or redact(call_id) != call_id:
        # Too long to carry in every frame, or with a credential in it. A cut id could be that of another call, its
        # digest cannot.
        call_id = f"sha256:{hashlib.sha256(call_id.encode()).hexdigest()}"
    return call_id


def _begin(writer: FrameWriter, call_id: str, event: inner.ToolStart) -> None:
    state = writer.state
    if call_id in state.cut_off_tools:
        state.cut_off_tools.remove(call_id)
    title = title_of(event)
    call = pb.SessionToolCall(
        tool_call_id=call_id,
        title=title.text,
        status=pb.AGENT_TOOL_CALL_STATUS_IN_PROGRESS,
    )
    writer.event(pb.SessionEvent(tool_call=call), original_bytes=title.original_bytes)
    if len(state.tools) < MAX_OPEN_TOOLS:
        edits, original_bytes = wanted_edits(event.args, state.tools.values())
        state.tools[call_id] = OpenTool(title.text, edits=edits, edits_original_bytes=original_bytes)
    if not state.failed:
        activity.begin(writer, pb.SESSION_PHASE_RUNNING_TOOL, title.text)


def _go_on(writer: FrameWriter) -> None:
    """Show what the agent does now that a tool has ended."""
    state = writer.state
    if state.failed:
        return
    if state.tools:
        newest = next(reversed(state.tools.values()))
        activity.begin(writer, pb.SESSION_PHASE_RUNNING_TOOL, newest.title)
    else:
        activity.leave(writer, pb.SESSION_PHASE_RUNNING_TOOL, pb.SESSION_PHASE_THINKING)
