"""SIGKILL at random instants: nothing acknowledged is lost, nothing is there twice, and open tails account for all."""

import asyncio
import os
import random
import socket

import pytest

import compass
from e2e import wire

NUM_EVENTS = 20_000
ROUNDS = int(os.environ.get("COMPASS_KILL_ROUNDS", "20"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def read_all(client: compass.Client, session: str) -> list[object]:
    return [item async for item in client.tail(session)]


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("round_number", range(ROUNDS))
async def test_a_push_over_kills_is_stored_once_and_open_tails_resume(serve_process, doors, round_number):
    chance = random.Random(round_number)
    listen = f"127.0.0.1:{free_port()}"
    server = await serve_process(listen=listen)
    async with compass.connect(listen) as client:
        publisher = client.publish("s", wait=True)
        async with publisher:
            await publisher.push(wire.message_start())
            await publisher.flush()
            tails = [
                asyncio.create_task(read_all(client, "s")),
                asyncio.create_task(collect(client.tail("s", delivery="live"))),
            ]
            kills = sorted(chance.sample(range(NUM_EVENTS), 2))
            acked_before_kill = 0
            for number in range(NUM_EVENTS):
                await publisher.push(wire.delta(f"{number} "))
                if number in kills:
                    await server_has_some(publisher, chance.randrange(1, 200))
                    acked_before_kill = publisher.stats.acked_seq
                    await server.kill()
                    server = await serve_process(listen=listen)
            await publisher.flush()
        complete, live = await asyncio.gather(*tails)
        replay = await read_all(client, "s")

    assert acked_before_kill > 0
    frames = [item for item in replay if isinstance(item, compass.Frame)]
    assert [frame.seq for frame in frames] == list(range(1, len(frames) + 1))
    expected = "".join(f"{number} " for number in range(NUM_EVENTS))
    assert "".join(frame.event.assistant_text.text for frame in frames) == expected
    assert complete == replay
    check_items(live, last_seq=frames[-1].seq)


async def collect(tail: compass.Tail) -> list[object]:
    return [item async for item in tail]


async def server_has_some(publisher: compass.Publisher, num_events: int) -> None:
    """Wait until the server has acknowledged some more events, so that a kill hits it at work."""
    wanted = publisher.stats.acked_seq + num_events
    loop = asyncio.get_running_loop()
    while publisher.stats.acked_seq < min(wanted, publisher.stats.pushed):
        turn = loop.create_future()
        loop.call_later(0.001, turn.set_result, None)
        await turn


def check_items(items: list[object], *, last_seq: int) -> None:
    """Check that every seq is given once or inside a gap."""
    at = 0
    for item in items:
        if isinstance(item, compass.Gap) and item.seq is None:
            assert item.first_seq == at + 1
            at = item.last_seq
        else:
            assert item.seq == at + 1
            at = item.seq
    assert at == last_seq
