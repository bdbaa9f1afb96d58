"""Fanning out: how late each of many tails sees what one producer pushes at a steady rate."""

import asyncio
from typing import Literal, TypeAlias

from harness import NUM_RUNS, wire
from harness.processes import Flag, apart, serving
from harness.producing import Steady, publish_steadily
from harness.report import Report, Target, main, medians, now_ms, percentile

import compass

TARGET = Target("ms", at_most=50)
NUM_TAILS = 50
NUM_CLIENTS = 5
EVENTS_PER_S = 2_000

Delivery: TypeAlias = Literal["complete", "live"]


async def receive(client: compass.Client, session_id: str, delivery: Delivery, present: asyncio.Barrier) -> list[float]:
    """Tail to the end; return how late each text came. A gap would be a frame that did not come."""
    lags = []
    async with client.tail(session_id, delivery=delivery) as tail:
        await anext(tail)
        await present.wait()
        async for item in tail:
            assert isinstance(item, compass.Frame), f"a healthy tail was given {item}"
            if item.event.HasField("assistant_text"):
                lags.append(now_ms() - float(item.event.assistant_text.text))
    return lags


async def receive_all(
    address: str,
    session_id: str,
    begin: Flag,
    num_events: int,
    delivery: Delivery,
) -> dict[str, float]:
    """Tail many times over a few connections; once all are there, say so. Return the lags of all of them together."""
    present = asyncio.Barrier(NUM_TAILS + 1)
    clients = [compass.connect(address) for _ in range(NUM_CLIENTS)]
    async with asyncio.TaskGroup() as tasks:
        tails = [
            tasks.create_task(receive(clients[number % NUM_CLIENTS], session_id, delivery, present))
            for number in range(NUM_TAILS)
        ]
        await present.wait()
        begin.set()
    for client in clients:
        await client.close()
    assert {len(tail.result()) for tail in tails} == {num_events}, "every frame must reach every tail"
    lags = [lag for tail in tails for lag in tail.result()]
    return {f"{delivery} p{percent}": percentile(lags, percent) for percent in (50, 99)}


def measure(*, quick: bool) -> Report:
    """Measure both deliveries, in turns, a new session each."""
    num_events = 1_000 if quick else 10_000
    runs = []
    with serving() as server, apart(2) as both:
        for run in range(NUM_RUNS):
            found: dict[str, float] = {}
            for delivery in ("live", "complete"):
                session = server.address, f"{delivery}-{run}", both.flag()
                both.run(wire.create, *session[:2])
                reader = both.start(receive_all, *session, num_events, delivery)
                found["events/s"] = both.run(publish_steadily, *session, Steady(num_events, EVENTS_PER_S))
                found |= reader.result()
            runs.append(found)
    figures = medians(runs)
    worst = max(("live p99", "complete p99"), key=figures.__getitem__)
    return Report(
        f"p99 from push to receipt, {NUM_TAILS} {worst.split()[0]} tails of one session, {EVENTS_PER_S:,} events/s",
        TARGET,
        figures[worst],
        [run[worst] for run in runs],
        details=figures,
    )


if __name__ == "__main__":
    main(measure)
