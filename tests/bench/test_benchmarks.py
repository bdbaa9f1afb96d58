"""The benchmarks work: each runs, quickly, and says what it measured. What they measured then means nothing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ["catch_up", "fan_out", "idle", "priority", "push", "slim", "stalled"]


@pytest.mark.slow
@pytest.mark.timeout(90)
@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_prints_one_object_with_its_value_beside_its_target(name: str) -> None:
    command = [sys.executable, str(ROOT / "bench" / f"{name}.py"), "--quick"]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout

    report = json.loads(output)

    assert name == report["name"]
    assert report["runs"]
    assert min(report["runs"]) <= report["value"] <= max(report["runs"])
    assert min(report["runs"]) > 0
    assert {"unit"} < set(report["target"])
    assert report["met"] in {True, False}


def test_every_benchmark_with_a_target_is_tried_here() -> None:
    with_target = [path.stem for path in (ROOT / "bench").glob("*.py") if "harness" in path.read_text()]
    assert sorted(with_target) == BENCHMARKS
