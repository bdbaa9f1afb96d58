"""Tool calls put together from their pieces: a call is one chunk, given out once, when it is whole."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from compass.stream.chunks import Chunk, ChunkKind
from compass.stream.dialects import CallPart, Dialect
from compass.stream.framing import MAX_EVENT_BYTES, too_large
from compass.stream.paths import Frame, values, word


@dataclass(slots=True)
class _OpenCall:
    index: object
    id: str | None
    name: str
    arguments: list[str] = field(default_factory=list)

    def chunk(self) -> Chunk:
        # A call without arguments is sent as an empty string by some and as {} by others.
        arguments = "".join(self.arguments) or "{}"
        return Chunk(ChunkKind.TOOL_CALL, id=self.id, name=self.name, arguments=arguments)


class CallAssembler:
    """Puts the calls of one answer together. Pieces of several calls may come interleaved."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._open: list[_OpenCall] = []
        self._num_chars = 0

    def read(self, frame: Frame, answer: Frame) -> list[Chunk]:
        """Take the pieces in one frame; return the calls that it makes whole."""
        whole: list[Chunk] = []
        for rule in self._dialect.calls:
            if rule.when in {None, frame.get("type")}:
                for part in values(answer, rule.path):
                    whole += self._take(rule, frame, part)
        if any(values(frame, path) for path in self._dialect.call_ends):
            whole += self._close(frame.get("index"))
        return whole

    def flush(self, *, is_cut: bool) -> list[Chunk]:
        """Return the calls that are still open: the answer is over.

        `is_cut` says that it ended at a limit; a call whose arguments do not parse was then cut, and is none.
        """
        calls, self._open = [call.chunk() for call in self._open], []
        return [call for call in calls if not is_cut or _is_json(call.arguments)]

    def _take(self, rule: CallPart, frame: Frame, part: object) -> Iterator[Chunk]:
        if not isinstance(part, Mapping):
            return
        call = self._call_of(rule, frame, part)
        if call is None:
            return
        call.arguments += self._arguments(part, rule.arguments)
        if rule.is_whole:
            self._open.remove(call)
            yield call.chunk()

    def _call_of(self, rule: CallPart, frame: Frame, part: Frame) -> _OpenCall | None:
        index, call_id, name = part.get("index", frame.get("index")), word(part, rule.id), word(part, rule.name)
        for call in reversed(self._open):
            if call.index == index and _is_same_call(call, call_id, name):
                return call
        if name is None:  # the input of something that is no call of ours, a tool that the provider runs itself
            return None
        self._open.append(_OpenCall(index, call_id, name))
        return self._open[-1]

    def _arguments(self, part: Frame, path: str) -> Iterator[str]:
        for value in values(part, path):
            if value:
                text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                self._num_chars += len(text)
                if self._num_chars > MAX_EVENT_BYTES:
                    raise too_large()
                yield text

    def _close(self, index: object) -> list[Chunk]:
        # One that does not parse stays open: what ended may be not the call but the answer, at its limit.
        whole = [call for call in self._open if call.index == index and _is_json(call.chunk().arguments)]
        self._open = [call for call in self._open if call not in whole]
        return [call.chunk() for call in whole]


def _is_same_call(call: _OpenCall, call_id: str | None, name: str | None) -> bool:
    # Some servers give every parallel call the index 0, or none at all: then a new id, or a new name, is a new call.
    if call_id is not None and call.id is not None:
        return call_id == call.id
    return call.index is not None or name is None


def _is_json(text: str | None) -> bool:
    try:
        json.loads(text or "")
    except (ValueError, RecursionError):
        return False
    return True
