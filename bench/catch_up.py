"""Catching up: how fast one Python client reads a session that lies in the log, decoded frame by frame."""

import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from harness import NUM_RUNS, wire
from harness.processes import apart, serving
from harness.report import Report, Target, main, medians

import compass
from compass.v1 import compass_pb2 as pb
from compass.v1.compass_pb2_grpc import CompassServiceStub

TARGET = Target("frames/s", at_least=500_000)
SESSION = "catch-up"
SINGLES = "catch-up-singles"

Read: TypeAlias = Callable[[str, str, int], Awaitable[int]]


async def by_items(address: str, session_id: str, _: int) -> int:
    """Read with the SDK, frame by frame."""
    num_frames = 0
    async with compass.connect(address) as client, client.tail(session_id, follow=False) as tail:
        async for item in tail:
            assert isinstance(item, compass.Frame)
            num_frames += 1
    return num_frames


async def by_batches(address: str, session_id: str, _: int) -> int:
    """Read with the SDK, response by response."""
    async with compass.connect(address) as client, client.tail(session_id, follow=False) as tail:
        return sum([len(batch) async for batch in tail.batches()])


async def by_responses(address: str, session_id: str, _: int) -> int:
    """Read with the stub alone, response by response."""
    request = pb.TailSessionRequest(session_id=session_id, delivery=pb.TAIL_DELIVERY_COMPLETE)
    async with wire.channel(address) as channel:
        return sum([len(response.frames) async for response in CompassServiceStub(channel).TailSession(request)])


async def one_a_message(address: str, session_id: str, num_frames: int) -> int:
    """Read the frozen rpc, one frame a message. It has no end to read to: the session is open."""
    request = pb.SubscribeAgentSessionRequest(session_id=session_id)
    async with wire.channel(address) as channel:
        call = CompassServiceStub(channel).SubscribeAgentSession(request)
        for _ in range(num_frames):
            await call.read()
        call.cancel()
    return num_frames


async def rate(read: Read, address: str, session_id: str, num_frames: int) -> float:
    """Return frames a second, connecting included."""
    began = time.perf_counter()
    assert await read(address, session_id, num_frames) >= num_frames
    return num_frames / (time.perf_counter() - began)


def measure(*, quick: bool) -> Report:
    """Measure every way to read, in turns."""
    num_frames, num_singles = (5_000, 500) if quick else (200_000, 20_000)
    with serving() as server, apart() as client:
        client.run(wire.fill, server.address, SESSION, num_frames)
        client.run(wire.fill, server.address, SINGLES, num_singles, 1)

        def rate_of(read: Read, session_id: str = SESSION, num: int = num_frames) -> float:
            return client.run(rate, read, server.address, session_id, num)

        runs = [
            {
                "SDK": rate_of(by_items),
                "SDK by batches": rate_of(by_batches),
                "stub": rate_of(by_responses),
                "one frame a message": rate_of(one_a_message, num=num_singles),
                "SDK, one frame a commit": rate_of(by_items, SINGLES, num_singles),
            }
            for _ in range(NUM_RUNS)
        ]
    figures = medians(runs)
    value = figures.pop("SDK")
    return Report(
        f"catch-up of {num_frames:,} small frames by the SDK, frame by frame",
        TARGET,
        value,
        [run["SDK"] for run in runs],
        figures,
        {f"SDK to {peer}": value / figures[peer] for peer in ("stub", "one frame a message")},
    )


if __name__ == "__main__":
    main(measure)
