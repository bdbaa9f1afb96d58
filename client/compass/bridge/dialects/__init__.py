"""The families of agents that the bridge speaks to, a module each."""

from collections.abc import Callable

from compass.bridge.dialects.dialect import Command, Dialect
from compass.bridge.dialects.heard import AgentState, Answer, Aside, Dialog, Heard, Inner, Ready
from compass.bridge.dialects.omp import OmpDialect
from compass.bridge.dialects.pi import PiDialect

DIALECTS: dict[str, Callable[[], Dialect]] = {"omp": OmpDialect, "pi": PiDialect}
"""By name, as `--dialect` takes it."""

__all__ = [
    "DIALECTS",
    "AgentState",
    "Answer",
    "Aside",
    "Command",
    "Dialect",
    "Dialog",
    "Heard",
    "Inner",
    "OmpDialect",
    "PiDialect",
    "Ready",
]
