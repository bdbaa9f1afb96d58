"""Events that give no frame: silent, or without a mapping, counted by type and logged once per type and session."""

import structlog

from compass_service.mapper.writer import FrameWriter

_log = structlog.get_logger()


def count_unmapped(writer: FrameWriter, type_name: str) -> None:
    """Count an event that gives no frame."""
    if writer.state.counts.count_unmapped(type_name):
        _log.info("inner_event_unmapped", session=writer.session_id, type=type_name)


def silent(_writer: FrameWriter, _event: object) -> None:
    """Give no frame, and count nothing: the event says nothing that others do not."""
