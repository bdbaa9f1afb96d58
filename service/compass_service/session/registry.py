"""The sessions of this process: loading them once, judging lost producers, letting idle ones leave memory."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from compass.v1 import compass_pb2 as pb
from compass_service import frames
from compass_service.log.protocol import SessionLog, StoredSession
from compass_service.log.records import kept_frames
from compass_service.problems import DrainingError, SessionNotFoundError
from compass_service.session import checkpoint as checkpoints
from compass_service.session.session import Session
from compass_service.session.watch import Watch
from compass_service.session.watchdog import PhaseLimits

_PAGE = 500


class Registry:
    """Owns every loaded session. Sessions that rest leave memory and come back from their checkpoint."""

    def __init__(
        self,
        log: SessionLog,
        *,
        now_ms: Callable[[], int],
        reattach_window_ms: int,
        idle_ms: int,
        phase_limits: PhaseLimits,
    ) -> None:
        self._log = log
        self._now_ms = now_ms
        self._reattach_window_ms = reattach_window_ms
        self._idle_ms = idle_ms
        self._phase_limits = phase_limits
        self._sessions: dict[str, Session] = {}
        self._loading: dict[str, asyncio.Future[Session]] = {}
        self._to_reload: set[str] = set()
        self._watches: set[Watch] = set()

    async def open(self, session_id: str, *, create: bool) -> Session:
        """Return the session, loaded if needed. Raises SessionNotFoundError if there is none and `create` is false."""
        while True:
            session = self._sessions.get(session_id) or await self._load(session_id)
            if session.failure is None:
                break
            self._sessions.pop(session_id, None)
        if not (session.exists or create):
            raise SessionNotFoundError(session_id)
        session.touched_ms = self._now_ms()
        return session

    async def find(self, session_id: str) -> StoredSession:
        """Return what the log holds of a session. Raises SessionNotFoundError."""
        stored = await self._log.load(session_id)
        if stored is None:
            raise SessionNotFoundError(session_id)
        return stored

    async def recover(self) -> None:
        """After a start: sessions whose producer was attached become DISCONNECTED, and open windows go on."""
        async for stored in self._stored():
            held = checkpoints.of(stored)
            if held.is_attached or held.window_began_ms is not None:
                await self.open(stored.session_id, create=False)

    async def run(self, *, tick_s: float) -> None:
        """Judge closed windows, mark stalled phases and evict idle sessions, for ever."""
        while True:
            await asyncio.sleep(tick_s)
            await self.sweep()

    async def sweep(self) -> None:
        """Judge and evict once."""
        while self._to_reload:
            with contextlib.suppress(SessionNotFoundError):
                await self.open(self._to_reload.pop(), create=False)
        now_ms = self._now_ms()
        for session in list(self._sessions.values()):
            if session.window_is_over(self._reattach_window_ms):
                session.judge()
            elif not session.is_busy and now_ms - session.touched_ms >= self._idle_ms:
                del self._sessions[session.session_id]
            else:
                session.watch(self._phase_limits)

    def drain(self) -> None:
        """Detach every producer and wake every watch, so that their calls end and their clients come back later."""
        for session in self._sessions.values():
            for hold in (session.attachment, session.controller):
                if hold is not None:
                    hold.revoke(DrainingError())
        for watch in self._watches:
            watch.wake()

    async def settled(self) -> None:
        """Wait until nothing is being committed any more."""
        for session in list(self._sessions.values()):
            await session.settled()

    def watch(self) -> Watch:
        """Begin to note which sessions change. The caller closes it."""
        watch = Watch(self._watches.discard)
        self._watches.add(watch)
        return watch

    def removed(self, session_id: str) -> None:
        """Note that retention removed a session altogether."""
        self._sessions.pop(session_id, None)
        for watch in self._watches:
            watch.note(session_id)

    @property
    def num_loaded(self) -> int:
        """Sessions in memory."""
        return len(self._sessions)

    async def _stored(self) -> AsyncIterator[StoredSession]:
        before: tuple[int, str] | None = None
        while page := await self._log.list(limit=_PAGE, before=before):
            for stored in page:
                yield stored
            before = (page[-1].updated_unix_ms, page[-1].session_id)

    async def _load(self, session_id: str) -> Session:
        """Load once, however many ask at the same time."""
        if (loading := self._loading.get(session_id)) is None:
            loading = asyncio.ensure_future(self._load_now(session_id))
            self._loading[session_id] = loading
            loading.add_done_callback(lambda _: self._loading.pop(session_id, None))
        return await asyncio.shield(loading)

    async def _load_now(self, session_id: str) -> Session:
        stored = await self._log.load(session_id)
        session = Session(
            session_id,
            self._log,
            stored=stored,
            texts=await self._texts(session_id, checkpoints.of(stored)),
            now_ms=self._now_ms,
            on_change=self._changed,
        )
        self._sessions[session_id] = session
        session.recover()
        return session

    async def _texts(self, session_id: str, checkpoint: checkpoints.Checkpoint) -> dict[int, str]:
        """Read the texts of the open prompts back from the frames that carry them."""
        texts: dict[int, str] = {}
        for prompt in checkpoint.inbox.open:
            seq = prompt.text_seq
            page = await self._log.read(session_id, seq, end_seq=seq + 1, max_bytes=1, priority_only=True)
            kept = [kept for record in page.records for kept in kept_frames(record) if kept.seq == seq]
            texts[prompt.number] = _prompt_text(kept[0].frame)
        return texts

    def _changed(self, session: Session) -> None:
        if session.failure is not None and self._sessions.get(session.session_id) is session:
            # What it had accepted is void: the log's state must be taken up again, a lost producer's window included.
            del self._sessions[session.session_id]
            self._to_reload.add(session.session_id)
        for watch in self._watches:
            watch.note(session.session_id)


def _prompt_text(frame: bytes) -> str:
    return pb.AgentSessionFrame.FromString(frames.body_of(frame)).event.prompt.text
