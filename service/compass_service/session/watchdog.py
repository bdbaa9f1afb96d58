"""When a phase has been silent for too long. Pure."""

from collections.abc import Mapping

from compass.v1 import compass_pb2 as pb
from compass_service.mapper import MapperState

PhaseLimits = Mapping[int, int]
"""Milliseconds that a phase (SessionPhase) may be silent. A phase that is not in it never stalls."""


def is_stalled(state: MapperState, limits: PhaseLimits, *, now_ms: int) -> bool:
    """Tell whether the phase has had no inner event for longer than it may take, and is not marked yet.

    A retry may be silent for as long as the agent said it would wait, and for its limit after that.
    """
    current = state.activity
    limit_ms = limits.get(current.phase)
    if limit_ms is None or current.stalled:
        return False
    if current.phase == pb.SESSION_PHASE_RETRYING:
        limit_ms += current.delay_ms
    return now_ms - max(state.last_event_ms, current.started_at_unix_ms) >= limit_ms
