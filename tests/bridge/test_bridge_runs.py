"""How a run of the bridge ends and what stands in its way: signals, others' sessions, an absent service."""

import asyncio
import signal

import compass
from bridge.conftest import (
    frames_of,
    is_recorded,
    prompt_states,
    scripted,
    submit,
    until_frame,
    until_state,
)
from compass.bridge import Bridge, BridgeOptions
from compass.v1 import compass_pb2 as pb


async def test_sigint_stops_the_session(serve, bridge):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client:
        run = await bridge(server.addresses[0], "s", scripted(on={"long": "slow"}))
        await submit(client, "s", "long")
        await until_frame(client, "s", lambda frame: frame.event.HasField("assistant_text"))
        code = await run.terminate(signal.SIGINT)
        frames = await frames_of(client, "s")

    assert (code, frames[-1].state) == (0, pb.AGENT_SESSION_STATE_STOPPED)
    assert not any(frame.event.session_error.kind == pb.SESSION_ERROR_KIND_ERROR for frame in frames)


async def test_a_session_that_others_close_ends_the_agent(serve, bridge):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client:
        run = await bridge(server.addresses[0], "s", scripted())
        await until_state(client, "s", "READY")
        await client.close_session("s")
        code, err = await run.ended()

    assert (code, err.splitlines()[-1]) == (6, "compass-trace: session s is stopped")


async def test_what_cannot_be_run_is_told_before_anything_begins(serve, bridge):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client:
        run = await bridge(server.addresses[0], "s", ["no-such-agent"])
        code, err = await run.ended()
        sessions = [info async for info in client.sessions()]

    assert (code, err) == (2, "compass-trace: there is no program no-such-agent\n")
    assert sessions == []


async def test_a_second_bridge_of_the_same_session_is_refused(serve, bridge):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client:
        await bridge(server.addresses[0], "s", scripted())
        await until_state(client, "s", "READY")
        second = await bridge(server.addresses[0], "s", scripted())
        code, err = await second.ended()

    assert code == 6
    assert "another bridge runs session s" in err


async def test_what_happened_while_the_service_was_away_is_delivered_by_the_next_bridge(
    serve_process, bridge, tmp_path
):
    address = f"unix:{tmp_path}/socket"
    server = await serve_process(listen=address)
    async with compass.connect(address) as client:
        run = await bridge(address, "s", scripted(pause_s=0.7))
        prompt_id = await submit(client, "s", "long")
        await until_frame(client, "s", lambda frame: frame.event.HasField("assistant_text"))
        await server.kill()
        spooled = tmp_path / "spool" / "s"
        async with asyncio.timeout(5):
            while b"agent_end" not in b"".join(path.read_bytes() for path in spooled.glob("*.events")):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await run.kill()
        await serve_process(listen=address)
        await bridge(address, "s", scripted())
        following = await submit(client, "s", "next")
        frames = await until_frame(client, "s", is_recorded(following))

    ends = [frame.event.message_end for frame in frames if frame.event.HasField("message_end")]
    assert ends[0].outcome == pb.SESSION_MESSAGE_OUTCOME_COMPLETE
    assert prompt_states(frames, prompt_id) == ["QUEUED", "CLAIMED", "RECORDED"]


async def test_a_bridge_that_is_asked_to_stop_while_the_service_is_away_ends_and_keeps_the_rest(
    serve_process, tmp_path
):
    server = await serve_process()
    options = BridgeOptions(spool=tmp_path / "spool", leave_s=0.2)
    async with compass.connect(server.address) as client, compass.connect(server.address, retry_for_s=None) as patient:
        bridge = Bridge(patient, "s", scripted(), options)
        running = asyncio.create_task(bridge.run())
        prompt_id = await submit(client, "s", "hello")
        await until_frame(client, "s", is_recorded(prompt_id))
        await server.kill()
        bridge.stop()
        ended = await running

    kept = b"".join(path.read_bytes() for path in (tmp_path / "spool" / "s").glob("*.events"))
    assert (ended.was_asked, ended.was_told) == (True, False)
    assert ended.num_undelivered == kept.count(b"\n")
