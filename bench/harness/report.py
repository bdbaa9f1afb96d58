"""What a benchmark says: a measured value beside its target, what it was compared to, and how it was run."""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Target:
    """What a value must reach. One of the two bounds is set."""

    unit: str
    at_least: float | None = None
    at_most: float | None = None

    def is_met(self, value: float) -> bool:
        """Tell whether the value is on the right side of the bound."""
        return value <= self.at_most if self.at_most is not None else value >= (self.at_least or 0)


@dataclass(frozen=True, slots=True)
class Report:
    """What a benchmark found."""

    what: str
    target: Target
    value: float
    """Median of the runs; of the worst variant, where there are several."""
    runs: Sequence[float]
    peers: dict[str, float] = field(default_factory=dict)
    """The same thing done in other ways in the same run, in the same unit."""
    ratios: dict[str, float] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)


class Measure(Protocol):
    """A benchmark. A quick one only shows that it works: its values mean nothing."""

    def __call__(self, *, quick: bool) -> Report:
        """Measure."""
        ...


def main(measure: Measure) -> None:
    """Run a benchmark as a command. Prints one JSON object."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--quick", action="store_true", help="run small, only to see that the script works")
    quick = parser.parse_args().quick
    name = Path(sys.argv[0]).stem
    machine = {"cores": os.cpu_count(), "load_before": os.getloadavg()[0], "python": sys.version.split()[0]}
    report = measure(quick=quick)
    facts = {"name": name, "command": f"python bench/{name}.py", "quick": quick, "machine": machine}
    print(json.dumps(_rounded({**facts, "met": report.target.is_met(report.value), **asdict(report)})))


def medians(runs: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the median of each figure over the runs."""
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the value that so many percent of the values do not pass."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def now_ms() -> float:
    """Return a time that all processes of this machine share."""
    return time.monotonic_ns() / 1e6


def _rounded(value: Any) -> Any:
    """Round to what is worth reading, and leave out what is not set."""
    if isinstance(value, float):
        return round(value) if abs(value) >= 1_000 else float(f"{value:.3g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items() if item is not None}
    return [_rounded(item) for item in value] if isinstance(value, list | tuple) else value
