"""Numbers as agents write them, fitted to the integers of the wire."""

import math

from compass.v1 import compass_pb2 as pb
from compass_service.mapper.fields import MessageUsage
from compass_service.mapper.state import MapperState

MAX_INT32 = 2**31 - 1
MAX_INT64 = 2**63 - 1
MICRODOLLARS = 1_000_000
_FIRST_STATUS, _LAST_STATUS = 100, 599


def count_of(value: float, limit: int = MAX_INT64) -> int:
    """Round a number that is no less than 0 to an integer within the limit. Nonsense is 0."""
    if not math.isfinite(value) or value < 0:
        return 0
    return min(round(value), limit)


def status_of(value: object) -> int | None:
    """Return the HTTP status that an agent reports, None if what it wrote is none: some write -1 for a cut stream."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if _FIRST_STATUS <= value <= _LAST_STATUS else None


def usage_of(state: MapperState, usage: MessageUsage | None) -> pb.SessionUsage | None:
    """Report what a message used, and add it to the totals of the session."""
    if usage is None:
        return None
    reported = pb.SessionUsage(
        input_tokens=count_of(usage.input),
        output_tokens=count_of(usage.output),
        cache_read_tokens=count_of(usage.cache_read),
        cache_write_tokens=count_of(usage.cache_write),
        cost_microdollars=count_of(usage.cost.total * MICRODOLLARS) if usage.cost else 0,
    )
    total = state.usage
    total.input_tokens = min(total.input_tokens + reported.input_tokens, MAX_INT64)
    total.output_tokens = min(total.output_tokens + reported.output_tokens, MAX_INT64)
    total.cache_read_tokens = min(total.cache_read_tokens + reported.cache_read_tokens, MAX_INT64)
    total.cache_write_tokens = min(total.cache_write_tokens + reported.cache_write_tokens, MAX_INT64)
    total.cost_microdollars = min(total.cost_microdollars + reported.cost_microdollars, MAX_INT64)
    return reported
