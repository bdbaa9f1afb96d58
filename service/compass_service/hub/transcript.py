"""Transcripts: a session's log, folded, and kept folded for the next page."""

from collections import OrderedDict

from compass.fold import SessionFold, transcript_rows
from compass.v1 import compass_pb2 as pb
from compass_service import frames
from compass_service.hub.reading import kept_frames
from compass_service.log.protocol import SessionLog
from compass_service.problems import SessionNotFoundError

_MAX_FOLDS = 4
"""Folds kept between calls. Policy: the least recently used goes; it is folded again when asked for."""
_READ_BYTES = 256 * 1024


class _Folded:
    def __init__(self) -> None:
        self.fold = SessionFold()
        self.next_seq = 1


class Transcripts:
    """Folds sessions on demand. A later call folds only what was committed since."""

    def __init__(self, log: SessionLog) -> None:
        self._log = log
        self._folds: OrderedDict[str, _Folded] = OrderedDict()

    async def rows(self, session_id: str) -> tuple[list[pb.TranscriptMessage], int]:
        """Return the messages of a session as of its head, and that head. Raises SessionNotFoundError."""
        stored = await self._log.load(session_id)
        if stored is None:
            raise SessionNotFoundError(session_id)
        folded = self._folds.pop(session_id, None) or _Folded()
        await self._catch_up(folded, session_id, stored.head_seq + 1)
        self._folds[session_id] = folded
        while len(self._folds) > _MAX_FOLDS:
            self._folds.popitem(last=False)
        return transcript_rows(folded.fold.view), folded.next_seq - 1

    async def _catch_up(self, folded: _Folded, session_id: str, end_seq: int) -> None:
        """Fold what is new, page by page, so that other calls run in between."""
        while folded.next_seq < end_seq:
            page = await self._log.read(session_id, folded.next_seq, end_seq=end_seq, max_bytes=_READ_BYTES)
            for record in page.records:
                for seq, _, frame in kept_frames(record):
                    if folded.next_seq <= seq < end_seq:
                        folded.fold.apply(pb.AgentSessionFrame.FromString(frames.body_of(frame)))
            folded.next_seq = min(page.next_seq, end_seq)
