"""Readers that leave in every way there is, and readers that do not even leave."""

import asyncio
import os
import signal
import sys

import grpc
import psutil
import pytest

from compass.v1 import compass_pb2 as pb
from e2e import wire

CYCLES = int(os.environ.get("COMPASS_LEAK_CYCLES", "2000"))
WARM_UP = 500
MAX_GROWTH_PER_1000_CYCLES = 4 * 1024 * 1024

READER = """
import sys, grpc
from compass.v1 import compass_pb2 as pb, compass_pb2_grpc
stub = compass_pb2_grpc.CompassServiceStub(grpc.insecure_channel(sys.argv[1]))
for response in stub.TailSession(pb.TailSessionRequest(session_id="s", follow=True)):
    print("read", flush=True)
"""


async def leave_by_cancel(compass, _dial) -> None:
    call = compass.TailSession(pb.TailSessionRequest(session_id="s", follow=True))
    await call.read()
    call.cancel()


async def leave_while_written_to(compass, _dial) -> None:
    call = compass.SubscribeAgentSession(pb.SubscribeAgentSessionRequest(session_id="s"))
    await call.read()
    call.cancel()


async def leave_by_deadline(compass, _dial) -> None:
    call = compass.TailSession(pb.TailSessionRequest(session_id="s", follow=True), timeout=0.02)
    with pytest.raises(grpc.aio.AioRpcError):
        await wire.read_all(call)


async def leave_with_the_channel(_compass, dial) -> None:
    compass, channel = dial()
    call = compass.TailSession(pb.TailSessionRequest(session_id="s", follow=True))
    await call.read()
    await channel.close()


WAYS = (leave_by_cancel, leave_while_written_to, leave_by_deadline, leave_with_the_channel)


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_readers_that_leave_take_everything_with_them(serve_process, doors, dial):
    server = await serve_process()
    compass, gateway = doors(server.address)
    events = [wire.message_start(), *(wire.delta("x" * 2_000) for _ in range(1_000))]
    await wire.push_all(gateway, "s", events, close=False)
    process = psutil.Process(server.process.pid)

    def dial_again():
        channel = grpc.aio.insecure_channel(server.address, options=[("grpc.use_local_subchannel_pool", 1)])
        return type(compass)(channel), channel

    async def cycle(count: int) -> None:
        for start in range(0, count, 8):
            await asyncio.gather(*(WAYS[number % 4](compass, dial_again) for number in range(start, start + 8)))

    await cycle(WARM_UP)
    files, resident = process.num_fds(), process.memory_info().rss
    await cycle(CYCLES)

    assert process.num_fds() <= files + 4
    assert process.memory_info().rss - resident <= max(1, CYCLES / 1_000) * MAX_GROWTH_PER_1000_CYCLES


@pytest.mark.slow
@pytest.mark.timeout(60)
async def test_a_frozen_reader_is_noticed_and_let_go(serve, doors):
    server = await serve(keepalive={"time_s": 0.5, "timeout_s": 0.5})
    _, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await push.push(wire.message_start())
        reader = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            READER,
            server.addresses[0],
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert await reader.stdout.readline()
        assert server._hub.num_subscriptions == 1
        reader.send_signal(signal.SIGSTOP)
        try:
            async with asyncio.timeout(30):
                while server._hub.num_subscriptions:
                    await push.push(wire.delta("x"))
        finally:
            reader.kill()
            await reader.wait()
