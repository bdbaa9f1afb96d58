"""Publishing a session: push what the agent does, and learn when it is durable.

Owns the life of one producer: waiting for room, reconnecting, flushing, ending. What it holds is in `outbox`, how one
stream runs is in `push_stream`.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import NoReturn, Self

from compass import errors
from compass.errors import CompassError, PublisherClosedError
from compass.lanes import LaneBounds
from compass.outbox import Outbox
from compass.push_stream import Ending, PushCall, PushStream
from compass.retry import Patience
from compass.returns import Returns
from compass.slimming import Event, Slimmed, slim
from compass.v1 import agent_gateway_pb2 as pb

_log = logging.getLogger("compass")

_PUSHES_A_TURN = 128
"""A producer that never waits lets the rest of its loop, the sending too, have a turn this often."""
_CROWDED_PAUSE_S = 0.001
_MOVING_S = 0.5
"""A burst of trace that would soon be dropped is slowed by so little, and only while acknowledgements keep coming."""
_LEAVE_GRACE_S = 2.0
"""How long the end of a block that raised may take to get what was pushed acknowledged."""
_FRAMING_BYTES = 8

_RETRYABLE = (
    errors.ServerUnavailableError,
    errors.ServerFailedError,
    errors.LogFullError,
    errors.MessageTooLargeError,
    errors.SequenceJumpError,
)


@dataclass(frozen=True, slots=True)
class PublisherStats:
    """Counters of a publisher."""

    pushed: int
    """Events pushed."""
    dropped: int
    """Events dropped, for want of room or because they were too large."""
    sent_bytes: int
    """Bytes of the messages sent, those included that were sent again."""
    acked_seq: int
    """Highest producer seq up to which every event is durable."""


class Publisher:
    """One producer of one session. Made by `Client.publish`, used as `async with`.

    `push` takes events; they are sent, and sent again after a cut, in the order of their push, and each is stored
    exactly once. What may be dropped when the server is too slow, deltas and the progress of tools, never makes push
    wait; what may not be dropped does, and so does everything with `wait=True`. What was dropped is told in its place.

    Leaving the block closes the session, or drains with `close_on_exit=False`; leaving it by an exception drains for a
    short while and closes nothing. `push`, `flush`, `drain` and `close` raise what ended the publisher for good, with
    `num_unacknowledged` set: ProducerFencedError, ProducerAttachedError, SessionStoppedError, InvalidEventError, or
    ServerUnavailableError and LogFullError once nothing has succeeded for too long.
    """

    def __init__(
        self,
        open_stream: Callable[[], PushCall],
        hello: pb.ProducerHello,
        *,
        bounds: LaneBounds,
        patience: Patience,
        wait: bool,
        close_on_exit: bool,
        acked_seq: int = 0,
    ) -> None:
        self._open_stream = open_stream
        self._hello = hello
        self._patience = patience
        self._waits = wait
        self._close_on_exit = close_on_exit
        self._outbox = Outbox(hello.session_id, bounds, acked_seq=acked_seq)
        self._returns = Returns()
        self._task: asyncio.Task[None] | None = None
        self._stream: PushStream | None = None
        self._ending = Ending.NONE
        self._bye = pb.ProducerBye()
        self._has_said_bye = False
        self._wake = asyncio.Event()
        self._moved = asyncio.Event()
        self._turn = asyncio.Lock()
        self._progress_seq = 0
        self._moved_at = -_MOVING_S
        self._sent_bytes = 0
        self._pushes_left = _PUSHES_A_TURN

    @property
    def session_id(self) -> str:
        """The session."""
        return self._hello.session_id

    @property
    def producer_id(self) -> str:
        """Id of this producer."""
        return self._hello.producer_id

    @property
    def epoch(self) -> int:
        """Epoch of this producer."""
        return self._hello.epoch

    @property
    def stats(self) -> PublisherStats:
        """The counters as they are now."""
        sent_bytes = self._sent_bytes + (self._stream.sent_bytes if self._stream else 0)
        outbox = self._outbox
        return PublisherStats(outbox.last_position, outbox.num_dropped, sent_bytes, outbox.acked_seq)

    async def __aenter__(self) -> Self:
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"publish {self.session_id}")
            self._task.add_done_callback(lambda _: self._announce())
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if exc_type is not None:
                await self._leave()
            elif self._close_on_exit:
                await self.close()
            else:
                await self.drain()
        finally:
            await self._stop()

    async def push(self, event: Event, *, prompt_id: str = "") -> None:
        """Take one inner event. Returns when it is held here; `flush` tells when it is durable.

        A burst of trace that would overflow is slowed by a millisecond a push while acknowledgements keep coming;
        otherwise trace does not wait.

        prompt_id: the inbox prompt that this user message came from, which records it.
        Raises InvalidEventError for what is not one JSON object, at once and without harm to the publisher. Cancelled,
        it has not taken the event.
        """
        slimmed = slim(event)
        in_priority = self._waits or slimmed.is_priority
        self._pushes_left -= 1
        is_crowded = not in_priority and self._outbox.is_crowded
        if self._pushes_left < 0 or is_crowded:
            await self._give_turn(is_crowded=is_crowded)
        if in_priority and (self._outbox.priority_is_full or self._turn.locked()):
            async with self._turn:
                await self._until(lambda: not self._outbox.priority_is_full)
        if not self._is_open:
            self._raise_over()
        self._take(slimmed, in_priority=in_priority, prompt_id=prompt_id)

    def return_prompt(self, prompt_id: str, *, control_seq: int = 0) -> None:
        """Say that the agent cannot act on a prompt any more: it goes back to its place in the queue.

        control_seq: the place in the control sequence where the agent was handed it. Said again after a cut.
        """
        if not self._is_open:
            self._raise_over()
        self._returns.add(prompt_id, control_seq, position=self._outbox.last_position)
        self._wake.set()

    async def attached(self) -> bool:
        """Wait until the server has answered this producer's hello. False once the publisher has ended as asked.

        Raises what ended it in any other way.
        """
        task = self._running()
        await self._until(lambda: self._is_attached or task.done())
        self._raise_failure()
        return not task.done()

    async def ended(self) -> None:
        """Wait for the publisher's end. Raises what ended it, unless it was drained or closed."""
        await asyncio.wait([self._running()])
        self._raise_failure()

    @property
    def is_ending(self) -> bool:
        """Whether it was drained or closed, or is about to be."""
        return self._ending is not Ending.NONE

    @property
    def _is_attached(self) -> bool:
        return self._stream is not None and self._stream.is_established

    def push_nowait(self, event: Event) -> bool:
        """Take one inner event at once, past the bound of a full lane: for code that may not wait.

        Such as a `finally` through which a cancellation passes. False, and nothing is taken, before the publisher was
        entered and once it is over. Raises InvalidEventError for what is not one JSON object.
        """
        slimmed = slim(event)
        if not self._is_open:
            return False
        self._take(slimmed, in_priority=self._waits or slimmed.is_priority)
        return True

    def _take(self, slimmed: Slimmed, *, in_priority: bool, prompt_id: str = "") -> None:
        message = pb.InnerEvent(json=slimmed.json, prompt_id=prompt_id)
        self._outbox.push(message, slimmed.num_bytes + _FRAMING_BYTES, in_priority=in_priority)
        self._wake.set()

    async def _give_turn(self, *, is_crowded: bool) -> None:
        """Let the loop run; slow down too when what is pushed next may be dropped though the server keeps up."""
        self._pushes_left = _PUSHES_A_TURN
        is_moving = asyncio.get_running_loop().time() - self._moved_at < _MOVING_S
        await asyncio.sleep(_CROWDED_PAUSE_S if is_crowded and is_moving else 0)

    async def flush(self) -> None:
        """Wait until everything pushed so far is acknowledged, or was dropped."""
        target = self._outbox.last_position
        await self._until(lambda: self._outbox.settled_position >= target)

    async def drain(self) -> None:
        """Take nothing new, wait until all is acknowledged, and end the stream. The session goes on. Idempotent."""
        await self._end(Ending.DRAIN)

    async def close(self) -> None:
        """Take nothing new, wait until all is acknowledged, and stop the session. Idempotent; nothing after `drain`."""
        await self._end(Ending.CLOSE)

    async def report_exit(self, *, code: int | None, signal: str = "", last_stderr: str = "") -> None:
        """Like `close` for an agent process that ended by itself: the session is ERRORED at once, and not stopped.

        code: None when a signal ended it. signal: its name, such as SIGKILL.
        """
        if self._ending is Ending.NONE:
            self._bye = pb.ProducerBye(exit=pb.ProcessExit(code=code, signal=signal, last_stderr=last_stderr))
        await self._end(Ending.CLOSE)

    async def _end(self, ending: Ending) -> None:
        task = self._running()
        if self._ending is Ending.NONE:
            self._ending = ending
            if self._stream is not None:
                self._stream.bye = self._bye
                self._stream.ending = ending
            self._wake.set()
        await asyncio.wait([task])
        self._raise_failure()

    async def _leave(self) -> None:
        try:
            async with asyncio.timeout(_LEAVE_GRACE_S):
                await self.drain()
        except (TimeoutError, CompassError) as error:
            # The exception that ends the block is the one to report.
            if not self._outbox.num_unacknowledged:
                return
            _log.warning(
                "publisher left with events unacknowledged: session=%s unacknowledged=%d error=%r",
                self.session_id,
                self._outbox.num_unacknowledged,
                error,
            )

    async def _stop(self) -> None:
        task = self._running()
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # seen: whoever ended the publisher was told

    def _running(self) -> asyncio.Task[None]:
        if self._task is None:
            raise RuntimeError("a publisher is used as: async with client.publish(...) as publisher")
        return self._task

    async def _until(self, holds: Callable[[], bool]) -> None:
        """Wait until a claim about the outbox holds. Raises what ended the publisher."""
        while not holds():
            self._raise_failure()
            await self._moved.wait()

    @property
    def _is_open(self) -> bool:
        return self._ending is Ending.NONE and self._task is not None and not self._task.done()

    def _raise_over(self) -> NoReturn:
        self._raise_failure()
        raise PublisherClosedError(self.session_id)

    def _raise_failure(self) -> None:
        task = self._running()
        if not task.done():
            return
        if task.cancelled():
            raise PublisherClosedError(self.session_id)
        if (failure := task.exception()) is not None:
            raise failure

    async def _run(self) -> None:
        """Run one stream after the other until one ends as asked, or in a way that a further one would not help."""
        try:
            while not await self._attempt():
                pass
        except CompassError as error:
            error.num_unacknowledged = self._outbox.num_unacknowledged
            raise

    async def _attempt(self) -> bool:
        """Run one stream. True when it ended as asked, False when the next one may go on after a pause."""
        stream = PushStream(self._open_stream(), self._outbox, self._returns, wake=self._wake, on_ack=self._on_ack)
        stream.bye, stream.ending = self._bye, self._ending
        self._stream = stream
        try:
            await stream.run(self._hello)
        except _RETRYABLE as error:
            await self._recover(stream, error)
            return False
        except errors.SessionStoppedError:
            # The answer to bye was lost: the session is stopped as we asked, and all was acknowledged before.
            if not self._has_said_bye:
                raise
        finally:
            self._has_said_bye = self._has_said_bye or (stream.has_said_all and stream.ending is Ending.CLOSE)
            self._sent_bytes += stream.sent_bytes
            self._stream = None
        return True

    async def _recover(self, stream: PushStream, error: CompassError) -> None:
        """Pause before the next stream. Raises the error when another stream would not help."""
        if isinstance(error, errors.MessageTooLargeError) and stream.is_established and self._outbox.note_refused():
            return
        if isinstance(error, errors.SequenceJumpError) and (error.expected_seq or 0) <= self._outbox.acked_seq:
            raise error
        if not self._patience.is_failing:
            _log.warning("push stream lost, trying again: session=%s error=%s", self.session_id, error)
        await self._patience.pause(error)

    def _on_ack(self) -> None:
        outbox = self._outbox
        self._returns.settle(outbox.settled_position)
        if outbox.acked_seq > self._progress_seq or outbox.num_unacknowledged == 0:
            self._moved_at = asyncio.get_running_loop().time()
            self._progress_seq = outbox.acked_seq
            self._patience.progress()
        self._announce()

    def _announce(self) -> None:
        """Wake everybody who waits for the outbox to move, or for the end."""
        self._moved.set()
        self._moved = asyncio.Event()
