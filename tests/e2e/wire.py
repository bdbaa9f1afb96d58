"""Driving both doors with the generated stubs alone, so that the tests see what is on the wire."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from compass.v1 import agent_gateway_pb2 as gw
from compass.v1 import compass_pb2 as pb

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"


def recording(name: str) -> list[str]:
    """Read a recording: one inner event a line."""
    return RECORDINGS.joinpath(f"{name}.jsonl").read_bytes().decode().rstrip("\n").split("\n")


def delta(text: str) -> str:
    """Build the inner event of one piece of text."""
    event = {"type": "text_delta", "contentIndex": 0, "delta": text}
    return json.dumps({"type": "message_update", "assistantMessageEvent": event})


def message_start(role: str = "assistant", text: str = "") -> str:
    """Build the inner event that opens a message."""
    content = [{"type": "text", "text": text}] if text else []
    return json.dumps({"type": "message_start", "message": {"role": role, "content": content}})


def message_end(stop_reason: str, text: str = "", **more: object) -> str:
    """Build the inner event that ends an assistant message."""
    content = [{"type": "text", "text": text}] if text else []
    message = {"role": "assistant", "content": content, "stopReason": stop_reason, **more}
    return json.dumps({"type": "message_end", "message": message})


def batch(first_seq: int, events: Sequence[str], dropped: int = 0) -> gw.PushEventsRequest:
    """Build one batch."""
    inner = [gw.InnerEvent(json=event) for event in events]
    return gw.PushEventsRequest(batch=gw.EventBatch(first_seq=first_seq, events=inner, dropped=dropped))


async def read(call):
    """Read one message; None at a normal end, the refusal at any other."""
    response = await call.read()
    if response is not grpc.aio.EOF:
        return response
    if (code := await call.code()) is grpc.StatusCode.OK:
        return None
    raise grpc.aio.AioRpcError(
        code,
        await call.initial_metadata(),
        await call.trailing_metadata(),
        await call.details(),
    )


async def read_all(call) -> list:
    """Read what is left of a stream, whose end is a normal one or raises."""
    return [response async for response in _responses(call)]


async def _responses(call):
    while (response := await read(call)) is not None:
        yield response


class Push:
    """One push stream, a message at a time."""

    def __init__(self, gateway, session_id: str = "s", *, producer_id: str = "p", epoch: int = 1, **hello) -> None:
        self.call = gateway.PushEvents()
        self._hello = gw.ProducerHello(session_id=session_id, producer_id=producer_id, epoch=epoch, **hello)
        self.next_seq = 1

    async def __aenter__(self):
        await self.call.write(gw.PushEventsRequest(hello=self._hello))
        first = await self._read()
        self.next_seq = first.acked_seq + 1
        return self

    async def __aexit__(self, *_):
        self.call.cancel()

    async def _read(self) -> gw.PushEventsResponse:
        response = await read(self.call)
        assert response is not None, "the push stream ended early"
        return response

    async def send(self, *events: str, dropped: int = 0) -> None:
        """Send a batch without waiting for its acknowledgement."""
        # A stream that the server has ended refuses writes; why it ended is what reading then tells.
        with contextlib.suppress(asyncio.InvalidStateError):
            await self.call.write(batch(self.next_seq, events, dropped))
        self.next_seq += len(events)

    async def acked(self, seq: int | None = None) -> gw.PushEventsResponse:
        """Wait until everything sent, or everything up to seq, is acknowledged."""
        want = self.next_seq - 1 if seq is None else seq
        while (response := await self._read()).acked_seq < want:
            pass
        return response

    async def push(self, *events: str, dropped: int = 0) -> gw.PushEventsResponse:
        """Send a batch and wait until it is durable."""
        await self.send(*events, dropped=dropped)
        return await self.acked()

    async def bye(self, **exit_facts: object) -> gw.PushEventsResponse:
        """Close the session, or say how the process ended."""
        bye = gw.ProducerBye(exit=gw.ProcessExit(**exit_facts) if exit_facts else None)
        await self.call.write(gw.PushEventsRequest(bye=bye))
        while not (response := await self._read()).closed:
            pass
        return response


async def push_all(gateway, session_id: str, events: Iterable[str], *, close: bool = True, **hello: object) -> None:
    """Push events in one stream and, unless told otherwise, close the session."""
    async with Push(gateway, session_id, **hello) as push:
        waiting = list(events)
        for start in range(0, len(waiting), 256):
            await push.push(*waiting[start : start + 256])
        if close:
            await push.bye()


async def tail(compass, session_id: str = "s", **request: object) -> AsyncIterator[pb.TailSessionResponse]:
    """Tail until the stream ends; whatever ends it, the call is not left behind."""
    call = compass.TailSession(pb.TailSessionRequest(session_id=session_id, **request))
    try:
        async for response in call:
            yield response
    finally:
        call.cancel()


async def frames_of(compass, session_id: str = "s", **request: object) -> list[pb.AgentSessionFrame]:
    """Return every frame of a tail that ends by itself, and check that it does with the sentinel."""
    frames: list[pb.AgentSessionFrame] = []
    last = None
    async for response in tail(compass, session_id, **request):
        frames.extend(response.frames)
        last = response
    assert last is not None
    assert last.HasField("end"), "the tail ended without its sentinel"
    return frames


def kinds(frames: Iterable[pb.AgentSessionFrame]) -> list[str]:
    """Name frames shortly: the event's arm, the state, or the gap."""
    return [kind(frame) for frame in frames]


def kind(frame: pb.AgentSessionFrame) -> str:
    """Name one frame shortly."""
    if frame.HasField("gap"):
        return "gap"
    if frame.state:
        return pb.AgentSessionState.Name(frame.state).removeprefix("AGENT_SESSION_STATE_")
    return str(frame.event.WhichOneof("event"))


def check_account(frames: Iterable[pb.AgentSessionFrame], *, since_seq: int = 0) -> int:
    """Check that seqs grow without a repeat and that every absence is inside a gap. Returns the last seq."""
    at = since_seq
    for frame in frames:
        if frame.HasField("gap") and not frame.seq:
            assert frame.gap.first_seq == at + 1
            assert frame.gap.dropped == frame.gap.last_seq - frame.gap.first_seq + 1
            at = frame.gap.last_seq
        else:
            assert frame.seq == at + 1, f"seq {frame.seq} after {at}"
            at = frame.seq
    return at


def reason(error: grpc.aio.AioRpcError) -> str:
    """Return the ErrorInfo reason of a refusal."""
    return info(error).reason


def info(error: grpc.aio.AioRpcError) -> error_details_pb2.ErrorInfo:
    """Return the ErrorInfo of a refusal."""
    status = rpc_status.from_call(error)
    assert status is not None
    for detail in status.details:
        found = error_details_pb2.ErrorInfo()
        if detail.Unpack(found):
            assert found.domain == "compass"
            return found
    raise AssertionError("no ErrorInfo")
