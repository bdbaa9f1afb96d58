"""Puts an internal cause on an OpenTelemetry span. Without the `otel` extra, and without a span, it does nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    from opentelemetry import trace
except ImportError:  # the extra is not installed
    trace = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from compass.failures.problem import Observed


def record_cause(observed: Observed, *, correlation_id: str, span: Span | None = None) -> None:
    """Record what was observed on a span, the current one by default, under the id that the client gets."""
    if trace is None:
        return
    span = span or trace.get_current_span()
    if not span.is_recording():
        return
    span.set_attribute("compass.correlation_id", correlation_id)
    span.set_status(trace.Status(trace.StatusCode.ERROR, observed.problem))
    if observed.cause is not None:
        span.add_event(
            "exception",
            {
                "exception.type": observed.cause.type_name,
                "exception.message": observed.cause.text,
                "exception.stacktrace": observed.cause.traceback,
            },
        )
