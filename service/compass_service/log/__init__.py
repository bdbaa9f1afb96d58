"""The session log: append batches of already serialized frames, read from a seq."""

from compass_service.log.retention import Retention
from compass_service.log.sqlite_log import SqliteLog

__all__ = ["Retention", "SqliteLog"]
