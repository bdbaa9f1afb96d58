"""How long a provider asks to wait, from the best source that says so."""

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from compass.failures.evidence import Evidence

_MAX_WAIT_MS = 366 * 24 * 3_600_000
"""Nothing longer is believed."""
_EPOCH_MS_FROM = 1e11
"""An epoch above this is in milliseconds: in seconds it would lie three thousand years ahead."""

_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_PART = re.compile(
    r"(\d{1,9}(?:\.\d{1,9})?) ?"
    r"(?:(?P<ms>ms|milliseconds?)|(?P<s>seconds?|secs?|s)|(?P<m>minutes?|mins?|m)|(?P<h>hours?|h)|(?P<d>days?|d))(?![a-z])",
)
_IN_PROSE = re.compile(
    r"\b(?:try again|retry|retrying|wait)(?: after| in| for)? ((?:\d[\d.]{0,15} ?[a-z]{1,12} ?){1,3})"
)


def retry_after_ms(evidence: Evidence, *, is_rate_limit: bool) -> int | None:
    """Return the wait that the provider asks for, None when it does not say.

    Headers that describe a limit stand on successes and on other failures too: they count for a rate limit only.
    """
    return next((wait for wait in _waits(evidence, is_rate_limit=is_rate_limit) if wait is not None), None)


def has_retry_after(evidence: Evidence) -> bool:
    """Tell whether a header asks to wait."""
    return any(_asked(headers) is not None for headers in (evidence.headers, evidence.inner_headers))


def _waits(evidence: Evidence, *, is_rate_limit: bool) -> Iterator[int | None]:
    header_sets = (evidence.headers, evidence.inner_headers)
    for headers in header_sets:
        yield _asked(headers)
    for delay in evidence.retry_delays:
        yield _duration(delay)
    if is_rate_limit:
        for headers in header_sets:
            yield from _limits(headers, evidence.words)
    for text in evidence.texts:
        yield _prose(text)


def _asked(headers: Mapping[str, str]) -> int | None:
    wait = _bounded(_number(headers.get("retry-after-ms")))
    if wait is not None:
        return wait
    value = headers.get("retry-after")
    seconds = _number(value)
    if value is None or seconds is not None:
        return _bounded(None if seconds is None else seconds * 1_000)
    return _until_date(value)


class _Limit(NamedTuple):
    """The headers of one bucket of a rate limit."""

    name: str
    reset: str
    remaining: str
    read: Callable[[str], int | None]


def _limits(headers: Mapping[str, str], words: list[str]) -> Iterator[int | None]:
    for family in _FAMILIES:
        known = [
            (limit, wait)
            for limit in family
            if limit.reset in headers and (wait := limit.read(headers[limit.reset])) is not None
        ]
        named = [wait for limit, wait in known if limit.name in words]
        exhausted = [wait for limit, wait in known if headers.get(limit.remaining, "").strip() == "0"]
        yield max(named or exhausted or [wait for _, wait in known], default=None)


def _prose(text: str) -> int | None:
    found = _IN_PROSE.search(text[:4_096])
    if found is None:
        return None
    return _sum(found.group(1))


def _duration(value: str) -> int | None:
    """Read `34.07s`, `900ms`, `6m0s`, or bare seconds."""
    seconds = _number(value)
    if seconds is not None:
        return _bounded(seconds * 1_000)
    return _sum(value.strip().casefold())


def _sum(text: str) -> int | None:
    parts = [float(part.group(1)) * _UNIT_MS[part.lastgroup or "s"] for part in _PART.finditer(text)]
    return _bounded(sum(parts)) if parts else None


def _number(value: str | None) -> float | None:
    if value is None or not value.isascii() or "_" in value:  # which float() takes, and no header has
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _bounded(wait_ms: float | None) -> int | None:
    return math.ceil(wait_ms) if wait_ms is not None and 0 <= wait_ms <= _MAX_WAIT_MS else None


def _until_date(value: str) -> int | None:
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    return _until(date)


def _until_instant(value: str) -> int | None:
    try:
        date = datetime.fromisoformat(value.strip().upper())
    except ValueError:
        return None
    return _until(date)


def _until_epoch(value: str) -> int | None:
    number = _number(value)
    if number is None:
        return None
    return _bounded((number if number > _EPOCH_MS_FROM else number * 1_000) - time.time() * 1_000)


def _until(date: datetime) -> int | None:
    aware = date if date.tzinfo else date.replace(tzinfo=UTC)
    return _bounded((aware.timestamp() - time.time()) * 1_000)


_FAMILIES = (
    tuple(
        _Limit(name, f"x-ratelimit-reset-{name}", f"x-ratelimit-remaining-{name}", _duration)
        for name in ("requests", "tokens")
    ),
    tuple(
        _Limit(name, f"anthropic-ratelimit-{name}-reset", f"anthropic-ratelimit-{name}-remaining", _until_instant)
        for name in ("requests", "tokens", "input-tokens", "output-tokens")
    ),
    (_Limit("unified", "anthropic-ratelimit-unified-reset", "", _until_epoch),),
    (_Limit("", "x-ratelimit-reset", "x-ratelimit-remaining", _until_epoch),),
)
"""Best first."""
