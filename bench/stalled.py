"""Stalled readers: what readers that never read cost the server's memory and a healthy reader's speed."""

import time
from typing import TYPE_CHECKING

from harness import MIB, NUM_RUNS, wire
from harness.processes import Flag, ServerProcess, apart, serving
from harness.report import Report, Target, main, medians

import compass
from compass.v1 import compass_pb2 as pb
from compass.v1.compass_pb2_grpc import CompassServiceStub

if TYPE_CHECKING:
    from concurrent.futures import Future

TARGET = Target("MiB", at_most=150)
SESSION = "stalled"
NUM_STALLED = 20
EVENT_BYTES = 2_048
_SAMPLE_S = 0.1


async def stall(address: str, delivery: pb.TailDelivery.ValueType, begin: Flag, end: Flag) -> None:
    """Subscribe many times, a connection each, and read nothing until told to end."""
    request = pb.TailSessionRequest(session_id=SESSION, delivery=delivery, follow=True)
    channels = [wire.channel(address) for _ in range(NUM_STALLED)]
    calls = [CompassServiceStub(channel).TailSession(request) for channel in channels]
    for call in calls:
        await call.initial_metadata()  # the server has subscribed it
    begin.set()
    await end.wait()
    for call in calls:
        call.cancel()
    for channel in channels:
        await channel.close()


async def read(address: str, num_events: int) -> float:
    """Tail as a healthy reader. Returns frames a second, from the first text to the last."""
    num_texts, began, ended = 0, 0.0, 0.0
    async with compass.connect(address) as client, client.tail(SESSION) as tail:
        async for item in tail:
            assert isinstance(item, compass.Frame)
            if item.event.HasField("assistant_text"):
                ended = time.perf_counter()
                began = began or ended
                num_texts += 1
    assert num_texts == num_events, "every frame must reach the healthy reader"
    return num_texts / (ended - began)


async def publish(address: str, num_events: int, begin: Flag) -> None:
    """Push as fast as is taken, then close the session."""
    event = wire.delta("x" * EVENT_BYTES)
    await begin.wait()
    async with compass.connect(address) as client, client.publish(SESSION, wait=True) as publisher:
        for _ in range(num_events):
            await publisher.push(event)


def peak_growth(server: ServerProcess, *work: "Future[object]") -> float:
    """Return by how many MiB the server has grown at most while the work goes on."""
    before = peak = server.rss_bytes()
    while not all(part.done() for part in work):
        peak = max(peak, server.rss_bytes())
        time.sleep(_SAMPLE_S)
    return (peak - before) / MIB


def run(name: str, delivery: pb.TailDelivery.ValueType | None, num_events: int) -> dict[str, float]:
    """Measure one variant with a server of its own; without a delivery nobody stalls."""
    with serving() as server, apart(3) as clients:
        clients.run(wire.create, server.address, SESSION)
        begin, end = clients.flag(), clients.flag()
        if delivery is None:
            begin.set()
        else:
            clients.start(stall, server.address, delivery, begin, end)
        reader = clients.start(read, server.address, num_events)
        producer = clients.start(publish, server.address, num_events, begin)
        growth_mib = peak_growth(server, producer, reader)
        producer.result()
        end.set()
        return {f"{name}, MiB": growth_mib, f"{name}, healthy reader, frames/s": reader.result()}


def measure(*, quick: bool) -> Report:
    """Measure without stalled readers and with those of both deliveries, in turns."""
    num_events = 2_000 if quick else 200_000
    runs = [
        run("nobody stalls", None, num_events)
        | run("live", pb.TAIL_DELIVERY_LIVE, num_events)
        | run("complete", pb.TAIL_DELIVERY_COMPLETE, num_events)
        for _ in range(1 if quick else NUM_RUNS)
    ]
    figures = medians(runs)
    worst = max(("live, MiB", "complete, MiB"), key=figures.__getitem__)
    alone = figures["nobody stalls, healthy reader, frames/s"]
    return Report(
        f"growth of the server, {NUM_STALLED} {worst.split(',')[0]} readers read none of {num_events:,} events of 2 KB",
        TARGET,
        figures[worst],
        [run[worst] for run in runs],
        {"nobody stalls": figures["nobody stalls, MiB"]},
        {
            f"speed of a healthy reader, {name} readers stalled to none": (
                figures[f"{name}, healthy reader, frames/s"] / alone
            )
            for name in ("live", "complete")
        },
        figures,
    )


if __name__ == "__main__":
    main(measure)
