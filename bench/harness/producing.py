"""A producer that keeps to a rate: the SDK's publisher, pushing events that carry the time of their push."""

import asyncio
from dataclasses import dataclass

import compass
from harness import wire
from harness.processes import Flag
from harness.report import now_ms


@dataclass(frozen=True, slots=True)
class Steady:
    """How much is pushed, and how fast."""

    num_events: int
    events_per_s: int
    priority_every: int = 0
    """Every so many events one is a user message, so in the priority lane. 0 = none."""

    def is_priority(self, number: int) -> bool:
        """Tell whether the event of this number, from 0, is a user message."""
        return self.priority_every > 0 and (number + 1) % self.priority_every == 0


async def publish_steadily(address: str, session_id: str, begin: Flag, steady: Steady) -> float:
    """Push at a rate once told to, then close the session. Returns the rate that it came to. None may be dropped."""
    async with compass.connect(address) as client, client.publish(session_id, wait=True) as publisher:
        await begin.wait()
        began = now_ms()
        for number in range(steady.num_events):
            if (wait_ms := began + number * 1_000 / steady.events_per_s - now_ms()) > 0:
                await asyncio.sleep(wait_ms / 1_000)
            await publisher.push(_stamped_message() if steady.is_priority(number) else _stamped_delta())
        elapsed_ms = now_ms() - began
    assert publisher.stats.dropped == 0
    return steady.num_events * 1_000 / elapsed_ms


def _stamped_delta() -> str:
    return wire.delta(f"{now_ms():.3f} ")


def _stamped_message() -> str:
    return wire.user_message(f"{now_ms():.3f}")
