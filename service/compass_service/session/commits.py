"""Committing what a session accepted: numbered in order, appended without waiting, void after the first failure."""

import asyncio
from collections.abc import Sequence

import structlog

from compass_service import frames
from compass_service.log.protocol import LogError, Record, SessionLog

_logger = structlog.get_logger(__name__)


class Commits:
    """The commits of one session that are under way."""

    def __init__(self, session_id: str, log: SessionLog, *, head_seq: int) -> None:
        self.head_seq = head_seq
        """Newest seq accepted; the log may be a few commits behind."""
        self.failure: LogError | None = None
        """The first failure. Nothing that was accepted after the last durable record holds any more."""
        self._session_id = session_id
        self._log = log
        self._open: set[asyncio.Task[int]] = set()

    @property
    def num_open(self) -> int:
        """Commits under way."""
        return len(self._open)

    def add(
        self, drafts: Sequence[frames.Draft], checkpoint: bytes, *, at_unix_ms: int, protected_from_seq: int | None
    ) -> asyncio.Task[int]:
        """Append frames, numbered, with the checkpoint after them. The result of the commit is the head."""
        first_seq = self.head_seq + 1
        record = Record(
            session_id=self._session_id,
            first_seq=first_seq,
            lanes=bytes([draft.is_priority for draft in drafts]),
            frames=tuple([frames.number(draft.body, seq) for seq, draft in enumerate(drafts, first_seq)]),
            checkpoint=checkpoint,
            at_unix_ms=at_unix_ms,
            protected_from_seq=protected_from_seq,
        )
        self.head_seq += len(drafts)
        commit = asyncio.create_task(self._append(record, self.head_seq))
        self._open.add(commit)
        commit.add_done_callback(self._landed)
        return commit

    async def settled(self) -> None:
        """Wait until no commit is under way, whatever became of them."""
        while self._open:
            await asyncio.wait(self._open)

    async def _append(self, record: Record, head_seq: int) -> int:
        if self.failure is not None:
            raise self.failure
        try:
            await self._log.append(record)
        except LogError as failure:
            # Later appends fail because their seqs no longer follow; the first failure is why.
            self.failure = self.failure or failure
            raise self.failure from None
        return head_seq

    def _landed(self, commit: asyncio.Task[int]) -> None:
        self._open.discard(commit)
        if not commit.cancelled() and (failure := commit.exception()) is not None:
            _logger.warning("commit_failed", session=self._session_id, internal_cause=repr(failure))
