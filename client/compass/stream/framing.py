"""From bytes to raw events: server-sent events and newline-delimited JSON, as providers really send them.

A decoder of our own, since the libraries at hand lose what the contract needs: httpx's lines break at U+2028 and
U+0085, which may stand raw in JSON; httpx-sse insists on a content type, drops a last event without its blank line,
holds a line that ends in CR until the next byte, and drops every line that is no field, which is where errors arrive.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from compass.failures import Category
from compass.limits import MAX_REQUEST_BYTES
from compass.stream.errors import ModelStreamError, failure

MAX_EVENT_BYTES = MAX_REQUEST_BYTES
"""A line or an event larger than this is refused: no provider sends one, and a body without line ends must end."""
MAX_STRAY_CHARS = 16 * 1024
"""How much is kept of lines that are no fields; an error fits, a page is not needed."""

_SSE_LINE_END = re.compile(rb"\r\n|\r|\n")
_NDJSON_LINE_END = re.compile(rb"\n")
_FIELDS = (b"data", b"event", b"id", b"retry")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class RawEvent:
    """One event as it was framed, its data not yet read."""

    data: str
    name: str = ""
    """The SSE event name, empty when it has none."""
    is_stray: bool = False
    """Whether it stood outside of any frame. Only an error counts there."""


def too_large() -> ModelStreamError:
    """Make the error for what passes `MAX_EVENT_BYTES`."""
    return failure(Category.MALFORMED_RESPONSE, f"the stream holds something larger than {MAX_EVENT_BYTES} bytes")


class Framing(Enum):
    """How a provider cuts its stream into events."""

    SSE = "server-sent events"
    NDJSON = "one JSON object a line"

    def decoder(self) -> "SseDecoder | NdjsonDecoder":
        """Make a decoder for one body."""
        return SseDecoder() if self is Framing.SSE else NdjsonDecoder()


class LineSplitter:
    """Splits bytes into lines, each given out as soon as its end is known: nothing waits for the byte after a CR."""

    def __init__(self, line_end: re.Pattern[bytes]) -> None:
        self._line_end = line_end
        self._rest = bytearray()
        self._ended_in_cr = False

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes of the body; return the lines they complete, without their ends."""
        if self._ended_in_cr and data.startswith(b"\n"):
            data = data[1:]
            self._ended_in_cr = False
        if not data:
            return []
        self._ended_in_cr = self._line_end is _SSE_LINE_END and data.endswith(b"\r")
        first, *others = self._line_end.split(data)
        self._rest += first
        if len(self._rest) > MAX_EVENT_BYTES:
            raise too_large()
        if not others:
            return []
        lines = [bytes(self._rest), *others[:-1]]
        self._rest = bytearray(others[-1])
        return lines

    def close(self) -> list[bytes]:
        """Return the last line, if the body ended without ending it."""
        return [bytes(self._rest)] if self._rest else []


class NdjsonDecoder:
    """Reads a body of one JSON object a line."""

    def __init__(self) -> None:
        self.is_foreign = False
        """Always False: here every line is a frame, and one that is none does not parse."""
        self._lines = LineSplitter(_NDJSON_LINE_END)

    def feed(self, data: bytes) -> Iterator[RawEvent]:
        """Take the next bytes of the body; yield the events they complete."""
        return _json_lines(self._lines.feed(data))

    def close(self) -> Iterator[RawEvent]:
        """Take the end of the body; yield what it completes."""
        return _json_lines(self._lines.close())


class SseDecoder:
    """Reads a body of server-sent events. Comments, ids, retry hints and events without data are nothing."""

    def __init__(self) -> None:
        self._lines = LineSplitter(_SSE_LINE_END)
        self._open = _OpenEvent()
        self._stray = _Stray()
        self._at_start = True
        self._has_events = False

    @property
    def is_foreign(self) -> bool:
        """Whether the body held something, but nothing that looks like server-sent events: a page, say."""
        return self._stray.num_chars > 0 and not self._has_events

    def feed(self, data: bytes) -> Iterator[RawEvent]:
        """Take the next bytes of the body; yield the events they complete."""
        for line in self._lines.feed(data):
            yield from self._read(line)

    def close(self) -> Iterator[RawEvent]:
        """Take the end of the body; yield what it completes. An event counts without its blank line, if it is whole."""
        for line in self._lines.close():
            if not any(name.startswith(line) for name in _FIELDS):  # a name that was cut is no stray line
                yield from self._read(line)
        yield from self._dispatch()

    def _read(self, line: bytes) -> Iterator[RawEvent]:
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_BOM)
        if not line:
            self._stray.end_block()
            yield from self._dispatch()
            return
        name, _, value = line.partition(b":")
        text = value.removeprefix(b" ").decode(errors="replace")
        match name:
            case b"data":
                self._open.add(text)
            case b"event":
                self._open.name = text
            case b"error" if text:  # older llama.cpp servers: a field of that name, outside of any event
                yield RawEvent(text, name="error")
            case b"" | b"id" | b"retry" | b"error":
                pass
            case _:
                self._stray.add(line.decode(errors="replace").rstrip())
                yield from self._stray.events()

    def _dispatch(self) -> Iterator[RawEvent]:
        event, self._open = self._open.whole(), _OpenEvent()
        if event.data:
            self._has_events = True
            yield event


@dataclass(slots=True)
class _OpenEvent:
    name: str = ""
    data: list[str] = field(default_factory=list)
    size: int = 0

    def add(self, text: str) -> None:
        self.size += len(text)
        if self.size > MAX_EVENT_BYTES:
            raise too_large()
        self.data.append(text)

    def whole(self) -> RawEvent:
        return RawEvent("\n".join(self.data), self.name)


class _Stray:
    """Lines that are no fields. They may be an error in plain JSON, on one line or pretty-printed over many."""

    def __init__(self) -> None:
        self.num_chars = 0
        self._block = ""

    def add(self, text: str) -> None:
        self.num_chars += len(text) + 1
        if self.num_chars <= MAX_STRAY_CHARS:
            self._block += text + "\n"

    def end_block(self) -> None:
        self._block = ""

    def events(self) -> Iterator[RawEvent]:
        """Yield the block so far, if it may be whole: whoever reads it finds out."""
        if self._block.endswith(("}\n", "]\n")):
            yield RawEvent(self._block, is_stray=True)


def _json_lines(lines: list[bytes]) -> Iterator[RawEvent]:
    for line in lines:
        if text := line.decode(errors="replace").strip():
            yield RawEvent(text)
