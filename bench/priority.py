"""Priority behind a backlog: how late a slow live reader of the SDK sees a priority frame."""

import asyncio

from harness import NUM_RUNS, wire
from harness.processes import Flag, apart, serving
from harness.producing import Steady, publish_steadily
from harness.report import Report, Target, main, medians, now_ms, percentile

import compass
from compass.v1 import compass_pb2 as pb
from compass.v1.compass_pb2_grpc import CompassServiceStub

TARGET = Target("ms", at_most=100)
EVENTS_PER_S = 10_000
READ_PER_S = 2_000
PRIORITY_EVERY = 2_000
_SLACK_MS = 10


class Pace:
    """Takes so many frames a second and no more. Time that went by idle is not made up for."""

    def __init__(self) -> None:
        self._due_ms = now_ms()

    async def take(self) -> None:
        """Take one; wait until it may be taken."""
        self._due_ms = max(self._due_ms + 1_000 / READ_PER_S, now_ms() - _SLACK_MS)
        if (wait_ms := self._due_ms - now_ms()) > 0:
            await asyncio.sleep(wait_ms / 1_000)


def note(frame: pb.AgentSessionFrame, lags: list[float]) -> None:
    """Note how late a priority frame comes."""
    if frame.event.HasField("user_message"):
        lags.append(now_ms() - float(frame.event.user_message.text))


async def read_by_sdk(address: str, session_id: str, begin: Flag) -> list[float]:
    """Tail slowly with the SDK."""
    pace, lags = Pace(), []
    async with compass.connect(address) as client, client.tail(session_id, delivery="live") as tail:
        async for item in tail:
            begin.set()
            if isinstance(item, compass.Frame):
                note(item, lags)
            await pace.take()
    return lags


async def read_by_stub(address: str, session_id: str, begin: Flag) -> list[float]:
    """Tail slowly with the stub, its channel as it comes."""
    pace, lags = Pace(), []
    request = pb.TailSessionRequest(session_id=session_id, delivery=pb.TAIL_DELIVERY_LIVE, follow=True)
    async with wire.channel(address) as channel:
        async for response in CompassServiceStub(channel).TailSession(request):
            begin.set()
            for frame in response.frames:
                note(frame, lags)
                await pace.take()
    return lags


def measure(*, quick: bool) -> Report:
    """Measure the SDK and the stub, in turns, a new session each. Behind a stub waits all that was pushed."""
    num_events, num_for_stub = (10_000, 4_000) if quick else (100_000, 20_000)
    runs = []
    with serving() as server, apart(2) as both:
        for run in range(1 if quick else NUM_RUNS):
            found: dict[str, float] = {}
            for name, read, num in (("SDK", read_by_sdk, num_events), ("stub", read_by_stub, num_for_stub)):
                session = server.address, f"{name}-{run}", both.flag()
                both.run(wire.create, *session[:2])
                reader = both.start(read, *session)
                found[f"{name}, events/s"] = both.run(
                    publish_steadily, *session, Steady(num, EVENTS_PER_S, PRIORITY_EVERY)
                )
                lags = reader.result()
                assert len(lags) == num // PRIORITY_EVERY, "no priority frame may be missing"
                found |= {f"{name} p{percent}": percentile(lags, percent) for percent in (50, 99)}
            runs.append(found)
    figures = medians(runs)
    return Report(
        f"p50 from push to receipt of a priority frame, reader takes {READ_PER_S:,} of {EVENTS_PER_S:,} frames/s",
        TARGET,
        figures["SDK p50"],
        [run["SDK p50"] for run in runs],
        {"stub, its channel as it comes": figures["stub p50"]},
        {"SDK to stub": figures["SDK p50"] / figures["stub p50"]},
        figures,
    )


if __name__ == "__main__":
    main(measure)
