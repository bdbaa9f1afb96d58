"""What the benchmarks say of themselves: bounds, medians, and the table in the documentation."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "bench"))

from harness.report import Target, medians, percentile
from harness.table import DOCUMENT, document, table

MACHINE = {"cores": 2, "load_before": 0.5, "python": "3.11.7"}
MISSED = {
    "what": "push",
    "command": "python bench/push.py",
    "quick": False,
    "machine": MACHINE,
    "met": False,
    "target": {"unit": "events/s", "at_least": 50_000},
    "value": 49_000,
    "peers": {"stub": 100_000},
    "ratios": {"SDK to stub": 0.49},
    "details": {},
}


@pytest.mark.parametrize(
    ("target", "value", "is_met"),
    [
        (Target("ms", at_most=50), 50, True),
        (Target("ms", at_most=50), 50.1, False),
        (Target("events/s", at_least=100), 100, True),
        (Target("events/s", at_least=100), 99, False),
    ],
)
def test_a_target_is_met_on_its_bound_and_not_beyond(target: Target, value: float, is_met: bool) -> None:
    assert is_met == target.is_met(value)


def test_figures_of_several_runs_become_their_medians() -> None:
    runs = [{"a": 1, "b": 5}, {"a": 2, "b": 9}, {"a": 3, "b": 1}]
    assert medians(runs) == {"a": 2, "b": 5}


@pytest.mark.parametrize(("percent", "value"), [(0, 1), (50, 51), (99, 100), (100, 100)])
def test_a_percentile_is_one_of_the_values(percent: int, value: float) -> None:
    assert value == percentile(range(100, 0, -1), percent)


def test_the_table_says_what_was_missed_and_leaves_out_what_has_no_target() -> None:
    lines = table([MISSED, {"us_per_event": 1.0}]).splitlines()

    assert len(lines) == 5
    assert "| push | 49,000 events/s (**missed**) | at least 50,000 events/s |" in lines[2]
    assert "stub: 100,000 events/s; SDK to stub: 0.49" in lines[2]
    assert "load average 0.5 to 0.5" in lines[4]


def test_a_table_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text("before\n<!-- measured: begin -->\nold\n<!-- measured: end -->\nafter\n")

    document("new", page)

    assert page.read_text() == "before\n<!-- measured: begin -->\nnew\n<!-- measured: end -->\nafter\n"


def test_the_documentation_has_a_place_for_the_table() -> None:
    assert "<!-- measured: begin -->" in DOCUMENT.read_text()
