"""The demo does what the README says of it: it ends by itself, and well, in under a minute."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(60)
async def test_the_demo_shows_three_endings_to_a_stalled_pane() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "examples/demo.py",
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "client"), str(ROOT / "service")))},
    )
    output, _ = await process.communicate()
    stalled = [line for line in output.decode().split("\n") if "the stalled pane" in line]
    assert process.returncode == 0
    assert [line.partition("still got: ")[2].partition(";")[0] for line in stalled] == [
        "end",
        "error, end",
        "abort, end",
    ]
