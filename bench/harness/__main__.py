"""Run every benchmark: print what each reports as one JSON object a line, then the table."""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from harness import ROOT
from harness.table import document, table


def main() -> None:
    """Measure everything. A missed target is told in the table; a benchmark that fails raises CalledProcessError."""
    parser = argparse.ArgumentParser(prog="python -m harness", description=__doc__)
    parser.add_argument("--document", action="store_true", help="put the table into docs/performance.md")
    in_document = parser.parse_args().document
    reports = [_run(script) for script in sorted((ROOT / "bench").glob("*.py"))]
    text = table(reports)
    print(text)
    if in_document:
        document(text)


def _run(script: Path) -> dict[str, Any]:
    """Run one script. Those of a single module have a report of their own, without a target."""
    output = subprocess.run([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, check=True).stdout
    print(output, end="", flush=True)
    report: dict[str, Any] = json.loads(output)
    return report


if __name__ == "__main__":
    main()
