"""Inner events in, frames out. Pure: no I/O and no clock."""

from compass_service.mapper.decode import NotAnObjectError
from compass_service.mapper.mapper import Mapper
from compass_service.mapper.state import MapperState, activity_message

__all__ = ["Mapper", "MapperState", "NotAnObjectError", "activity_message"]
