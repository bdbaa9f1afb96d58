"""One push stream: reading ahead while commits are under way, and acknowledging them in order."""

import asyncio
from collections import deque
from typing import NamedTuple

from compass.v1 import agent_gateway_pb2 as gateway
from compass_service.doors import requests
from compass_service.doors.status import ServicerContext
from compass_service.problems import InvalidRequestError
from compass_service.session.holds import Attachment
from compass_service.session.session import Session


class _Pending(NamedTuple):
    commit: asyncio.Task[int]
    last_seq: int
    num_events: int
    num_bytes: int


class PushStream:
    """Reads batches into a session and writes cumulative acknowledgements.

    Bound of what is read but not committed: the window, in events and bytes; policy: stop reading, so that the producer
    waits. A stream ends by bye, by the end of the requests, by a lost attachment, or by a failed commit.
    """

    def __init__(self, context: ServicerContext, *, window_events: int, window_bytes: int) -> None:
        self._context = context
        self._window_events = window_events
        self._window_bytes = window_bytes
        self._pending: deque[_Pending] = deque()
        self._num_events = 0
        self._num_bytes = 0
        self._has_room = asyncio.Event()
        self._has_work = asyncio.Event()
        self._is_read = False
        self._acked_seq = 0
        self._bye: gateway.ProducerBye | None = None

    async def read(self) -> gateway.PushEventsRequest | None:
        """Read one message, None at the end. A cut and a half-close look alike here."""
        message = await self._context.read()
        return message if isinstance(message, gateway.PushEventsRequest) else None

    async def run(self, session: Session, attachment: Attachment) -> None:
        """Serve the stream from the answer to hello on. What is committed is acknowledged before a refusal."""
        self._acked_seq = attachment.acked_seq
        await self._write(self._acked_seq, await asyncio.shield(attachment.commit))
        reading = asyncio.create_task(self._read_all(session, attachment))
        acking = asyncio.create_task(self._ack_all())
        revoked = asyncio.create_task(_revoked(attachment))
        try:
            await asyncio.wait({acking, revoked}, return_when=asyncio.FIRST_COMPLETED)
            if revoked.done():
                reading.cancel()
                await acking
                await revoked
            await acking
            await reading
        finally:
            for task in (reading, acking, revoked):
                task.cancel()
            await asyncio.gather(reading, acking, revoked, return_exceptions=True)
        if self._bye is not None:
            await self._end(session, self._bye)

    async def _read_all(self, session: Session, attachment: Attachment) -> None:
        try:
            while (message := await self.read()) is not None:
                match message.WhichOneof("item"):
                    case "batch":
                        self._admit(session, attachment, message)
                    case "bye":
                        self._bye = message.bye
                        return
                    case "prompt_returned":
                        returned = message.prompt_returned
                        self._await(
                            session.return_prompt(attachment, returned.prompt_id, control_seq=returned.control_seq),
                        )
                    case _:
                        raise InvalidRequestError("item", "must be batch or bye after hello")
                await self._wait_for_room()
        finally:
            self._is_read = True
            self._has_work.set()

    def _admit(self, session: Session, attachment: Attachment, message: gateway.PushEventsRequest) -> None:
        batch = message.batch
        events = [requests.event(event, seq) for seq, event in enumerate(batch.events, batch.first_seq)]
        commit = session.push(attachment, batch.first_seq, events, batch.dropped)
        self._await(
            commit, last_seq=batch.first_seq + len(events) - 1, num_events=len(events), num_bytes=message.ByteSize()
        )

    def _await(self, commit: asyncio.Task[int], *, last_seq: int = 0, num_events: int = 0, num_bytes: int = 0) -> None:
        self._pending.append(_Pending(commit, last_seq, num_events, num_bytes))
        self._num_events += num_events
        self._num_bytes += num_bytes
        self._has_work.set()

    async def _wait_for_room(self) -> None:
        while self._num_events > self._window_events or self._num_bytes > self._window_bytes:
            self._has_room.clear()
            await self._has_room.wait()

    async def _ack_all(self) -> None:
        """Acknowledge commits in order, several at once when several are done."""
        while True:
            while not self._pending:
                if self._is_read:
                    return
                self._has_work.clear()
                await self._has_work.wait()
            await asyncio.wait({self._pending[0].commit})
            head_seq = 0
            while self._pending and self._pending[0].commit.done():
                head_seq = self._pending[0].commit.result()
                self._acked_seq = max(self._acked_seq, self._release(self._pending.popleft()))
            await self._write(self._acked_seq, head_seq)

    def _release(self, done: _Pending) -> int:
        self._num_events -= done.num_events
        self._num_bytes -= done.num_bytes
        self._has_room.set()
        return done.last_seq

    async def _end(self, session: Session, bye: gateway.ProducerBye) -> None:
        if bye.HasField("exit"):
            code = bye.exit.code if bye.exit.HasField("code") else None
            await session.exit(code=code, signal=bye.exit.signal, last_stderr=bye.exit.last_stderr)
        else:
            await session.close()
        await self._write(self._acked_seq, session.head_seq, closed=True)

    async def _write(self, acked_seq: int, head_seq: int, *, closed: bool = False) -> None:
        response = gateway.PushEventsResponse(
            acked_seq=acked_seq,
            head_seq=head_seq,
            window_events=self._window_events,
            window_bytes=self._window_bytes,
            closed=closed,
        )
        await self._context.write(response)


async def _revoked(attachment: Attachment) -> None:
    raise await asyncio.shield(attachment.revoked)
