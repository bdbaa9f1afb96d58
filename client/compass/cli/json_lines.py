"""Standard output for a program: canonical protobuf JSON, one object a line."""

import sys
from collections.abc import Iterable

from google.protobuf.message import Message

from compass.cli.printable import json_line
from compass.fold import Item
from compass.gap import Gap


def print_json(*messages: Message) -> None:
    """Write messages, and send them on their way."""
    sys.stdout.write("".join(f"{json_line(message)}\n" for message in messages))
    sys.stdout.flush()


class JsonLines:
    """Writes what a tail yields as the frames that carry it. The same shape as FrameRenderer."""

    def __init__(self, session: str) -> None:
        self._session = session

    def render(self, items: Iterable[Item]) -> None:
        """Write some items."""
        print_json(*(item.to_frame(self._session) if isinstance(item, Gap) else item for item in items))

    def close(self) -> None:
        """Do nothing: every line is ended."""
