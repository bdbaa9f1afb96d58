"""File changes of a tool call: what its result reports, else what its arguments asked for."""

from collections.abc import Iterable
from typing import NamedTuple

from compass.failures import redact
from compass.v1 import compass_pb2 as pb
from compass_service.mapper.fields import EditArgs, ToolArgs
from compass_service.mapper.prose import redact_beginning
from compass_service.mapper.state import Edit, OpenTool
from compass_service.mapper.text import cut_bytes, size

MAX_DIFF_BYTES = 128 * 1024
"""All diffs of a frame together."""
MAX_KEPT_BYTES = 32 * 1024
"""All edits that are kept for the ends of open tool calls."""
MAX_EDITS = 256
MAX_PATH_BYTES = 4_096


class Diffs(NamedTuple):
    """Diffs that fit into a frame."""

    messages: list[pb.SessionFileDiff]
    original_bytes: int
    """Size before they were cut, 0 when they were not."""


def diffs_of(result: object, tool: OpenTool | None) -> Diffs:
    """Return the diffs of a tool call that ended well."""
    reported = _reported(result)
    if reported:
        edits, original_bytes = _fit(reported, MAX_DIFF_BYTES)
    elif tool is not None:
        edits, original_bytes = tool.edits, tool.edits_original_bytes
    else:
        return Diffs([], 0)
    messages = [pb.SessionFileDiff(path=edit.path, old_text=edit.old_text, new_text=edit.new_text) for edit in edits]
    return Diffs(messages, original_bytes)


def wanted_edits(args: ToolArgs | None, open_tools: Iterable[OpenTool]) -> tuple[list[Edit], int]:
    """Return the edits that arguments ask for, cut to what is left of the budget, and their size if they were cut."""
    if args is None or not args.path:
        return [], 0
    kept = sum(_size(edit) for tool in open_tools for edit in tool.edits)
    edits = [Edit(args.path, edit.old_text, edit.new_text or "") for edit in args.edits if _has_change(edit)]
    return _fit(edits, MAX_KEPT_BYTES - kept)


def _has_change(edit: EditArgs) -> bool:
    return edit.old_text is not None or edit.new_text is not None


def _reported(result: object) -> list[Edit]:
    details = result.get("details") if isinstance(result, dict) else None
    if not isinstance(details, dict):
        return []
    per_file = details.get("perFileResults")
    entries = per_file if isinstance(per_file, list) else [details]
    return [edit for entry in entries if (edit := _edit_of(entry)) is not None]


def _edit_of(entry: object) -> Edit | None:
    if not isinstance(entry, dict) or entry.get("isError") or entry.get("error"):
        return None
    path, old_text, new_text = entry.get("path"), entry.get("oldText"), entry.get("newText")
    if not (isinstance(path, str) and path and isinstance(new_text, str)):
        return None
    return Edit(path, old_text if isinstance(old_text, str) else None, new_text)


def _fit(edits: list[Edit], max_bytes: int) -> tuple[list[Edit], int]:
    """Redact edits and cut them so that all together fit. Returns their size before, 0 if nothing was cut.

    A path is kept whole or its edit is left out, and so are edits for which nothing is left.
    """
    fitting: list[Edit] = []
    left, was_cut = max_bytes, len(edits) > MAX_EDITS
    for edit in edits[:MAX_EDITS]:
        path = redact(edit.path) if size(edit.path) <= MAX_PATH_BYTES else ""
        left -= size(path)
        if not path or left <= 0:
            was_cut = True
            continue
        # An old text takes no more than half, so that something of the new one is always seen.
        old_text, old_was_cut = (None, False) if edit.old_text is None else _cut(edit.old_text, left // 2)
        left -= size(old_text or "")
        new_text, new_was_cut = _cut(edit.new_text, left)
        left -= size(new_text)
        was_cut = was_cut or old_was_cut or new_was_cut
        fitting.append(Edit(path, old_text, new_text))
    return fitting, sum(map(_size, edits)) if was_cut else 0


def _cut(text: str, max_bytes: int) -> tuple[str, bool]:
    redacted = redact_beginning(text, max_bytes)
    cut = cut_bytes(redacted, max_bytes)
    return cut, len(cut) < len(redacted)


def _size(edit: Edit) -> int:
    return size(edit.path) + size(edit.old_text or "") + size(edit.new_text)
