"""The docs are true: links lead somewhere, tables agree with the code, invariants are held by tests that exist."""

import ast
import re
from pathlib import Path

import pytest

from compass.lanes import is_priority
from compass.v1 import compass_pb2 as pb

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
    lanes = {
        arm: lane for cell, lane, _ in rows("docs/protocol.md", "Frames") for arm in re.findall(r"`(\w+)`", cell)
    }
    del lanes["state"], lanes["gap"]
    events = pb.SessionEvent.DESCRIPTOR.oneofs_by_name["event"].fields
    assert {arm: lane.split(",")[0] for arm, lane in lanes.items()} == {
        event.name: "priority" if is_priority(_frame(event.name)) else "trace" for event in events
    }


def _frame(arm: str) -> pb.AgentSessionFrame:
    event = pb.SessionEvent()
    getattr(event, arm).SetInParent()
    return pb.AgentSessionFrame(event=event)
