"""One call of PushEvents: hello, batches as the window allows, acknowledgements as they come, and how it ends."""

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import Protocol

from grpc import StatusCode

from compass import calls
from compass.errors import CompassError, ServerUnavailableError
from compass.outbox import Batch, Outbox, Window
from compass.returns import Returns
from compass.status import from_rpc, translated
from compass.v1 import agent_gateway_pb2 as pb


class PushCall(calls.ReadableCall[pb.PushEventsResponse], calls.EndingCall, Protocol):
    """The call, as far as it is used here."""

    async def write(self, request: pb.PushEventsRequest) -> None:
        """Send one message."""
        ...

    async def done_writing(self) -> None:
        """Half-close."""
        ...


class Ending(Enum):
    """How a publisher ends once everything is acknowledged."""

    NONE = 0
    """Not yet."""
    DRAIN = 1
    """Half-close: the session goes on without this producer."""
    CLOSE = 2
    """Say bye: the session is stopped."""


class PushStream:
    """One stream of a publisher, from hello to its end.

    A task of its own writes, since a write waits for the peer's window while acknowledgements must be read all the
    same. Why the stream ended is what the reader finds: a failed write only stops the writing.
    """

    def __init__(
        self,
        call: PushCall,
        outbox: Outbox,
        returns: Returns,
        *,
        wake: asyncio.Event,
        on_ack: Callable[[], None],
    ) -> None:
        self._call = call
        self._first_status = calls.FirstStatus(call)
        self._outbox = outbox
        self._returns = returns
        self._wake = wake
        self._on_ack = on_ack
        self.ending = Ending.NONE
        """How to end; set, it takes effect when `wake` is set too."""
        self.bye = pb.ProducerBye()
        """What to say at a close."""
        self.is_established = False
        """Whether the server has answered hello."""
        self.has_said_all = False
        """Whether everything is acknowledged and bye or the half-close was sent."""
        self.sent_bytes = 0

    async def run(self, hello: pb.ProducerHello) -> None:
        """Run until the stream has ended as `ending` says. Raises CompassError when it ends in any other way."""
        try:
            await self._greet(hello)
            await self._exchange()
        finally:
            self._call.cancel()

    async def _greet(self, hello: pb.ProducerHello) -> None:
        await self._send(pb.PushEventsRequest(hello=hello))
        response = await self._read()
        if response is None:
            raise ServerUnavailableError("OK")
        self._outbox.resume(response.acked_seq)
        self._returns.rewind()
        self.is_established = True
        self._note(response)

    async def _exchange(self) -> None:
        writer = asyncio.create_task(self._write())
        try:
            await self._read_acks()
        finally:
            writer.cancel()
            await asyncio.wait([writer])
        if not writer.cancelled():
            writer.result()

    async def _read_acks(self) -> None:
        while (response := await self._read()) is not None:
            self._outbox.acknowledge(response.acked_seq)
            self._note(response)
            if response.closed:
                return
        if not self.has_said_all or self.ending is Ending.CLOSE:
            raise ServerUnavailableError("OK")

    async def _read(self) -> pb.PushEventsResponse | None:
        session_id = self._outbox.session_id
        try:
            return await calls.read(self._call, silence_s=None, session_id=session_id)
        except ServerUnavailableError:
            first = self._first_status.error
            if first is None:
                raise
            if first.code() is StatusCode.OK:
                return None
            raise from_rpc(first, session_id) from first

    def _note(self, response: pb.PushEventsResponse) -> None:
        if response.window_events and response.window_bytes:
            self._outbox.window = Window(response.window_events, response.window_bytes)
        self._on_ack()
        self._wake.set()

    async def _write(self) -> None:
        try:
            while not self.has_said_all:
                self._wake.clear()
                while (batch := self._outbox.next_batch()) is not None:
                    await self._send(_request(batch))
                for returned in self._returns.take():
                    await self._send(pb.PushEventsRequest(prompt_returned=returned))
                if self.ending is not Ending.NONE and self._outbox.num_unacknowledged == 0:
                    await self._say_all()
                else:
                    await self._wake.wait()
        except CompassError:
            return
        except BaseException:
            self._call.cancel()
            raise

    async def _say_all(self) -> None:
        if dropped := self._outbox.num_trailing_dropped:
            await self._send(_request(Batch(self._outbox.acked_seq + 1, [], dropped)))
        self.has_said_all = True
        if self.ending is Ending.CLOSE:
            await self._send(pb.PushEventsRequest(bye=self.bye))
        with translated():
            await self._call.done_writing()

    async def _send(self, request: pb.PushEventsRequest) -> None:
        try:
            with translated():
                await self._call.write(request)
        except asyncio.InvalidStateError:
            # The call is over already; reading from it says why.
            return
        self.sent_bytes += request.ByteSize()


def _request(batch: Batch) -> pb.PushEventsRequest:
    request = pb.PushEventsRequest()
    request.batch.first_seq = batch.first_seq
    request.batch.events.extend(batch.events)
    request.batch.dropped = batch.dropped
    return request
