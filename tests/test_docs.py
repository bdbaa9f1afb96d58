"""The docs are true: links lead somewhere, tables agree with the code, invariants are held by tests that exist."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.rpc import code_pb2
from pydantic import BaseModel

from compass.lanes import is_priority
from compass.v1 import compass_pb2 as pb
from compass_service import problems
from compass_service.doors import status
from compass_service.server.config import Config

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
INVARIANTS = range(1, 12)


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the first table under a heading, without its head."""
    _, _, section = (ROOT / page).read_text().partition(f"\n## {heading}\n")
    table = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)
    assert table, f"{page} has no table under {heading}"
    return [[cell.strip() for cell in line.strip("|").split(" |")] for line in table[0].splitlines()[2:]]


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\((?!\w+:)([^)]+)\)", page.read_text()):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


def test_the_protocol_page_puts_every_event_in_its_lane() -> None:
    lanes = {arm: lane for cell, lane, _ in rows("docs/protocol.md", "Frames") for arm in re.findall(r"`(\w+)`", cell)}
    del lanes["state"], lanes["gap"]
    events = pb.SessionEvent.DESCRIPTOR.oneofs_by_name["event"].fields
    assert {arm: lane.split(",")[0] for arm, lane in lanes.items()} == {
        event.name: "priority" if is_priority(_frame(event.name)) else "trace" for event in events
    }


def _frame(arm: str) -> pb.AgentSessionFrame:
    event = pb.SessionEvent()
    getattr(event, arm).SetInParent()
    return pb.AgentSessionFrame(event=event)


def test_the_protocol_page_lists_every_reason_with_its_code() -> None:
    refusals = {(code_pb2.Code.Name(row.code), row.reason) for row in status._ROWS.values()}
    refusals |= {("INVALID_ARGUMENT", refusal.reason) for refusal in _subclasses(problems.InvalidRequestError)}
    told = {
        (code, reason) for code, reasons, *_ in rows("docs/protocol.md", "Errors") for reason in reasons.split(", ")
    }
    assert told == refusals | {("INTERNAL", "INTERNAL"), ("RESOURCE_EXHAUSTED", "none")}


def _subclasses(root: type) -> set[type]:
    return {root}.union(*map(_subclasses, root.__subclasses__()))


def test_the_operations_page_lists_every_setting_with_its_default() -> None:
    told = {name.strip("`"): default.strip("`") for name, default, _ in rows("docs/operations.md", "Configuration")}
    assert told == dict(_settings(Config))


def _settings(part: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, field in part.model_fields.items():
        if isinstance(field.default, BaseModel):
            yield from _settings(type(field.default), f"{prefix}{name}.")
        else:
            yield prefix + name, _spell(field.default)


def _spell(default: object) -> str:
    match default:
        case None:
            return ""
        case list():
            return ", ".join(default)
        case bool():
            return str(default).lower()
        case _:
            return str(default)


def test_the_operations_page_lists_every_event_that_the_server_logs() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "service").rglob("*.py"))
    logged = set(re.findall(r'\b_log(?:ger\.|\.|_cause)\w*\(\s*"(\w+)"', sources))
    table = rows("docs/operations.md", "Health, and seeing inside")
    assert {event for names, *_ in table for event in re.findall(r"`(\w+)`", names)} == logged


def test_every_invariant_is_held_by_tests_that_exist() -> None:
    held = {
        int(number): re.findall(r"`([\w/.]+::\w+)`", tests)
        for number, _, tests in rows("docs/invariants.md", "What always holds")
    }
    assert sorted(held) == list(INVARIANTS)
    assert [number for number, tests in held.items() if not tests] == []
    assert [test for tests in held.values() for test in tests if not _exists(test)] == []


def _exists(test: str) -> bool:
    path, _, name = test.partition("::")
    if not (ROOT / path).is_file():
        return False
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    tree = ast.parse((ROOT / path).read_text())
    return any(isinstance(node, functions) and node.name == name for node in ast.walk(tree))
