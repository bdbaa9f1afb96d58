"""Characters that a provider cut in two: half a surrogate pair at the end of one delta, its other half in the next."""

from collections.abc import Iterator

from compass.failures.bounds import valid_text
from compass.stream.chunks import Chunk, ChunkKind

_FIRST_HALVES = ("\ud800", "\udbff")


class HalfKeeper:
    """Keeps half a character back until its other half comes, so that every chunk can be printed and encoded."""

    def __init__(self) -> None:
        self._halves: dict[ChunkKind, str] = {}

    def whole(self, kind: ChunkKind, text: str) -> Iterator[Chunk]:
        """Take a delta; yield what of it is whole. A half that never gets its other becomes U+FFFD."""
        text = self._halves.pop(kind, "") + text
        if _FIRST_HALVES[0] <= text[-1] <= _FIRST_HALVES[1]:
            self._halves[kind], text = text[-1], text[:-1]
        if text:
            yield Chunk(kind, valid_text(text))

    def flush(self) -> list[Chunk]:
        """Return the halves that are left when the answer is over."""
        kinds, self._halves = list(self._halves), {}
        return [Chunk(kind, "\ufffd") for kind in kinds]
