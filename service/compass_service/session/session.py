"""One session: its single writer. Everything that changes a session goes through here, in order."""

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

import structlog

from compass.v1 import compass_pb2 as pb
from compass_service import frames
from compass_service.log.protocol import LogError, Record, SessionLog, StoredSession
from compass_service.mapper import Mapper, NotAnObjectError
from compass_service.problems import (
    InvalidEventError,
    ProblemError,
    ProducerAttachedError,
    ProducerFencedError,
    ProducerReplacedError,
    SessionStoppedError,
)
from compass_service.session import checkpoint as checkpoints
from compass_service.session.checkpoint import ProducerCursor
from compass_service.session.producers import Hello, admit, num_known

_logger = structlog.get_logger(__name__)


class Event(NamedTuple):
    """One inner event as a door hands it over."""

    json: str | bytes
    prompt_id: str = ""


class Attachment:
    """One push stream's hold on a session. At most one is current; the others are revoked and say why."""

    def __init__(self, producer_id: str, epoch: int, *, acked_seq: int, commit: asyncio.Task[int]) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.acked_seq = acked_seq
        """Highest producer seq that the log held of this epoch when it attached."""
        self.commit = commit
        """The commit of the attaching itself, whose result is the head."""
        self.revoked: asyncio.Future[ProblemError] = asyncio.get_running_loop().create_future()
        """Resolves with the reason once the hold is lost."""

    def revoke(self, reason: ProblemError) -> None:
        """Take the hold away. Idempotent."""
        if not self.revoked.done():
            self.revoked.set_result(reason)

    def check(self) -> None:
        """Raise the reason if the hold is lost."""
        if self.revoked.done():
            raise self.revoked.result()


class Session:
    """The mapper, the producers and the log of one session.

    Each verb changes the state in one step, without an await, and returns the commit of what it changed. Commits are
    pipelined: the next verb need not wait for the last commit. When a commit fails, everything accepted since the last
    durable record is void: the session is `failed` for good, and whoever needs it loads it again from the log.
    """

    def __init__(
        self,
        session_id: str,
        log: SessionLog,
        *,
        stored: StoredSession | None,
        now_ms: Callable[[], int],
        on_change: Callable[["Session"], None],
    ) -> None:
        self.session_id = session_id
        self.head_seq = 0 if stored is None else stored.head_seq
        """Newest seq accepted; the log may be a few commits behind."""
        self.exists = stored is not None
        """Whether anything was accepted for it yet."""
        self.failure: LogError | None = None
        self.attachment: Attachment | None = None
        self.touched_ms = now_ms()
        self._log = log
        self._now_ms = now_ms
        self._on_change = on_change
        self._commits: set[asyncio.Task[int]] = set()
        self._accepted = checkpoints.encode(checkpoints.of(stored))
        self._restore()

    # -- what it is -------------------------------------------------------------------------------------------------

    @property
    def is_stopped(self) -> bool:
        """Whether the session was closed for good."""
        return self.mapper.state.lifecycle == pb.AGENT_SESSION_STATE_STOPPED

    @property
    def is_busy(self) -> bool:
        """Whether it must stay in memory: a producer is attached, a window runs, or a commit is under way."""
        return bool(self.attachment or self._commits or self.checkpoint.window_began_ms is not None)

    @property
    def window_began_ms(self) -> int | None:
        """When the producer vanished, None unless its absence is still to be judged."""
        return self.checkpoint.window_began_ms

    # -- producers --------------------------------------------------------------------------------------------------

    def attach(self, hello: Hello) -> Attachment:
        """Attach a producer; settle the one before if its turn cannot go on.

        The caller detaches, whatever becomes of it. Raises SessionStoppedError, ProducerFencedError,
        ProducerAttachedError, TooManyProducersError.
        """
        self._refuse_stopped()
        cursor = admit(self.checkpoint.producers, hello.producer_id, hello.epoch, session_id=self.session_id)
        self._refuse_second(hello)
        goes_on = self.checkpoint.producers.get(hello.producer_id) is cursor
        drafts = self._settle_before(hello, goes_on=goes_on)
        self._replace_attachment(hello, goes_on=goes_on)
        self.checkpoint.producers[hello.producer_id] = cursor
        self._describe(hello)
        self.attachment = Attachment(hello.producer_id, hello.epoch, acked_seq=cursor.seq, commit=self._commit(drafts))
        return self.attachment

    def detach(self, attachment: Attachment) -> None:
        """Note that a push stream ended without a bye: the session becomes DISCONNECTED and its window begins."""
        if self.attachment is attachment:
            self.attachment = None
            attachment.revoke(ProducerReplacedError(attachment.producer_id))
            self._vanish()

    def recover(self) -> None:
        """After a load: a producer that was attached is gone, since no stream of it reached this process."""
        if self.checkpoint.is_attached and self.attachment is None:
            self._vanish()

    def judge(self) -> None:
        """Close the reattach window: a working session is lost, an idle one merely stays DISCONNECTED."""
        self.checkpoint.window_began_ms = None
        self._commit(self.mapper.lose(now_ms=self._now_ms()))

    # -- events -----------------------------------------------------------------------------------------------------

    def push(self, attachment: Attachment, first_seq: int, events: Sequence[Event], dropped: int) -> asyncio.Task[int]:
        """Map a batch and commit it whole; what was committed before is dropped unread.

        Returns the commit, whose result is the head. Raises SequenceJumpError, InvalidEventError, or why the attachment
        was revoked; then nothing of the batch is accepted.
        """
        attachment.check()
        cursor = self.checkpoint.producers[attachment.producer_id]
        skip = num_known(cursor, attachment.producer_id, first_seq=first_seq, num_events=len(events))
        new = events[skip:]
        # What was dropped before a batch was logged with that batch's first events: a resend must not log it again.
        drafts = self.mapper.overflow(dropped, now_ms=self._now_ms()) if dropped and not skip else []
        self._map(new, first_seq + skip, drafts)
        self.checkpoint.producers[attachment.producer_id].seq += len(new)
        return self._commit(drafts)

    async def push_one(self, event: Event, *, producer: tuple[str, int, int] | None) -> tuple[int, bool]:
        """Map and commit a single event; `producer` is (producer_id, epoch, seq) if it is to be deduplicated.

        Returns the head and whether the event was committed before. Raises as `attach` and `push` do.
        """
        self._refuse_stopped()
        if producer is None:
            drafts: list[frames.Draft] = []
            self._map([event], None, drafts)
            return await self._durable(drafts), False
        producer_id, epoch, seq = producer
        cursor = admit(self.checkpoint.producers, producer_id, epoch, session_id=self.session_id)
        if num_known(cursor, producer_id, first_seq=seq, num_events=1):
            return await self._durable([]), True
        drafts = []
        self._map([event], seq, drafts)
        self._fence(producer_id, epoch)
        self.checkpoint.producers[producer_id] = ProducerCursor(epoch, seq)
        return await self._durable(drafts), False

    # -- endings ----------------------------------------------------------------------------------------------------

    async def close(self) -> int:
        """End the session for good. Idempotent. Returns the head."""
        if self.is_stopped:
            await self.settled()
            if self.failure is not None:
                raise self.failure
            return self.head_seq
        self._leave(SessionStoppedError(self.session_id))
        return await self._durable(self.mapper.close(now_ms=self._now_ms()))

    async def exit(self, *, code: int | None, signal: str, last_stderr: str) -> int:
        """Record that the agent process ended by itself: ERRORED at once, without a window. Returns the head."""
        self._refuse_stopped()
        self._leave(SessionStoppedError(self.session_id))
        drafts = self.mapper.exit(code=code, signal=signal, last_stderr=last_stderr, now_ms=self._now_ms())
        return await self._durable(drafts)

    async def settled(self) -> None:
        """Wait until no commit is under way, whatever became of them."""
        while self._commits:
            await asyncio.wait(self._commits)

    # -- inside -----------------------------------------------------------------------------------------------------

    def _refuse_stopped(self) -> None:
        if self.is_stopped:
            raise SessionStoppedError(self.session_id)

    def _refuse_second(self, hello: Hello) -> None:
        attached = self.attachment
        if attached is not None and attached.producer_id != hello.producer_id and not hello.take_over:
            raise ProducerAttachedError(self.session_id, producer_id=attached.producer_id)

    def _settle_before(self, hello: Hello, *, goes_on: bool) -> list[frames.Draft]:
        now_ms = self._now_ms()
        drafts: list[frames.Draft] = []
        before = self.checkpoint.producer_id
        if before is not None and not (before == hello.producer_id and goes_on):
            # Another process: whatever turn the one before had open can never go on.
            if self.attachment is not None:
                drafts += self.mapper.detach(now_ms=now_ms)
            drafts += self.mapper.lose(now_ms=now_ms)
        drafts += self.mapper.reattach(now_ms=now_ms)
        drafts += self.mapper.start(now_ms=now_ms)
        return drafts

    def _replace_attachment(self, hello: Hello, *, goes_on: bool) -> None:
        if self.attachment is None:
            return
        if self.attachment.producer_id == hello.producer_id and not goes_on:
            self._fence(hello.producer_id, hello.epoch)
        else:
            self.attachment.revoke(ProducerReplacedError(self.attachment.producer_id))

    def _fence(self, producer_id: str, epoch: int) -> None:
        held = self.attachment
        if held is not None and held.producer_id == producer_id and held.epoch < epoch:
            held.revoke(ProducerFencedError(producer_id, epoch=held.epoch, current_epoch=epoch))

    def _describe(self, hello: Hello) -> None:
        self.checkpoint.producer_id = hello.producer_id
        self.checkpoint.is_attached = True
        self.checkpoint.window_began_ms = None
        self.checkpoint.title = hello.title or self.checkpoint.title
        self.checkpoint.agent_name = hello.agent_name or self.checkpoint.agent_name
        self.checkpoint.agent_version = hello.agent_version or self.checkpoint.agent_version

    def _vanish(self) -> None:
        self.checkpoint.is_attached = False
        if not self.is_stopped:
            now_ms = self._now_ms()
            self.checkpoint.window_began_ms = now_ms
            self._commit(self.mapper.detach(now_ms=now_ms))

    def _leave(self, reason: ProblemError) -> None:
        self.checkpoint.is_attached = False
        self.checkpoint.window_began_ms = None
        if self.attachment is not None:
            self.attachment.revoke(reason)
            self.attachment = None

    def _map(self, events: Sequence[Event], first_seq: int | None, drafts: list[frames.Draft]) -> None:
        now_ms = self._now_ms()
        map_event = self.mapper.map
        for position, event in enumerate(events):
            try:
                drafts += map_event(event.json, now_ms=now_ms, prompt_id=event.prompt_id)
            except NotAnObjectError:
                self._restore()
                raise InvalidEventError(None if first_seq is None else first_seq + position) from None

    def _restore(self) -> None:
        """Go back to the state that was last accepted."""
        self.checkpoint = checkpoints.decode(self._accepted)
        self.mapper = Mapper(self.session_id, self.checkpoint.mapper)

    async def _durable(self, drafts: Sequence[frames.Draft]) -> int:
        """Commit and wait. A caller that goes away takes nothing back: the state has moved on already."""
        return await asyncio.shield(self._commit(drafts))

    def _commit(self, drafts: Sequence[frames.Draft]) -> asyncio.Task[int]:
        self.exists = True
        self.touched_ms = self._now_ms()
        first_seq = self.head_seq + 1
        self.checkpoint.mapper = self.mapper.state
        self._accepted = checkpoints.encode(self.checkpoint)
        record = Record(
            session_id=self.session_id,
            first_seq=first_seq,
            lanes=bytes([draft.is_priority for draft in drafts]),
            frames=tuple([frames.number(draft.body, seq) for seq, draft in enumerate(drafts, first_seq)]),
            checkpoint=self._accepted,
            at_unix_ms=self.touched_ms,
        )
        self.head_seq += len(drafts)
        commit = asyncio.create_task(self._append(record, self.head_seq))
        self._commits.add(commit)
        commit.add_done_callback(self._landed)
        return commit

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
        self._commits.discard(commit)
        if not commit.cancelled() and (failure := commit.exception()) is not None:
            _logger.warning("commit_failed", session=self.session_id, internal_cause=repr(failure))
        self._on_change(self)
