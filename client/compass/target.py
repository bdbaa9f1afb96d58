"""Where a server is: the address that an SDK is given, or finds in the environment."""

import os
import re

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 7420
ENVIRONMENT_VARIABLE = "COMPASS_SERVER"

_HOST_PORT = re.compile(r"(?:\[[0-9A-Fa-f:.%]+\]|[^\s:/\[\]]+):[0-9]{1,5}")
_UNIX = re.compile(r"unix:[^\s]+")


def resolve(target: str | None) -> str:
    """Return the address to dial: the one given, else COMPASS_SERVER, else the default. Raises ValueError."""
    address = target or os.environ.get(ENVIRONMENT_VARIABLE) or f"{DEFAULT_HOST}:{DEFAULT_PORT}"
    if not (_HOST_PORT.fullmatch(address) or _UNIX.fullmatch(address)):
        raise ValueError(f"a server's address is HOST:PORT or unix:/PATH, got {address!r}")
    return address
