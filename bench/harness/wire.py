"""Both doors through the generated stubs alone: what the benchmarks fill sessions with, and compare the SDK to."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any, Protocol

import grpc

from compass.v1 import agent_gateway_pb2 as gateway
from compass.v1.agent_gateway_pb2_grpc import AgentGatewayStub

BATCH_EVENTS = 256


class ReadableCall(Protocol):
    """A call whose responses come one by one."""

    async def read(self) -> Any:
        """Return the next response."""
        ...


def delta(text: str) -> str:
    """Return the inner event of one piece of text."""
    event = {"type": "text_delta", "contentIndex": 0, "delta": text}
    return json.dumps({"type": "message_update", "assistantMessageEvent": event})


def user_message(text: str) -> str:
    """Return the inner event of a user message, whose frame travels in the priority lane."""
    return json.dumps(
        {"type": "message_start", "message": {"role": "user", "content": [{"type": "text", "text": text}]}}
    )


def small_deltas(num_events: int) -> list[str]:
    """Return events as an agent writes them: a word or two each."""
    return [delta(f"word{number} ") for number in range(num_events)]


def channel(address: str) -> grpc.aio.Channel:
    """Open a connection that no other channel shares."""
    return grpc.aio.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])


def batches(events: Sequence[str], batch_events: int = BATCH_EVENTS) -> list[gateway.PushEventsRequest]:
    """Return the messages that carry the events."""
    requests = []
    for start in range(0, len(events), batch_events):
        inner = [gateway.InnerEvent(json=event) for event in events[start : start + batch_events]]
        requests.append(gateway.PushEventsRequest(batch=gateway.EventBatch(first_seq=start + 1, events=inner)))
    return requests


async def push(address: str, session_id: str, requests: Sequence[gateway.PushEventsRequest]) -> None:
    """Push as a new producer with as many messages in flight as the server's window has room for, until all is durable.

    The session stays open.
    """
    async with channel(address) as connection:
        call = AgentGatewayStub(connection).PushEvents()
        hello = gateway.ProducerHello(session_id=session_id, producer_id="bench", epoch=1)
        await call.write(gateway.PushEventsRequest(hello=hello))
        window = (await call.read()).window_events
        acked_seq, moved = 0, asyncio.Event()

        async def read_acks(last_seq: int) -> None:
            nonlocal acked_seq
            while acked_seq < last_seq:
                acked_seq = (await call.read()).acked_seq
                moved.set()

        async with asyncio.TaskGroup() as tasks:
            last = requests[-1].batch
            tasks.create_task(read_acks(last.first_seq + len(last.events) - 1))
            for request in requests:
                while request.batch.first_seq + len(request.batch.events) - 1 - acked_seq > window:
                    moved.clear()
                    await moved.wait()
                await call.write(request)
        call.cancel()


async def create(address: str, session_id: str) -> None:
    """Bring a session into being, so that it can be tailed before its producer begins."""
    async with channel(address) as connection:
        event = gateway.InnerEvent(json='{"type": "agent_start"}')
        await AgentGatewayStub(connection).PushEvent(gateway.PushEventRequest(session_id=session_id, event=event))


async def fill(address: str, session_id: str, num_events: int, batch_events: int = BATCH_EVENTS) -> None:
    """Fill a session with small deltas."""
    await push(address, session_id, batches(small_deltas(num_events), batch_events))
