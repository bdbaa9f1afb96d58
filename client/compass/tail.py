"""Tailing a session: an iterator that reconnects, resumes, and ends normally only after the sentinel.

Owns the cursor of one reader. It reads one response at a time and none ahead, so that a slow reader is felt by the
server.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from types import TracebackType
from typing import Self, TypeAlias

from compass import calls
from compass.errors import ClientClosedError, ServerUnavailableError, TailInterrupted
from compass.items import TailItem, position, unpack
from compass.retry import Patience
from compass.v1 import compass_pb2 as pb

TailCall: TypeAlias = calls.ReadableCall[pb.TailSessionResponse]


class Tail(AsyncIterator[TailItem]):
    """One reader's way through a session. Made by `Client.tail`.

    Iterate over it, or over `batches()`. Seqs strictly increase; what is missing is told by a Gap. It ends only after
    the server's sentinel, and then `end_reason` says why. Raises TailInterrupted when the server cannot be reached for
    too long or ends the stream without the sentinel, and the server's refusals, such as SessionNotFoundError, at once.

    Leave it through `async with`, `aclose()` or its end, so that the server is told at once. An iteration that was
    broken off, cancelled or timed out can be taken up again: nothing is lost or repeated.
    """

    def __init__(
        self,
        subscribe: Callable[[pb.TailSessionRequest], TailCall],
        request: pb.TailSessionRequest,
        *,
        patience: Patience,
        silence_s: float,
        find_since: Callable[[], Awaitable[int]] | None = None,
    ) -> None:
        self._subscribe = subscribe
        self._request = request
        self._patience = patience
        self._silence_s = silence_s
        self._find_since = find_since
        self._call: TailCall | None = None
        self._pending: Iterator[TailItem] = iter(())
        self._handed: TailItem | None = None
        self._resume_seq = request.since_seq
        self._resume_seq_after = request.since_seq
        self._has_begun = False
        self._head_seq: int | None = None
        self._is_current = False
        self._end_reason: pb.SessionEndReason.ValueType | None = None
        self._is_closed = False

    @property
    def session_id(self) -> str:
        """The session."""
        return self._request.session_id

    @property
    def resume_seq(self) -> int:
        """Seq up to which everything was handed out or covered by a gap. A new tail with `since` set to it goes on."""
        return self._resume_seq if self._handed is None else max(self._resume_seq, position(self._handed))

    @property
    def head_seq(self) -> int | None:
        """Newest seq of the log as the last response said. None before the first."""
        return self._head_seq

    @property
    def is_current(self) -> bool:
        """Whether history is delivered and the tail is live. False again while it reconnects."""
        return self._is_current

    @property
    def end_reason(self) -> pb.SessionEndReason.ValueType | None:
        """Why the tail ended. None while it has not."""
        return self._end_reason

    def __aiter__(self) -> Self:
        """Return the tail itself: there is one cursor, however often an iteration begins."""
        return self

    async def __anext__(self) -> TailItem:
        """Return the next item; the one before counts as dealt with."""
        while True:
            for item in self._pending:
                self._handed = item
                return item
            if not await self._fetch():
                raise StopAsyncIteration

    async def batches(self) -> AsyncIterator[list[TailItem]]:
        """Yield what each response brought, as a list. An empty one is a heartbeat: the tail is alive, and current.

        When a batch is asked for, the one before counts as dealt with.
        """
        while True:
            if items := list(self._pending):
                self._handed = items[-1]
                yield items
            if not await self._fetch():
                return
            if items := list(self._pending):
                self._handed = items[-1]
            if items or self._end_reason is None:
                yield items

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the tail. What is not handed out yet stays so, and iterating further yields nothing. Idempotent."""
        self._is_closed = True
        self._pending = iter(())
        self._hang_up()

    def __del__(self) -> None:
        # A call that is merely dropped stays open until its channel closes (grpc#43462).
        if getattr(self, "_call", None) is not None:
            self._hang_up()

    async def _fetch(self) -> bool:
        """Read the next response into `_pending`, reconnecting as needed. False when there will be no more."""
        self._settle()
        while self._end_reason is None and not self._is_closed:
            try:
                response = await self._read()
            except ClientClosedError as error:
                raise self._interrupted("CLIENT_CLOSED") from error
            except ServerUnavailableError as error:
                await self._pause(error)
            else:
                self._take(response)
                return True
        return False

    def _settle(self) -> None:
        """Move the cursor past everything that the last response covered: it is dealt with."""
        self._resume_seq = max(self.resume_seq, self._resume_seq_after)
        self._handed = None

    async def _read(self) -> pb.TailSessionResponse:
        if self._find_since is not None:
            self._resume_seq = self._request.since_seq = await self._find_since()
            self._find_since = None
        try:
            if self._call is None:
                self._call = self._subscribe(self._request_to_resume())
            response = await calls.read(self._call, silence_s=self._silence_s, session_id=self.session_id)
        except BaseException:
            # Also a cancelled read has cancelled its call; whoever iterates again subscribes anew from the cursor.
            self._hang_up()
            raise
        if response is None:
            self._hang_up()
            raise self._interrupted("NO_SENTINEL")
        return response

    def _request_to_resume(self) -> pb.TailSessionRequest:
        request = pb.TailSessionRequest()
        request.CopyFrom(self._request)
        if self._has_begun:
            request.since_seq = self._resume_seq
            request.start = pb.SESSION_START_UNSPECIFIED
        return request

    async def _pause(self, error: ServerUnavailableError) -> None:
        self._is_current = False
        try:
            await self._patience.pause(error)
        except ServerUnavailableError:
            raise self._interrupted(error.detail) from error

    def _take(self, response: pb.TailSessionResponse) -> None:
        self._patience.progress()
        self._has_begun = True
        self._head_seq = response.head_seq
        self._pending = iter(unpack(response.frames, after=self._resume_seq))
        self._resume_seq_after = response.resume_seq
        if response.HasField("end"):
            self._end_reason = response.end.reason
            self._hang_up()
        elif not response.frames:
            self._is_current = True

    def _interrupted(self, reason: str) -> TailInterrupted:
        return TailInterrupted(self.session_id, resume_seq=self._resume_seq, reason=reason)

    def _hang_up(self) -> None:
        call, self._call = self._call, None
        if call is not None:
            call.cancel()
