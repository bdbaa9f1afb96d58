"""Pushing: how fast one producer gets small events acknowledged as durable."""

import time

from harness import NUM_RUNS, wire
from harness.processes import apart, serving
from harness.report import Report, Target, main, medians

import compass

TARGET = Target("events/s", at_least=50_000)


async def by_sdk(address: str, session_id: str, num_events: int) -> float:
    """Publish without drops; the clock stops when all is acknowledged."""
    events = wire.small_deltas(num_events)
    async with compass.connect(address) as client, client.publish(session_id, wait=True) as publisher:
        began = time.perf_counter()
        for event in events:
            await publisher.push(event)
        await publisher.flush()
        elapsed_s = time.perf_counter() - began
    assert publisher.stats.dropped == 0
    return num_events / elapsed_s


async def by_stub(address: str, session_id: str, num_events: int, batch_events: int) -> float:
    """Push messages that are built beforehand."""
    requests = wire.batches(wire.small_deltas(num_events), batch_events)
    began = time.perf_counter()
    await wire.push(address, session_id, requests)
    return num_events / (time.perf_counter() - began)


def measure(*, quick: bool) -> Report:
    """Measure the SDK and the stub, in turns, a new session each."""
    num_events = 2_000 if quick else 100_000
    with serving() as server, apart() as client:
        address = server.address
        runs = [
            {
                "SDK": client.run(by_sdk, address, f"sdk-{run}", num_events),
                "stub, 64 a message": client.run(by_stub, address, f"stub-64-{run}", num_events, 64),
                "stub, 1024 a message": client.run(by_stub, address, f"stub-1024-{run}", num_events, 1_024),
            }
            for run in range(NUM_RUNS)
        ]
    figures = medians(runs)
    value = figures.pop("SDK")
    return Report(
        f"push of {num_events:,} small events by one producer of the SDK, until all are durable",
        TARGET,
        value,
        [run["SDK"] for run in runs],
        figures,
        {"SDK to stub, 1024 a message": value / figures["stub, 1024 a message"]},
    )


if __name__ == "__main__":
    main(measure)
