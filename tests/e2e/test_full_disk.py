"""A disk that is full: pushes are refused, nothing acknowledged is lost, reading goes on, and room cures it."""

import asyncio
import subprocess

import grpc
import pytest

import compass
from compass.v1 import agent_gateway_pb2 as gw
from e2e import wire

MIB = 1024 * 1024


@pytest.fixture
def small_disk(tmp_path):
    """Mount a small file system that can be made larger; skip where that is not allowed."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(folder)],
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip("mounting a small file system needs root; run as root to see a really full disk")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def grow(folder) -> None:
    subprocess.run(["mount", "-o", "remount,size=200m", str(folder)], check=True)


@pytest.mark.slow
@pytest.mark.timeout(60)
async def test_a_full_disk_refuses_pushes_keeps_what_is_acknowledged_and_recovers(serve_process, doors, small_disk):
    server = await serve_process("--reserve-bytes", str(2 * MIB), data_dir=small_disk)
    _, gateway = doors(server.address)
    async with compass.connect(server.address) as client:
        async with client.publish("s", wait=True) as publisher:
            await publisher.push(wire.message_start())
            pushing = asyncio.create_task(push_much(publisher))
            refusal = await refused(gateway)
            acked = publisher.stats.acked_seq
            kept = [item async for item in client.tail("s", follow=False)]

            grow(small_disk)

            await pushing
            await publisher.flush()
        frames = [item async for item in client.tail("s")]

    assert (refusal.code(), wire.reason(refusal)) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "LOG_FULL")
    assert len([frame for frame in kept if wire.kind(frame) == "assistant_text"]) >= acked - 1
    assert [frame.seq for frame in frames] == list(range(1, len(frames) + 1))
    text = "".join(frame.event.assistant_text.text for frame in frames)
    assert text == "".join(f"{number} ".ljust(20_000) for number in range(1_000))


async def push_much(publisher: compass.Publisher) -> None:
    for number in range(1_000):
        await publisher.push(wire.delta(f"{number} ".ljust(20_000)))


async def refused(gateway) -> grpc.aio.AioRpcError:
    """Push single events until the server refuses one."""
    event = gw.InnerEvent(json=wire.message_start("user", "x" * 1_000))
    while True:
        try:
            await gateway.PushEvent(gw.PushEventRequest(session_id="probe", event=event))
        except grpc.aio.AioRpcError as error:
            return error
