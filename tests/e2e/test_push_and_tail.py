"""The main path: a real recording goes in, and any number of readers see it, live or later."""

import asyncio

import grpc
import pytest

from compass.v1 import agent_gateway_pb2 as gw
from compass.v1 import compass_pb2 as pb
from e2e import wire


async def test_a_recording_comes_out_whole_with_dense_seqs_and_an_end(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    await wire.push_all(gateway, "s", wire.recording("pi-tool"))

    frames = await wire.frames_of(compass, follow=True)

    assert list(range(1, len(frames) + 1)) == [frame.seq for frame in frames]
    assert wire.kind(frames[-1]) == "STOPPED"
    assert "".join(frame.event.assistant_text.text for frame in frames) == "Hello from the fake model. "


async def test_live_and_later_readers_see_the_same_frames(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        live = [
            asyncio.create_task(wire.frames_of(compass, follow=True, delivery=delivery))
            for delivery in (pb.TAIL_DELIVERY_LIVE, pb.TAIL_DELIVERY_COMPLETE, pb.TAIL_DELIVERY_UNSPECIFIED)
        ]
        for event in wire.recording("omp-tool"):
            await push.push(event)
        await push.bye()
    seen = await asyncio.gather(*live)

    later = await wire.frames_of(compass)

    assert [later, later, later] == seen


async def test_the_frozen_rpc_gives_one_frame_a_message_and_ends_after_stopped(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    await wire.push_all(gateway, "s", wire.recording("pi-ok"))

    call = compass.SubscribeAgentSession(pb.SubscribeAgentSessionRequest(session_id="s"))
    frames = [frame async for frame in call]

    assert await wire.frames_of(compass) == frames
    assert await call.code() == grpc.StatusCode.OK


async def test_the_end_of_what_there_is_and_a_range_have_their_own_reasons(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    await wire.push_all(gateway, "s", wire.recording("pi-ok"), close=False)

    head = [response async for response in wire.tail(compass)][-1]
    part = [response async for response in wire.tail(compass, since_seq=2, until_seq=4, follow=True)]

    assert head.end.reason == pb.SESSION_END_REASON_HEAD
    assert part[-1].end.reason == pb.SESSION_END_REASON_UNTIL
    assert [frame.seq for response in part for frame in response.frames] == [3, 4]
    assert part[-1].resume_seq == 4


async def test_a_reader_resumes_after_its_cursor(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    await wire.push_all(gateway, "s", wire.recording("pi-ok"))
    whole = await wire.frames_of(compass)

    for since_seq in range(len(whole) + 1):
        assert whole[since_seq:] == await wire.frames_of(compass, since_seq=since_seq, follow=True)


async def test_a_reader_that_starts_live_gets_a_snapshot_and_then_only_what_is_new(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await push.push('{"type":"agent_start"}', wire.message_start())
        call = compass.TailSession(pb.TailSessionRequest(session_id="s", start=pb.SESSION_START_LIVE, follow=True))
        first = await call.read()
        current = await call.read()
        await push.push(wire.delta("now"))
        new = await call.read()
        call.cancel()

    assert wire.kinds(first.frames) == ["WORKING", "activity"]
    assert [frame.seq for frame in first.frames] == [0, 0]
    assert first.frames[1].event.activity.phase == pb.SESSION_PHASE_THINKING
    assert not current.frames
    assert current.resume_seq == current.head_seq
    assert current.head_seq + 1 == new.frames[0].seq


async def test_a_quiet_tail_says_that_it_is_current_and_then_beats(serve, doors):
    server = await serve(heartbeat_s=0.1)
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway):
        call = compass.TailSession(pb.TailSessionRequest(session_id="s", follow=True))
        responses = [await call.read() for _ in range(3)]
        call.cancel()

    assert wire.kinds(responses[0].frames) == ["STARTING"]
    assert [len(response.frames) for response in responses[1:]] == [0, 0]
    assert {1} == {response.resume_seq for response in responses}


async def test_three_readers_each_get_every_frame(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        readers = [asyncio.create_task(wire.frames_of(compass, follow=True)) for _ in range(3)]
        await push.push(wire.message_start(), *map(wire.delta, "abcdefgh"))
        await push.bye()

    first, *others = await asyncio.gather(*readers)

    assert [first, first] == others


async def test_one_event_by_hand_as_text_or_as_a_structure(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    text = gw.InnerEvent(json=wire.message_start("user", "hello"))
    structure = gw.InnerEvent()
    failed = {"role": "assistant", "content": [], "stopReason": "error", "errorMessage": "no", "errorStatus": 401}
    structure.object.update({"type": "message_end", "message": failed})

    await gateway.PushEvent(gw.PushEventRequest(session_id="s", event=text))
    response = await gateway.PushEvent(gw.PushEventRequest(session_id="s", event=structure))
    frames = await wire.frames_of(compass)

    assert wire.kinds(frames) == ["user_message", "session_error", "ERRORED"]
    assert frames[1].event.session_error.status == 401
    assert response.head_seq == frames[-1].seq


async def test_a_unary_event_with_a_producer_is_stored_once(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    event = gw.InnerEvent(json=wire.message_start("user", "hello"))
    request = gw.PushEventRequest(session_id="s", event=event, producer_id="script", epoch=1, seq=1)

    first = await gateway.PushEvent(request)
    again = await gateway.PushEvent(request)

    assert [first.duplicate, again.duplicate] == [False, True]
    assert len(await wire.frames_of(compass)) == 1


async def test_large_text_is_split_and_no_response_passes_its_bound(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    text = "ж" * 600_000
    await wire.push_all(gateway, "s", [wire.message_start(), wire.delta(text), wire.message_end("stop", text)])

    responses = [response async for response in wire.tail(compass)]

    assert max(response.ByteSize() for response in responses) <= 1024 * 1024
    frames = [frame for response in responses for frame in response.frames]
    assert max(frame.ByteSize() for frame in frames) <= 256 * 1024
    assert text == "".join(frame.event.assistant_text.text for frame in frames)


async def test_text_survives_every_line_separator_and_a_restart(serve_process, doors):
    odd = "a\u0085b\u2028c\u2029d\x0be\x0cf\rg\x00h"
    server = await serve_process()
    _, gateway = doors(server.address)
    await wire.push_all(gateway, "s", [wire.message_start(), wire.delta(odd)], close=False)
    await server.kill()

    server = await serve_process()
    compass, gateway = doors(server.address)
    async with wire.Push(gateway) as push:
        await push.push(wire.delta("\u2028"))
        await push.bye()
    frames = await wire.frames_of(compass)

    assert odd + "\u2028" == "".join(frame.event.assistant_text.text for frame in frames)
    wire.check_account(frames)


@pytest.mark.parametrize("scheme", ["tcp", "unix"])
async def test_every_address_that_is_asked_for_is_served(serve, doors, tmp_path, scheme):
    server = await serve(listen=["127.0.0.1:0", f"unix:{tmp_path}/sock"])

    compass, _ = doors(server.addresses[scheme == "unix"])

    info = await compass.GetServerInfo(pb.GetServerInfoRequest())
    assert info.log_backend == "sqlite"
    assert info.limits.trace_lane_frames == 1024
