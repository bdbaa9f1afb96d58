"""The page about failures agrees with the code."""

import re
from pathlib import Path

from compass.failures import Category
from compass.failures.dialects import DIALECTS
from compass.run_events import KINDS
from compass.run_events.registry import words_of
from compass.v1 import run_event_pb2 as pb

PAGE = (Path(__file__).parents[3] / "docs" / "failures.md").read_text()


def table_rows(heading: str) -> list[list[str]]:
    _, _, section = PAGE.partition(f"\n## {heading}\n")
    section = section.partition("\n## ")[0]
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("| ")
    ]


def test_the_categories_are_listed_with_their_default_and_advice():
    listed = {row[0]: (row[2], row[3]) for row in table_rows("Categories")[1:]}
    assert listed == {c.name: ("yes" if c.retryable else "no", c.advice) for c in Category}


def test_the_kinds_of_run_events_are_listed_with_their_fields():
    listed = {
        kind: set(re.findall(r"`(\w+)`", row[1]))
        for row in table_rows("Run events")
        for kind in re.findall(r"`(\w+)`", row[0])
        if kind in KINDS
    }
    assert listed == {kind.name: {field.name for field in kind.fields} for kind in KINDS.values()}


def test_the_words_of_enums_are_listed():
    listed = {row[0].strip("`"): set(row[1].split(", ")) for row in table_rows("Run events")}
    assert listed["status"] == set(words_of(pb.RunStatus.DESCRIPTOR))
    assert listed["scope"] == set(words_of(pb.RunScope.DESCRIPTOR))
    assert listed["decision"] == set(words_of(pb.ApprovalDecision.DESCRIPTOR))


def test_every_dialect_is_named():
    named = PAGE.partition("`provider` is one of ")[2].partition("any other name")[0]
    assert set(DIALECTS) == set(re.findall(r"[a-z][a-z.-]+[a-z]", named)) & set(DIALECTS)
