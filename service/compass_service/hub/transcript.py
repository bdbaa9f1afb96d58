"""Transcripts: a session's log, folded, and kept folded for the next page."""

import asyncio
import sys
from collections import OrderedDict
from weakref import WeakValueDictionary

from compass.fold import SessionFold, transcript_rows
from compass.v1 import compass_pb2 as pb
from compass_service import frames
from compass_service.hub.reading import History
from compass_service.log.protocol import SessionLog, StoredSession
from compass_service.problems import SessionNotFoundError

_MAX_FOLDS = 4
_MAX_FOLDED_BYTES = 64 * 1024 * 1024
"""Folds kept between calls, and bytes of the frames behind them. Policy: the least recently used goes, but never the
one just used; it is folded again when asked for."""
_READ_BYTES = 256 * 1024


class _Folded:
    """A session folded up to its history's cursor. What retention took is folded as a gap, so that no row hides it."""

    def __init__(self, stored: StoredSession) -> None:
        self.created_unix_ms = stored.created_unix_ms
        self.history = History(stored.session_id, cursor=0)
        self.num_bytes = 0
        self._fold = SessionFold()
        self._rows: list[pb.TranscriptMessage] | None = None

    def apply(self, delimited: list[bytes]) -> None:
        """Fold some frames."""
        for frame in delimited:
            self._fold.apply(pb.AgentSessionFrame.FromString(frames.body_of(frame)))
            self.num_bytes += len(frame)
            self._rows = None

    async def rows(self) -> list[pb.TranscriptMessage]:
        """Return the rows as of the cursor; they are made once for all pages of a session that rests.

        Thousands of messages take a good part of a second: a thread's, not the loop's. Nothing is folded meanwhile.
        """
        if self._rows is None:
            self._rows = await asyncio.to_thread(self._make_rows)
        return self._rows

    def _make_rows(self) -> list[pb.TranscriptMessage]:
        return transcript_rows(self._fold.view)


class Transcripts:
    """Folds sessions on demand. A later call folds only what was committed since; one made meanwhile waits for it."""

    def __init__(self, log: SessionLog) -> None:
        self._log = log
        self._folds: OrderedDict[str, _Folded] = OrderedDict()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def rows(self, session_id: str) -> tuple[list[pb.TranscriptMessage], int]:
        """Return the messages of a session as of its head, and that head. Raises SessionNotFoundError."""
        # A caller that goes away must not let the next one in while a thread still reads the fold.
        return await asyncio.shield(asyncio.ensure_future(self._rows_in_turn(session_id)))

    async def _rows_in_turn(self, session_id: str) -> tuple[list[pb.TranscriptMessage], int]:
        turn = self._turns.setdefault(session_id, asyncio.Lock())
        async with turn:
            return await self._rows(session_id)

    async def _rows(self, session_id: str) -> tuple[list[pb.TranscriptMessage], int]:
        stored = await self._log.load(session_id)
        if stored is None:
            raise SessionNotFoundError(session_id)
        folded = self._folds.pop(session_id, None)
        if folded is None or folded.created_unix_ms != stored.created_unix_ms:
            folded = _Folded(stored)  # a removed session may have come into being again
        await self._catch_up(folded, session_id, stored.head_seq + 1)
        self._keep(session_id, folded)
        return await folded.rows(), folded.history.cursor

    def _keep(self, session_id: str, folded: _Folded) -> None:
        self._folds[session_id] = folded
        num_bytes = sum(kept.num_bytes for kept in self._folds.values())
        while len(self._folds) > 1 and (len(self._folds) > _MAX_FOLDS or num_bytes > _MAX_FOLDED_BYTES):
            _, dropped = self._folds.popitem(last=False)
            num_bytes -= dropped.num_bytes

    async def _catch_up(self, folded: _Folded, session_id: str, end_seq: int) -> None:
        """Fold what is new, page by page, so that other calls run in between."""
        history = folded.history
        while (next_seq := history.cursor + 1) < end_seq:
            page = await self._log.read(session_id, next_seq, end_seq=end_seq, max_bytes=_READ_BYTES)
            for record in page.records:
                folded.apply(history.take(record, end_seq=end_seq, max_bytes=sys.maxsize).frames)
            folded.apply(history.cover(min(page.next_seq, end_seq) - 1))
