"""How long and how much of a session the log keeps. What the limits mean when they are reached is in `trim`."""

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Retention:
    """Limits of the session log. None is no limit.

    Trace frames go first, the oldest first; priority frames go only where that is not enough.
    """

    age_ms: int | None = None
    """Records older than this go whole. A session of which nothing younger is left is removed."""
    session_bytes: int | None = None
    """Frame bytes that one session keeps."""
    total_bytes: int | None = None
    """Frame bytes that all sessions together keep."""
    trace_age_ms: int | None = None
    """Trace frames older than this go; the priority frames beside them stay."""

    def __post_init__(self) -> None:
        """Refuse a limit that would keep nothing."""
        for field in fields(self):
            limit = getattr(self, field.name)
            if limit is not None and limit < 1:
                raise ValueError(f"{field.name} must be at least 1 or None, got {limit}")
