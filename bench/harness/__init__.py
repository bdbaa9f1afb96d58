"""What the benchmarks share: a server in a process of its own, clients in others, and one JSON object at the end."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = [str(ROOT / "client"), str(ROOT / "service")]
sys.path[:0] = SOURCES  # a checkout is measured as it is, installed or not

NUM_RUNS = 3
MIB = 1024 * 1024
