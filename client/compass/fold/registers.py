"""Values that are written with a seq, so that the order in which the writes arrive is moot."""

from collections.abc import Iterable
from itertools import groupby
from typing import Generic, TypeVar

from compass.fold.ranges import SeqRanges

T = TypeVar("T")


class Latest(Generic[T]):
    """A value that the write with the highest seq decides."""

    __slots__ = ("seq", "value")

    def __init__(self, value: T) -> None:
        self.value = value
        self.seq = -1

    def put(self, seq: int, value: T) -> None:
        """Write a value, unless a later one is there."""
        if seq >= self.seq:
            self.seq = seq
            self.value = value


class ChunkedText:
    """Text in pieces, in order of seq however they came, joined when it is read."""

    __slots__ = ("_chunks", "_in_order")

    def __init__(self) -> None:
        self._chunks: list[tuple[int, str]] = []
        self._in_order = True

    def add(self, seq: int, text: str) -> None:
        """Add a piece."""
        if self._chunks and seq < self._chunks[-1][0]:
            self._in_order = False
        self._chunks.append((seq, text))

    def join(self, known: SeqRanges) -> str:
        """Join what there is. Pieces between which no frame can come any more are kept as one from then on."""
        if len(self._chunks) > 1:
            if not self._in_order:
                self._chunks.sort()
                self._in_order = True
            runs = groupby(self._chunks, key=lambda chunk: known.range_of(chunk[0]))
            self._chunks = [_merge(chunks) for _, chunks in runs]
        return "".join(text for _, text in self._chunks)


def _merge(chunks: Iterable[tuple[int, str]]) -> tuple[int, str]:
    seqs, texts = zip(*chunks, strict=True)
    return seqs[0], "".join(texts)
