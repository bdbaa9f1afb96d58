"""Producers that vanish, come back, are replaced and fenced; sessions that end."""

import asyncio

import grpc
import pytest

from compass.v1 import agent_gateway_pb2 as gw
from compass.v1 import compass_pb2 as pb
from e2e import wire

OPEN_TURN = ('{"type":"agent_start"}', wire.message_start(), wire.delta("half "))


async def until(compass, wanted: str, session_id: str = "s") -> list[pb.AgentSessionFrame]:
    """Tail until a frame of the wanted kind came."""
    frames: list[pb.AgentSessionFrame] = []
    async for response in wire.tail(compass, session_id, follow=True):
        frames.extend(response.frames)
        if wanted in wire.kinds(frames):
            return frames
    raise AssertionError(f"no {wanted} in {wire.kinds(frames)}")


async def test_a_cut_stream_is_not_judged_before_its_window_closes(serve, doors):
    server = await serve(reattach_window_s=60)
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await push.push(*OPEN_TURN)

    frames = await until(compass, "DISCONNECTED")

    assert wire.kind(frames[-1]) == "DISCONNECTED"
    assert "session_error" not in wire.kinds(frames)


async def test_a_producer_that_comes_back_in_time_goes_on_where_it_was(serve, doors):
    server = await serve(reattach_window_s=60)
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await push.push(*OPEN_TURN)
    await until(compass, "DISCONNECTED")
    async with wire.Push(gateway) as push:
        assert push.next_seq == 4
        await push.push(wire.delta("whole"), wire.message_end("stop", "half whole"), '{"type":"agent_end"}')
        await push.bye()

    frames = await wire.frames_of(compass)

    after = wire.kinds(frames)[wire.kinds(frames).index("DISCONNECTED") :]
    assert after[:4] == ["DISCONNECTED", "WORKING", "assistant_text", "message_end"]
    end = next(frame.event.message_end for frame in frames if wire.kind(frame) == "message_end")
    assert end.outcome == pb.SESSION_MESSAGE_OUTCOME_COMPLETE
    assert "session_error" not in after
    assert len({frame.event.assistant_text.message_id for frame in frames} - {""}) == 1


async def test_a_working_session_whose_producer_stays_away_is_errored_once(serve, doors):
    server = await serve(reattach_window_s=0.1)
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await push.push(*OPEN_TURN)

    frames = await until(compass, "ERRORED")

    after = wire.kinds(frames)[wire.kinds(frames).index("DISCONNECTED") :]
    assert after[:4] == ["DISCONNECTED", "message_end", "session_error", "ERRORED"]
    error = next(frame.event.session_error for frame in frames if wire.kind(frame) == "session_error")
    assert error.kind == pb.SESSION_ERROR_KIND_ERROR
    assert (
        "NETWORK"
        in pb.DESCRIPTOR.pool.FindEnumTypeByName("compass.v1.FailureCategory").values_by_number[error.category].name
    )
    end = next(frame.event.message_end for frame in frames if wire.kind(frame) == "message_end")
    assert end.outcome == pb.SESSION_MESSAGE_OUTCOME_INCOMPLETE
    assert end.stop_reason == pb.SESSION_STOP_REASON_DISCONNECTED


async def test_an_idle_session_whose_producer_stays_away_is_no_error(serve, doors):
    server = await serve(reattach_window_s=0.05, idle_s=0.1)
    compass, gateway = doors(server.addresses[0])
    await wire.push_all(gateway, "s", wire.recording("pi-ok"), close=False)
    await until(compass, "DISCONNECTED")
    # A second session that is judged later proves that the window of the first has closed.
    async with wire.Push(gateway, "other") as push:
        await push.push(*OPEN_TURN)
    await until(compass, "ERRORED", "other")

    session = (await compass.GetSession(pb.GetSessionRequest(session_id="s"))).session

    assert session.state == pb.AGENT_SESSION_STATE_DISCONNECTED
    assert session.counts.errors == 0


async def test_a_killed_server_opens_the_window_when_it_is_back(serve_process, doors):
    server = await serve_process()
    _, gateway = doors(server.address)
    push = await wire.Push(gateway).__aenter__()
    await push.push(*OPEN_TURN)
    await server.kill()

    server = await serve_process("--reattach-window-s", "0.2")
    compass, _ = doors(server.address)
    frames = await until(compass, "ERRORED")

    kinds = wire.kinds(frames)
    assert kinds.index("DISCONNECTED") < kinds.index("session_error")
    wire.check_account(frames)


async def test_bye_stops_the_session_for_good(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    await wire.push_all(gateway, "s", OPEN_TURN)

    frames = await wire.frames_of(compass, follow=True)

    assert wire.kinds(frames)[-3:] == ["message_end", "activity", "STOPPED"]
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        async with wire.Push(gateway):
            pass
    assert (
        refused.value.code(),
        wire.reason(refused.value),
    ) == (grpc.StatusCode.FAILED_PRECONDITION, "SESSION_STOPPED")
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await gateway.PushEvent(gw.PushEventRequest(session_id="s", event=gw.InnerEvent(json=OPEN_TURN[0])))
    assert wire.reason(refused.value) == "SESSION_STOPPED"


async def test_bye_with_an_exit_is_an_error_at_once_and_leaves_the_tail_open(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await push.push(*OPEN_TURN)
        await push.bye(signal="SIGKILL", last_stderr="out of memory")

    frames = await until(compass, "ERRORED")

    error = next(frame.event.session_error for frame in frames if wire.kind(frame) == "session_error")
    assert "SIGKILL" in error.message
    assert "out of memory" in error.message
    assert "DISCONNECTED" not in wire.kinds(frames)
    async with wire.Push(gateway, epoch=2) as again:
        await again.push('{"type":"agent_start"}')


async def test_closing_from_a_pane_ends_the_push_stream_and_is_idempotent(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await push.push(*OPEN_TURN)
        first = await compass.CloseSession(pb.CloseSessionRequest(session_id="s"))
        again = await compass.CloseSession(pb.CloseSessionRequest(session_id="s"))
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await push.push(wire.delta("late"))

    assert first.session.state == pb.AGENT_SESSION_STATE_STOPPED
    assert first == again
    assert wire.reason(refused.value) == "SESSION_STOPPED"


async def test_a_second_producer_is_refused_unless_it_takes_over(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway, producer_id="first") as first:
        await first.push(*OPEN_TURN)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            async with wire.Push(gateway, producer_id="second"):
                pass
        assert (
            refused.value.code(),
            wire.reason(refused.value),
        ) == (grpc.StatusCode.ALREADY_EXISTS, "PRODUCER_ATTACHED")
        async with wire.Push(gateway, producer_id="second", take_over=True) as second:
            with pytest.raises(grpc.aio.AioRpcError) as replaced:
                await first.push(wire.delta("late"))
            await second.push('{"type":"agent_start"}')
            await second.bye()
    frames = await wire.frames_of(compass)

    assert (replaced.value.code(), wire.reason(replaced.value)) == (grpc.StatusCode.ABORTED, "PRODUCER_REPLACED")
    assert wire.kinds(frames).count("session_error") == 1
    assert "".join(frame.event.assistant_text.text for frame in frames) == "half "


async def test_another_producer_is_welcome_once_none_is_attached_and_settles_the_turn_before(serve, doors):
    server = await serve(reattach_window_s=60)
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway, producer_id="first") as first:
        await first.push(*OPEN_TURN)
    await until(compass, "DISCONNECTED")
    async with wire.Push(gateway, producer_id="second") as second:
        await second.push('{"type":"agent_start"}')
        await second.bye()

    kinds = wire.kinds(await wire.frames_of(compass))

    assert kinds[kinds.index("DISCONNECTED") + 1 :][:3] == ["message_end", "session_error", "ERRORED"]


async def test_a_newer_epoch_fences_the_older_for_ever(serve, doors):
    server = await serve()
    _, gateway = doors(server.addresses[0])
    async with wire.Push(gateway, epoch=7) as old:
        await old.push(*OPEN_TURN)
        async with wire.Push(gateway, epoch=8) as new:
            with pytest.raises(grpc.aio.AioRpcError) as fenced:
                await old.push(wire.delta("late"))
            assert new.next_seq == 1
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            async with wire.Push(gateway, epoch=7):
                pass

    for error in (fenced.value, refused.value):
        assert (error.code(), wire.reason(error)) == (grpc.StatusCode.FAILED_PRECONDITION, "PRODUCER_FENCED")


async def test_the_same_epoch_on_a_new_stream_replaces_the_old_one_and_dedups(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as old:
        await old.push(*OPEN_TURN)
        async with wire.Push(gateway) as new:
            assert new.next_seq == 4
            new.next_seq = 3
            await new.push(wire.delta("half "), wire.delta("new"))
            await new.bye()
        with pytest.raises(grpc.aio.AioRpcError) as replaced:
            await old.push(wire.delta("late"))

    frames = await wire.frames_of(compass)

    assert wire.reason(replaced.value) in {"PRODUCER_REPLACED", "SESSION_STOPPED"}
    assert "".join(frame.event.assistant_text.text for frame in frames) == "half new"


async def test_what_a_producer_dropped_is_logged_as_a_gap_with_a_seq(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await push.push(*OPEN_TURN)
        await push.push(wire.delta("more"), dropped=5)
        await push.bye()

    frames = await wire.frames_of(compass)
    session = (await compass.GetSession(pb.GetSessionRequest(session_id="s"))).session

    gap = next(frame for frame in frames if wire.kind(frame) == "gap")
    assert (
        gap.gap.dropped,
        gap.gap.reason,
        gap.gap.first_seq,
        gap.gap.last_seq,
    ) == (5, pb.SESSION_GAP_REASON_PRODUCER_OVERFLOW, 0, 0)
    assert gap.seq
    assert session.counts.dropped_producer_overflow == 5


async def test_a_resent_batch_of_nothing_but_drops_is_not_told_again(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await push.push(*OPEN_TURN)
        only_drops = wire.batch(push.next_seq, [], dropped=5)
        await push.call.write(only_drops)
        await push.push(wire.delta("more"))
        await push.call.write(only_drops)
        await push.push(wire.delta("still more"))
        await push.bye()

    session = (await compass.GetSession(pb.GetSessionRequest(session_id="s"))).session

    assert session.counts.dropped_producer_overflow == 5


async def test_an_idle_session_leaves_memory_and_comes_back(serve, doors):
    server = await serve(reattach_window_s=0.04, idle_s=0.02)
    compass, gateway = doors(server.addresses[0])
    await wire.push_all(gateway, "s", wire.recording("pi-ok"), close=False)
    await until(compass, "DISCONNECTED")
    async with asyncio.timeout(5):
        while server._registry.num_loaded:
            await server._registry.sweep()
            await compass.GetServerInfo(pb.GetServerInfoRequest())

    async with wire.Push(gateway) as push:
        assert push.next_seq == len(wire.recording("pi-ok")) + 1
        await push.push(wire.message_start("user", "again"))
        await push.bye()

    wire.check_account(await wire.frames_of(compass))
