"""Idle subscribers: what each costs the server's memory."""

import asyncio
import time

from harness import NUM_RUNS, wire
from harness.processes import Flag, apart, serving
from harness.report import Report, Target, main, medians

from compass.v1 import compass_pb2 as pb
from compass.v1.compass_pb2_grpc import CompassServiceStub

TARGET = Target("KiB", at_most=100)
SESSION = "idle"
_LOOK_S = 0.05


async def subscribe(address: str, num_tails: int, num_connections: int, current: Flag, end: Flag) -> None:
    """Subscribe, wait until every tail is current, say so, and stay until told to end."""
    request = pb.TailSessionRequest(session_id=SESSION, follow=True)
    channels = [wire.channel(address) for _ in range(num_connections)]
    calls = [CompassServiceStub(channels[tail % num_connections]).TailSession(request) for tail in range(num_tails)]

    async def read_until_current(call: wire.ReadableCall) -> None:
        while (await call.read()).frames:
            pass

    await asyncio.gather(*map(read_until_current, calls))
    current.set()
    await end.wait()
    for call in calls:
        call.cancel()


def kib_each(num_tails: int, num_connections: int) -> float:
    """Return what one costs a server of its own."""
    with serving() as server, apart() as client:
        client.run(wire.create, server.address, SESSION)
        current, end = client.flag(), client.flag()
        before = server.rss_bytes()
        subscribing = client.start(subscribe, server.address, num_tails, num_connections, current, end)
        while not (current.is_set or subscribing.done()):
            time.sleep(_LOOK_S)
        grown = server.rss_bytes() - before
        end.set()
        subscribing.result()
    return grown / 1024 / num_tails


def measure(*, quick: bool) -> Report:
    """Measure with a connection for each subscriber and with a few for all, in turns."""
    num_tails = 50 if quick else 1_000
    runs = [
        {
            "a connection each": kib_each(num_tails, num_tails),
            "10 connections": kib_each(num_tails, 10),
        }
        for _ in range(1 if quick else NUM_RUNS)
    ]
    figures = medians(runs)
    value = figures.pop("a connection each")
    return Report(
        f"memory of the server for each of {num_tails:,} idle subscribers, a connection each",
        TARGET,
        value,
        [run["a connection each"] for run in runs],
        figures,
    )


if __name__ == "__main__":
    main(measure)
