"""One session: its single writer. Everything that changes a session goes through here, in order."""

import asyncio
from collections.abc import Callable, Sequence

import structlog

from compass.v1 import compass_pb2 as pb
from compass_service import frames
from compass_service.log.protocol import LogError, SessionLog, StoredSession
from compass_service.mapper import Mapper, NotAnObjectError
from compass_service.problems import (
    InvalidEventError,
    ProblemError,
    ProducerAttachedError,
    ProducerFencedError,
    ProducerNotAttachedError,
    ProducerReplacedError,
    SessionStoppedError,
)
from compass_service.session import checkpoint as checkpoints
from compass_service.session import inbox as inboxes
from compass_service.session.checkpoint import ProducerCursor
from compass_service.session.commits import Commits
from compass_service.session.control import Control
from compass_service.session.events import Event, shows_prompt
from compass_service.session.holds import Attachment, Controller
from compass_service.session.inbox import Prompt, Submission
from compass_service.session.producers import Hello, admit, introduce, num_known
from compass_service.session.prompts import Prompts
from compass_service.session.watchdog import PhaseLimits, is_stalled

_logger = structlog.get_logger(__name__)


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
        texts: dict[int, str],
        now_ms: Callable[[], int],
        on_change: Callable[["Session"], None],
    ) -> None:
        self.session_id = session_id
        self.exists = stored is not None
        """Whether anything was accepted for it yet."""
        self.attachment: Attachment | None = None
        self.touched_ms = now_ms()
        self.controller: Controller | None = None
        self._texts = texts
        self._now_ms = now_ms
        self._on_change = on_change
        self._commits = Commits(session_id, log, head_seq=0 if stored is None else stored.head_seq)
        self._control_commits: dict[int, asyncio.Task[int]] = {}
        """Commits that control items wait for before they are handed over."""
        self._accepted = checkpoints.encode(checkpoints.of(stored))
        self._restore()
        self._noted_control_seq = self.checkpoint.controls.last_seq

    # -- what it is -------------------------------------------------------------------------------------------------

    @property
    def is_stopped(self) -> bool:
        """Whether the session was closed for good."""
        return self.mapper.state.lifecycle == pb.AGENT_SESSION_STATE_STOPPED

    @property
    def head_seq(self) -> int:
        """Newest seq accepted; the log may be a few commits behind."""
        return self._commits.head_seq

    @property
    def failure(self) -> LogError | None:
        """Why nothing can be committed any more. None while all is well."""
        return self._commits.failure

    @property
    def is_busy(self) -> bool:
        """Whether it must stay in memory: a producer is attached, a window runs, or a commit is under way."""
        return bool(self.attachment or self._commits.num_open or self.checkpoint.window_began_ms is not None)

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
        if goes_on:
            drafts += self.prompts.holder_back((hello.producer_id, hello.epoch), now_ms=self._now_ms())
        self._replace_attachment(hello, goes_on=goes_on)
        self.checkpoint.producers[hello.producer_id] = cursor
        introduce(self.checkpoint, hello)
        self.attachment = Attachment(hello.producer_id, hello.epoch, acked_seq=cursor.seq, commit=self._commit(drafts))
        return self.attachment

    def detach(self, attachment: Attachment) -> None:
        """Note that a push stream ended without a bye: the session becomes DISCONNECTED and its window begins."""
        if self.attachment is attachment:
            self.attachment = None
            attachment.revoke(ProducerReplacedError(attachment.producer_id))
            self._release_controller()
            self._vanish()

    def recover(self) -> None:
        """After a load: a producer that was attached is gone, since no stream of it reached this process."""
        if self.checkpoint.is_attached and self.attachment is None:
            self._vanish()

    def window_is_over(self, window_ms: int) -> bool:
        """Tell whether the producer vanished so long ago that its absence must be judged.

        A clock that was set back does not keep the window open: it begins anew.
        """
        began_ms = self.checkpoint.window_began_ms
        if began_ms is None:
            return False
        now_ms = self._now_ms()
        self.checkpoint.window_began_ms = min(began_ms, now_ms)
        return now_ms - began_ms >= window_ms

    def judge(self) -> None:
        """Close the reattach window: a working session is lost, an idle one merely stays DISCONNECTED."""
        self.checkpoint.window_began_ms = None
        now_ms = self._now_ms()
        drafts = self.mapper.lose(now_ms=now_ms)
        self._commit([*drafts, *self.prompts.holder_lost(first_seq=self._seq_after(drafts), now_ms=now_ms)])

    def watch(self, limits: PhaseLimits) -> None:
        """Mark the phase stalled if the attached agent has been silent for too long."""
        now_ms = self._now_ms()
        if self.attachment is not None and is_stalled(self.mapper.state, limits, now_ms=now_ms):
            self._commit(self.mapper.stall(now_ms=now_ms))

    # -- prompts and control ----------------------------------------------------------------------------------------

    async def submit(self, submission: Submission) -> Prompt:
        """Put a prompt into the inbox. Returns it once it is durable, or as it is if the request was made before.

        Raises SessionStoppedError, PromptConflictError, InboxFullError.
        """
        known = inboxes.find_request(self.checkpoint.inbox, submission.request_id)
        if known is None:
            self._refuse_stopped()
        prompt, drafts = self.prompts.submit(submission, first_seq=self._seq_after([]), now_ms=self._now_ms())
        await self._durable(drafts)
        return prompt

    async def cancel(self, prompt_id: str) -> None:
        """Cancel a prompt that waits. Raises PromptNotFoundError, PromptClosedError."""
        await self._durable(self.prompts.cancel(prompt_id, now_ms=self._now_ms()))

    async def abort(self) -> None:
        """Ask the agent to abort the running turn. Returns once the asking is durable."""
        self._refuse_stopped()
        self.prompts.abort()
        await self._durable([])

    def return_prompt(self, attachment: Attachment, prompt_id: str, *, control_seq: int = 0) -> asyncio.Task[int]:
        """Note that the agent cannot act on what it was handed at `control_seq` any more. Returns the commit."""
        attachment.check()
        first_seq, now_ms = self._seq_after([]), self._now_ms()
        return self._commit(
            self.prompts.returned(prompt_id, control_seq=control_seq, first_seq=first_seq, now_ms=now_ms),
        )

    def open_control(self, producer_id: str, epoch: int, *, applied_seq: int) -> Controller:
        """Open the control stream of the attached producer; its agent can take prompts from now on.

        Raises SessionStoppedError, ProducerFencedError, ProducerNotAttachedError.
        """
        self._refuse_stopped()
        admit(self.checkpoint.producers, producer_id, epoch, session_id=self.session_id)
        held = self.attachment
        if held is None or (held.producer_id, held.epoch) != (producer_id, epoch):
            raise ProducerNotAttachedError(self.session_id, producer_id=producer_id)
        self._release_controller()
        self.checkpoint.controls.applied(applied_seq)
        self.controller = Controller(self._commit(self.mapper.ready(now_ms=self._now_ms())))
        self._commit([])  # the first offers, now that there is somebody to take them
        return self.controller

    def close_control(self, controller: Controller) -> None:
        """Note that a control stream ended."""
        if self.controller is controller:
            self.controller = None

    async def controls_after(self, control_seq: int) -> list[Control]:
        """Return the control items after a place in the sequence, once they are durable."""
        items = self.checkpoint.controls.after(control_seq)
        for item in items:
            if (commit := self._control_commits.pop(item.control_seq, None)) is not None:
                await asyncio.shield(commit)
        return items

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
        # What was dropped before an event that is committed was logged by then: a resend must not log it again.
        is_untold = dropped and first_seq > cursor.seq
        drafts = self.mapper.overflow(dropped, now_ms=self._now_ms()) if is_untold else []
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
        now_ms = self._now_ms()
        drafts = self.prompts.process_ended(first_seq=self._seq_after([]), now_ms=now_ms)
        return await self._durable([*drafts, *self.mapper.close(now_ms=now_ms)])

    async def exit(self, *, code: int | None, signal: str, last_stderr: str) -> int:
        """Record that the agent process ended by itself: ERRORED at once, without a window. Returns the head."""
        self._refuse_stopped()
        self._leave(SessionStoppedError(self.session_id))
        now_ms = self._now_ms()
        drafts = self.mapper.exit(code=code, signal=signal, last_stderr=last_stderr, now_ms=now_ms)
        drafts += self.prompts.process_ended(first_seq=self._seq_after(drafts), now_ms=now_ms)
        return await self._durable(drafts)

    async def settled(self) -> None:
        """Wait until no commit is under way, whatever became of them."""
        await self._commits.settled()

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
            drafts += self.prompts.process_ended(first_seq=self._seq_after(drafts), now_ms=now_ms)
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
        # Nothing may be offered to the process before in the commit that tells of the new one.
        self.attachment = None
        self._release_controller()

    def _fence(self, producer_id: str, epoch: int) -> None:
        held = self.attachment
        if held is not None and held.producer_id == producer_id and held.epoch < epoch:
            held.revoke(ProducerFencedError(producer_id, epoch=held.epoch, current_epoch=epoch))

    def _vanish(self) -> None:
        self.checkpoint.is_attached = False
        if not self.is_stopped:
            now_ms = self._now_ms()
            self.checkpoint.window_began_ms = now_ms
            self._commit(self.mapper.detach(now_ms=now_ms))

    def _release_controller(self) -> None:
        if self.controller is not None:
            self.controller.revoke(ProducerReplacedError(self.checkpoint.producer_id or ""))
            self.controller = None

    def _seq_after(self, drafts: Sequence[frames.Draft]) -> int:
        return self.head_seq + len(drafts) + 1

    def _leave(self, reason: ProblemError) -> None:
        self.checkpoint.is_attached = False
        self.checkpoint.window_began_ms = None
        if self.attachment is not None:
            self.attachment.revoke(reason)
            self.attachment = None
        self._release_controller()

    def _map(self, events: Sequence[Event], first_seq: int | None, drafts: list[frames.Draft]) -> None:
        now_ms = self._now_ms()
        map_event = self.mapper.map
        for position, event in enumerate(events):
            try:
                mapped = map_event(event.json, now_ms=now_ms, prompt_id=event.prompt_id)
            except NotAnObjectError:
                self._restore()
                raise InvalidEventError(None if first_seq is None else first_seq + position) from None
            drafts += mapped
            if event.prompt_id and any(shows_prompt(draft, event.prompt_id) for draft in mapped):
                drafts += self.prompts.recorded(event.prompt_id, now_ms=now_ms)

    def _restore(self) -> None:
        """Go back to the state that was last accepted."""
        self.checkpoint = checkpoints.decode(self._accepted)
        self.mapper = Mapper(self.session_id, self.checkpoint.mapper)
        self.prompts = Prompts(self.session_id, self.checkpoint, self.mapper, self._texts)

    async def _durable(self, drafts: Sequence[frames.Draft]) -> int:
        """Commit and wait. A caller that goes away takes nothing back: the state has moved on already."""
        return await asyncio.shield(self._commit(drafts))

    def _commit(self, drafts: Sequence[frames.Draft]) -> asyncio.Task[int]:
        self.exists = True
        self.touched_ms = self._now_ms()
        if self.controller is not None and self.attachment is not None:
            holder = (self.attachment.producer_id, self.attachment.epoch)
            drafts = [*drafts, *self.prompts.offer(holder, now_ms=self.touched_ms)]
        self.checkpoint.mapper = self.mapper.state
        self._accepted = checkpoints.encode(self.checkpoint)
        commit = self._commits.add(
            drafts,
            self._accepted,
            at_unix_ms=self.touched_ms,
            protected_from_seq=inboxes.first_text_seq(self.checkpoint.inbox),
        )
        commit.add_done_callback(lambda _: self._on_change(self))
        self._note_controls(commit)
        return commit

    def _note_controls(self, commit: asyncio.Task[int]) -> None:
        last_seq = self.checkpoint.controls.last_seq
        for control_seq in range(self._noted_control_seq + 1, last_seq + 1):
            self._control_commits[control_seq] = commit
        if self.controller is not None and last_seq > self._noted_control_seq:
            self.controller.wake()
        self._noted_control_seq = last_seq
