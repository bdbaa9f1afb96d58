"""The measured values as a Markdown table, and where the documentation keeps it."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness import ROOT

DOCUMENT = ROOT / "docs" / "performance.md"
_BEGIN, _END = "<!-- measured: begin -->", "<!-- measured: end -->"
_HEAD = "| what | value | target | beside it, in the same run | command |\n|---|---|---|---|---|"


def table(reports: Sequence[dict[str, Any]]) -> str:
    """Return a row for each report that has a target, and a line on how they were measured."""
    measured = [report for report in reports if "target" in report]
    rows = [_row(report) for report in measured]
    return "\n".join([_HEAD, *rows, "", _footnote(measured)])


def document(text: str, path: Path = DOCUMENT) -> None:
    """Put a table in its place in the documentation."""
    held = path.read_text()
    path.write_text(re.sub(f"(?s){_BEGIN}.*{_END}", lambda _: f"{_BEGIN}\n{text}\n{_END}", held))


def _row(report: dict[str, Any]) -> str:
    target = report["target"]
    unit = target["unit"]
    bound = f"at least {target['at_least']:,}" if "at_least" in target else f"at most {target['at_most']:,}"
    value = f"{_number(report['value'])} {unit}{'' if report['met'] else ' (**missed**)'}"
    beside = [f"{name}: {_number(peer)} {unit}" for name, peer in report["peers"].items()]
    beside += [f"{name}: {_number(ratio)}" for name, ratio in report["ratios"].items()]
    beside = beside or [f"{name}: {_number(detail)}" for name, detail in report["details"].items()]
    cells = [report["what"], value, f"{bound} {unit}", "; ".join(beside), f"`{report['command']}`"]
    return f"| {' | '.join(cells)} |"


def _footnote(reports: Sequence[dict[str, Any]]) -> str:
    loads = [report["machine"]["load_before"] for report in reports] or [0]
    machine = reports[0]["machine"] if reports else {"cores": 0, "python": ""}
    quick = " Quick runs: these values mean nothing." if any(report["quick"] for report in reports) else ""
    return (
        f"{machine['cores']} cores, Python {machine['python']}, load average {min(loads)} to {max(loads)} before each "
        f"benchmark.{quick}"
    )


def _number(value: float) -> str:
    return f"{value:,}"
