"""The proto tools that the tests run: buf and protoc, both from the environment that runs the tests."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FROZEN = ROOT / "tests/contract/frozen"
RELEASED = ROOT / "tests/contract/released.binpb"


def buf(*arguments: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run buf and return what it said, whatever its exit code."""
    beside = shutil.which("buf", path=Path(sys.executable).parent) or shutil.which("buf")
    assert beside, "buf is missing: install the dev extra"
    return subprocess.run([beside, *arguments], cwd=cwd, capture_output=True, text=True, timeout=30, check=False)


def compile_frozen(out: Path, *outputs: str) -> None:
    """Run protoc on nothing but the frozen file."""
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{FROZEN}", *outputs, "compass/v1/compass.proto"]
    subprocess.run(command, cwd=out, check=True, timeout=30)
