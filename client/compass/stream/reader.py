"""The reading of one answer by its dialect's table: frames in, chunks out, or the failure that a frame tells of.

Pure: knows nothing of HTTP, of SDKs or of waiting. `contract` decides what may be retried.
"""

import json
from collections.abc import Iterator, Mapping

from compass.failures import Category
from compass.stream.calls import CallAssembler
from compass.stream.chunks import Answer, Chunk
from compass.stream.dialects import DONE, LENGTH_STOPS, Dialect
from compass.stream.errors import ModelStreamError, failure, reported
from compass.stream.framing import RawEvent
from compass.stream.halves import HalfKeeper
from compass.stream.paths import Frame, texts, values, word
from compass.stream.usage import read_usage


class AnswerReader:
    """Reads one answer. `is_over` once its end mark was seen; `close` says whether the body may end here."""

    def __init__(self, dialect: Dialect, answer: Answer, *, lenient_end: bool = False) -> None:
        self.is_over = False
        self._dialect = dialect
        self._answer = answer
        self._calls = CallAssembler(dialect)
        self._halves = HalfKeeper()
        self._is_lenient = lenient_end
        self._has_chunks = False
        self._has_stopped = False
        """Whether a stop reason came, and no more of the answer after it: some streams give one before all text."""
        answer.provider = dialect.name

    def read_event(self, event: RawEvent) -> list[Chunk]:
        """Read one event of a wire; ModelStreamError for one that does not parse, or that tells of a failure."""
        if event.data.strip() == "[DONE]":
            return self.read(DONE)
        try:
            frame = json.loads(event.data)
        except (ValueError, RecursionError):
            return self._read_text(event)
        if isinstance(frame, list) and frame:  # Gemini wraps an error in a list of one
            frame = frame[0]
        if isinstance(frame, str) and event.name == "error":
            raise reported(self._dialect.name, frame)
        if not isinstance(frame, dict):
            raise self._malformed("a frame is not a JSON object")
        if event.is_stray:
            self._raise_error(frame)
            return []
        return self.read(frame, is_error=event.name == "error")

    def read(self, frame: Frame, *, is_error: bool = False) -> list[Chunk]:
        """Read one frame; ModelStreamError if it tells of a failure, and then nothing else of it counts."""
        self._raise_error(frame, is_error=is_error)
        answers = self._answers(frame)
        for answer in answers:
            self._raise_failing_stop(answer)
        self._note(frame)
        chunks = [chunk for answer in answers for chunk in self._pieces(frame, answer)]
        stops = any(word(answer, self._dialect.stop) for answer in answers)
        self._has_stopped = stops or (self._has_stopped and not chunks)
        if any(values(frame, path) for path in self._dialect.ends):
            chunks += self._flush()
            self.is_over = True
            self._raise_if_empty(chunks)
        self._has_chunks = self._has_chunks or bool(chunks)
        return chunks

    def close(self) -> None:
        """Take the clean end of the body; ModelStreamError if the answer was not over, or was empty."""
        if self.is_over:
            return
        ends_with_body = self._is_lenient or not self._dialect.ends
        if not (ends_with_body and self._has_stopped):
            raise self._malformed("the stream ended without its end mark", retryable=True)
        self._raise_if_empty([])

    def _answers(self, frame: Frame) -> list[Frame]:
        if not self._dialect.answer:
            return [frame]
        found = values(frame, self._dialect.answer)
        return [answer for answer in found if isinstance(answer, Mapping) and not answer.get("index")]

    def _pieces(self, frame: Frame, answer: Frame) -> Iterator[Chunk]:
        for delta in self._dialect.deltas:
            if delta.when in {None, frame.get("type")}:
                for text in texts(answer, delta.paths):
                    yield from self._halves.whole(delta.kind, text)
        yield from self._calls.read(frame, answer)
        if (stop := word(answer, self._dialect.stop)) is not None:
            self._answer.stop_reason = stop
            yield from self._flush()

    def _flush(self) -> list[Chunk]:
        return [*self._halves.flush(), *self._calls.flush(is_cut=self._answer.stop_reason in LENGTH_STOPS)]

    def _note(self, frame: Frame) -> None:
        self._answer.model = self._answer.model or word(frame, self._dialect.model)
        self._answer.usage = read_usage(self._dialect.usage, frame, self._answer.usage)

    def _read_text(self, event: RawEvent) -> list[Chunk]:
        if event.is_stray or (self._is_lenient and self._has_stopped):
            return []
        if event.name == "error" and not event.data.lstrip().startswith(("{", "[")):
            raise reported(self._dialect.name, event.data)
        raise self._malformed("a frame of the stream is not JSON")

    def _raise_error(self, frame: Frame, *, is_error: bool = False) -> None:
        for path in self._dialect.errors:
            for error in values(frame, path):
                if error not in (False, ""):
                    raise reported(self._dialect.name, {"error": error})
        if is_error or frame.get("object") == "error" or frame.get("type") == "error":
            raise reported(self._dialect.name, {"error": {k: v for k, v in frame.items() if v != "error"}})
        if reason := word(frame, self._dialect.blocked):
            raise failure(Category.CONTENT_FILTERED, f"the request was refused: {reason}")

    def _raise_failing_stop(self, answer: Frame) -> None:
        stop = word(answer, self._dialect.stop)
        if stop is None:
            return
        category = self._dialect.failing_stops.get(stop)
        if category is None and self._dialect.normal_stops is not None and stop not in self._dialect.normal_stops:
            category = Category.UNKNOWN
        if category is not None:
            detail = word(answer, self._dialect.stop_detail) if self._dialect.stop_detail else None
            raise failure(category, detail or f"the answer was ended: {stop}")

    def _raise_if_empty(self, chunks: list[Chunk]) -> None:
        if not (chunks or self._has_chunks):
            raise self._malformed("empty completion", retryable=True)

    def _malformed(self, message: str, *, retryable: bool = False) -> ModelStreamError:
        return failure(Category.MALFORMED_RESPONSE, message, retryable=retryable)
