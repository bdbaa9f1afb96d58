"""Logging: structlog events on stderr, one line each; the standard library's records go the same way."""

import logging
import sys
from typing import Literal

import structlog

from compass.failures import redact_event


def configure(form: Literal["json", "console"], level: str) -> None:
    """Send every log event of this process to stderr in one form, secrets redacted."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
        redact_event,
    ]
    last: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, last],
        ),
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    # A client that leaves during a blocked write is no fault of ours; the library logs it as an error with a traceback.
    logging.getLogger("grpc._cython.cygrpc").addFilter(_is_not_a_departure)


def _is_not_a_departure(record: logging.LogRecord) -> bool:
    return "ExecuteBatchError" not in record.getMessage()
