"""Libraries that the extra `stream` brings, imported when they are first needed: importing compass needs none."""

from importlib import import_module
from types import ModuleType


def required(name: str) -> ModuleType:
    """Import a library of the extra; an ImportError that names the extra if it is not there."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ModuleNotFoundError(
            f"compass.stream needs {name}: pip install 'compass-trace[stream]'",
            name=name,
        ) from None
