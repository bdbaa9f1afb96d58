"""Slow readers: what the lanes drop, what they never drop, and that nobody else notices."""

import asyncio
import random

import grpc
import pytest

from compass.v1 import compass_pb2 as pb
from e2e import wire

SMALL_WINDOW = (("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 16_384))
TRACE_BOUND = 200


def failure(number: int) -> str:
    return wire.message_end("error", errorMessage=f"failure {number}")


async def stalled_reader(compass) -> object:
    """Open a LIVE tail, read until it is current, then stop reading."""
    call = compass.TailSession(
        pb.TailSessionRequest(session_id="s", follow=True, delivery=pb.TAIL_DELIVERY_LIVE),
    )
    while (await call.read()).frames:
        pass
    return call


async def read_rest(call) -> list[pb.AgentSessionFrame]:
    frames: list[pb.AgentSessionFrame] = []
    while (response := await call.read()) is not grpc.aio.EOF:
        frames.extend(response.frames)
        if response.HasField("end"):
            return frames
    raise AssertionError("the tail ended without its sentinel")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("priority_frames", [10, 10_000])
async def test_a_stalled_reader_gets_every_priority_frame_the_newest_trace_and_exact_gaps(
    serve,
    doors,
    priority_frames,
):
    server = await serve(lanes={"trace_frames": TRACE_BOUND, "priority_frames": priority_frames})
    compass, _ = doors(server.addresses[0], *SMALL_WINDOW)
    _, producer = doors(server.addresses[0])
    async with wire.Push(producer) as push:
        call = await stalled_reader(compass)
        await push.push(wire.message_start(), *(wire.delta(f"{number:04} " * 200) for number in range(3 * TRACE_BOUND)))
        for number in range(250):
            await push.push(failure(number), '{"type":"agent_start"}', wire.message_start())
        await push.push(*(wire.delta(f"last {number} ") for number in range(10)))
        await push.bye()
        frames = await read_rest(call)
        call.cancel()
    complete = await wire.frames_of(compass)

    wire.check_account(frames, since_seq=1)
    priority = {"session_error", "ERRORED", "WORKING", "activity", "message_end", "STOPPED"}
    assert [frame.seq for frame in complete[1:] if wire.kind(frame) in priority] == [
        frame.seq for frame in frames if wire.kind(frame) in priority
    ]
    text = "".join(frame.event.assistant_text.text for frame in frames)
    assert text.endswith("".join(f"last {number} " for number in range(10)))
    gaps = [frame.gap for frame in frames if wire.kind(frame) == "gap"]
    assert gaps
    assert {pb.SESSION_GAP_REASON_SUBSCRIBER_LAG} == {gap.reason for gap in gaps}
    assert len(complete) - 1 == sum(gap.dropped for gap in gaps) + len(frames) - len(gaps)
    session = (await compass.GetSession(pb.GetSessionRequest(session_id="s"))).session
    assert sum(gap.dropped for gap in gaps) == session.counts.dropped_subscriber_lag


@pytest.mark.timeout(60)
async def test_a_gap_can_be_fetched_from_the_log_and_a_burst_gives_few_gaps(serve, doors):
    server = await serve(lanes={"trace_frames": TRACE_BOUND})
    compass, _ = doors(server.addresses[0], *SMALL_WINDOW)
    _, producer = doors(server.addresses[0])
    async with wire.Push(producer) as push:
        call = await stalled_reader(compass)
        healthy = asyncio.create_task(wire.frames_of(compass, follow=True, delivery=pb.TAIL_DELIVERY_COMPLETE))
        await push.push(wire.message_start())
        for start in range(0, 5_000, 500):
            await push.push(*(wire.delta(f"{number} ") for number in range(start, start + 500)))
        await push.bye()
        frames = await read_rest(call)
        call.cancel()

    gaps = [frame.gap for frame in frames if wire.kind(frame) == "gap"]
    assert 1 <= len(gaps) <= 8
    assert "gap" not in wire.kinds(await healthy)
    repaired = [frame for frame in frames if wire.kind(frame) != "gap"]
    for gap in gaps:
        repaired += await wire.frames_of(compass, since_seq=gap.first_seq - 1, until_seq=gap.last_seq)
    repaired.sort(key=lambda frame: frame.seq)
    assert (await wire.frames_of(compass))[1:] == repaired


@pytest.mark.timeout(60)
async def test_a_stalled_reader_slows_neither_the_producer_nor_a_complete_reader(serve, doors):
    server = await serve()
    stalled_door, _ = doors(server.addresses[0], *SMALL_WINDOW)
    compass, producer = doors(server.addresses[0])
    async with wire.Push(producer) as push:
        calls = [await stalled_reader(stalled_door) for _ in range(5)]
        healthy = asyncio.create_task(wire.frames_of(compass, follow=True, delivery=pb.TAIL_DELIVERY_COMPLETE))
        await push.push(wire.message_start())
        for start in range(0, 3_000, 300):
            await push.push(*(wire.delta(f"{number} ".ljust(500)) for number in range(start, start + 300)))
        await push.bye()
        frames = await healthy
        for call in calls:
            call.cancel()

    assert wire.kinds(frames).count("assistant_text") == 3_000
    wire.check_account(frames)


@pytest.mark.timeout(60)
async def test_readers_that_join_at_any_moment_with_any_cursor_miss_nothing_unannounced(serve, doors):
    server = await serve(lanes={"trace_frames": 64})
    compass, producer = doors(server.addresses[0])
    chance = random.Random(4)
    num_readers, num_batches = 50, 60

    async def read(since_seq: int, delivery: int) -> list[pb.AgentSessionFrame]:
        return await wire.frames_of(compass, since_seq=since_seq, delivery=delivery, follow=True)

    joins = sorted(chance.randrange(num_batches) for _ in range(num_readers))
    readers: list[tuple[int, asyncio.Task[list[pb.AgentSessionFrame]]]] = []
    async with wire.Push(producer) as push:
        head_seq = (await push.push(wire.message_start())).head_seq
        for number in range(num_batches):
            while joins and joins[0] <= number:
                joins.pop(0)
                since_seq = chance.randint(0, head_seq)
                delivery = chance.choice([pb.TAIL_DELIVERY_LIVE, pb.TAIL_DELIVERY_COMPLETE])
                readers.append((since_seq, asyncio.create_task(read(since_seq, delivery))))
            await push.send(*(wire.delta(f"{index} ") for index in range(100)))
            if number % 7 == 0:
                head_seq = (await push.acked()).head_seq
        await push.acked()
        await push.bye()
    results = [(since_seq, await reader) for since_seq, reader in readers]

    last_seq = (await compass.GetSession(pb.GetSessionRequest(session_id="s"))).session.head_seq
    assert num_readers == len(results)
    for since_seq, frames in results:
        assert last_seq == wire.check_account(frames, since_seq=since_seq)
