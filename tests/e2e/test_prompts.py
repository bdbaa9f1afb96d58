"""Prompts and aborts over the wire: durable before the answer, offered once, gone only when shown or cancelled."""

import json

import grpc
import pytest

from compass.v1 import agent_gateway_pb2 as gw
from compass.v1 import compass_pb2 as pb
from e2e import wire

READY = '{"type":"agent_end"}'
WORKING = '{"type":"agent_start"}'


def user_message(text: str, prompt_id: str) -> gw.InnerEvent:
    return gw.InnerEvent(json=wire.message_start("user", text), prompt_id=prompt_id)


async def submit(compass, text: str, **more: object) -> pb.SubmitPromptResponse:
    return await compass.SubmitPrompt(pb.SubmitPromptRequest(session_id="s", text=text, **more))


async def queue(compass) -> list[tuple[str, str]]:
    listed = await compass.ListPrompts(pb.ListPromptsRequest(session_id="s"))
    return [
        (prompt.text, pb.SessionPromptState.Name(prompt.state).removeprefix("SESSION_PROMPT_STATE_"))
        for prompt in listed.prompts
    ]


def control(gateway, *, producer_id: str = "p", epoch: int = 1, applied: int = 0):
    return gateway.Control(
        gw.ControlRequest(session_id="s", producer_id=producer_id, epoch=epoch, applied_control_seq=applied),
    )


async def record(push: wire.Push, text: str, prompt_id: str) -> None:
    batch = gw.EventBatch(first_seq=push.next_seq, events=[user_message(text, prompt_id)])
    await push.call.write(gw.PushEventsRequest(batch=batch))
    push.next_seq += 1
    await push.acked()


async def states(compass) -> list[str]:
    return [
        pb.SessionPromptState.Name(frame.event.prompt.state).removeprefix("SESSION_PROMPT_STATE_")
        for frame in await wire.frames_of(compass)
        if frame.event.HasField("prompt")
    ]


async def refusal(awaitable) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await awaitable
    return refused.value.code(), wire.reason(refused.value)


async def test_a_prompt_goes_to_a_resting_agent_and_is_recorded_by_its_own_stream(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        calls = control(gateway)
        answer = await submit(compass, "do it", author="mia")
        handed = await calls.read()
        await record(push, "do it, expanded", answer.prompt_id)
        frames = await wire.frames_of(compass)
        left = await queue(compass)
        calls.cancel()

    assert (handed.prompt.prompt_id, handed.prompt.text, handed.prompt.steer) == (answer.prompt_id, "do it", False)
    assert await states(compass) == ["QUEUED", "CLAIMED", "RECORDED"]
    assert left == []
    kinds = wire.kinds(frames)
    assert kinds[-2:] == ["user_message", "prompt"]
    assert frames[-2].event.user_message.prompt_id == answer.prompt_id


async def test_the_agent_becomes_ready_when_its_control_stream_opens(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway):
        calls = control(gateway)
        await calls.initial_metadata()
        kinds = wire.kinds(await wire.frames_of(compass))
        calls.cancel()

    assert kinds == ["STARTING", "READY"]


async def test_prompts_wait_while_the_agent_works_unless_they_steer(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        calls = control(gateway)
        await calls.initial_metadata()
        await push.push(WORKING)
        await submit(compass, "later")
        steer = await submit(compass, "now", steer=True)
        first = await calls.read()
        waiting = await queue(compass)
        await record(push, "now", steer.prompt_id)
        await push.push(READY)
        second = await calls.read()
        calls.cancel()

    assert (first.prompt.text, first.prompt.steer) == ("now", True)
    assert waiting == [("later", "QUEUED"), ("now", "CLAIMED")]
    assert second.prompt.text == "later"


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param([READY], id="ready"),
        pytest.param([wire.message_start(), wire.message_end("error", errorMessage="no"), READY], id="after an error"),
        pytest.param([wire.message_start(), wire.message_end("aborted"), READY], id="after an abort"),
        pytest.param(
            ['{"type":"compaction_start"}', '{"type":"compaction_end","errorMessage":"no"}', READY],
            id="after a failed compaction",
        ),
        pytest.param(
            [
                wire.message_start(),
                wire.message_end("error", errorMessage="429"),
                '{"type":"auto_retry_start","attempt":1,"maxAttempts":1,"delayMs":1}',
                WORKING,
                wire.message_start(),
                wire.message_end("error", errorMessage="429"),
                READY,
                '{"type":"auto_retry_end","success":false,"attempt":1,"finalError":"429"}',
            ],
            id="after exhausted retries",
        ),
    ],
)
async def test_a_prompt_is_offered_in_every_resting_state(serve, doors, rest):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        calls = control(gateway)
        await calls.initial_metadata()
        await push.push(WORKING)
        await submit(compass, "next")
        assert await queue(compass) == [("next", "QUEUED")]
        await push.push(*rest)
        handed = await calls.read()
        calls.cancel()

    assert handed.prompt.text == "next"


async def test_a_prompt_waits_for_the_end_of_a_compaction(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        calls = control(gateway)
        await push.push(WORKING, READY, '{"type":"compaction_start","reason":"threshold"}')
        await submit(compass, "held")
        held = await queue(compass)
        await push.push('{"type":"compaction_end","reason":"threshold"}')
        handed = await calls.read()
        calls.cancel()

    assert held == [("held", "QUEUED")]
    assert handed.prompt.text == "held"


async def test_the_same_request_is_the_same_prompt_and_another_text_is_refused(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway):
        first = await submit(compass, "once", client_request_id="r1")
        again = await submit(compass, "once", client_request_id="r1")
        other = await refusal(submit(compass, "twice", client_request_id="r1"))

    assert first.prompt_id == again.prompt_id
    assert other == (grpc.StatusCode.ALREADY_EXISTS, "PROMPT_CONFLICT")
    assert await queue(compass) == [("once", "QUEUED")]


async def test_a_waiting_prompt_can_be_cancelled_and_a_claimed_one_cannot(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway):
        claimed, waiting = await submit(compass, "claimed"), await submit(compass, "waiting")
        calls = control(gateway)
        await calls.read()
        answer = await compass.CancelPrompt(pb.CancelPromptRequest(session_id="s", prompt_id=waiting.prompt_id))
        refused = await refusal(
            compass.CancelPrompt(pb.CancelPromptRequest(session_id="s", prompt_id=claimed.prompt_id)),
        )
        unknown = await refusal(compass.CancelPrompt(pb.CancelPromptRequest(session_id="s", prompt_id="p99")))
        calls.cancel()

    assert answer.state == pb.SESSION_PROMPT_STATE_CANCELLED
    assert refused == (grpc.StatusCode.FAILED_PRECONDITION, "PROMPT_CLOSED")
    assert unknown == (grpc.StatusCode.NOT_FOUND, "PROMPT_NOT_FOUND")


async def test_a_prompt_the_agent_cannot_act_on_is_returned_to_its_place_and_offered_again(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        first, _ = await submit(compass, "first"), await submit(compass, "second")
        calls = control(gateway)
        handed = await calls.read()
        returned = gw.PromptReturned(prompt_id=first.prompt_id)
        await push.call.write(gw.PushEventsRequest(prompt_returned=returned))
        again = await calls.read()
        calls.cancel()

    assert [handed.prompt.text, again.prompt.text] == ["first", "first"]
    assert again.control_seq > handed.control_seq
    assert await states(compass) == ["QUEUED", "QUEUED", "CLAIMED", "RETURNED", "CLAIMED"]


async def test_an_abort_alone_leaves_a_claimed_prompt_claimed(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await submit(compass, "taken")
        calls = control(gateway)
        await calls.read()
        await push.push('{"type":"compaction_start"}', '{"type":"compaction_end","aborted":true}')
        await compass.AbortSession(pb.AbortSessionRequest(session_id="s"))
        abort = await calls.read()
        calls.cancel()

    assert abort.HasField("abort")
    assert await queue(compass) == [("taken", "CLAIMED")]


async def test_claims_survive_reconnects_of_the_agent_and_kills_of_the_server(serve_process, doors):
    server = await serve_process()
    compass, gateway = doors(server.address)
    await wire.Push(gateway).__aenter__()
    await submit(compass, "kept")
    await submit(compass, "behind")
    handed = await control(gateway).read()
    await server.kill()

    server = await serve_process("--reattach-window-s", "60")
    compass, gateway = doors(server.address)
    after_kill = await queue(compass)
    async with wire.Push(gateway) as push:
        unapplied = await control(gateway).read()
        assert unapplied == handed
        await record(push, "kept", handed.prompt.prompt_id)
        await push.push(WORKING, READY)
        following = await control(gateway, applied=handed.control_seq).read()

    assert after_kill == [("kept", "CLAIMED"), ("behind", "QUEUED")]
    assert following.prompt.text == "behind"


async def test_what_a_dead_process_was_handed_is_returned_when_the_next_one_attaches(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway, epoch=1):
        await submit(compass, "again")
        await control(gateway).read()
    async with wire.Push(gateway, epoch=2):
        handed = await control(gateway, epoch=2).read()

    assert handed.prompt.text == "again"
    assert await states(compass) == ["QUEUED", "CLAIMED", "RETURNED", "CLAIMED"]


async def test_a_process_that_was_taken_for_lost_keeps_what_it_was_handed(serve, doors):
    server = await serve(reattach_window_s=0.05)
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway):
        await submit(compass, "mine")
        await control(gateway).read()
    while "RETURNED" not in await states(compass):
        pass
    async with wire.Push(gateway) as push:
        taken_back = await queue(compass)
        prompt_id = (await compass.ListPrompts(pb.ListPromptsRequest(session_id="s"))).prompts[0].prompt_id
        await record(push, "mine", prompt_id)

    assert taken_back == [("mine", "CLAIMED")]
    assert (await states(compass)).count("RECORDED") == 1


async def test_an_abort_from_a_pane_reaches_the_agent_and_its_frame_says_user(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        calls = control(gateway)
        await push.push(WORKING, wire.message_start(), wire.delta("half"))
        await compass.AbortSession(pb.AbortSessionRequest(session_id="s"))
        item = await calls.read()
        await push.push(wire.message_end("aborted", "half"), READY)
        await push.push(WORKING, wire.message_start(), wire.message_end("aborted"), READY)
        frames = await wire.frames_of(compass)
        calls.cancel()

    assert item.HasField("abort")
    origins = [frame.event.session_error.abort_origin for frame in frames if wire.kind(frame) == "session_error"]
    assert origins == [pb.SESSION_ABORT_ORIGIN_USER, pb.SESSION_ABORT_ORIGIN_UNSPECIFIED]


async def test_an_abort_during_compaction_is_sent_again_when_the_turn_starts(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        calls = control(gateway)
        await push.push(WORKING, READY, '{"type":"compaction_start"}')
        await compass.AbortSession(pb.AbortSessionRequest(session_id="s"))
        first = await calls.read()
        await push.push('{"type":"compaction_end"}', WORKING, wire.message_start())
        second = await calls.read()
        await push.push(wire.message_end("aborted"), READY)
        frames = await wire.frames_of(compass)
        calls.cancel()

    assert first.HasField("abort")
    assert second.HasField("abort")
    assert second.control_seq > first.control_seq
    errors = [frame.event.session_error for frame in frames if wire.kind(frame) == "session_error"]
    assert [error.abort_origin for error in errors] == [pb.SESSION_ABORT_ORIGIN_USER]


async def test_the_inbox_is_bounded_and_says_so(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await push.push(WORKING)
        for number in range(64):
            await submit(compass, f"prompt {number}")
        full = await refusal(submit(compass, "one more"))
        large = await refusal(submit(compass, "x" * (128 * 1024 + 1)))
        empty = await refusal(submit(compass, "  "))

    assert full == (grpc.StatusCode.RESOURCE_EXHAUSTED, "INBOX_FULL")
    assert large == empty == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")
    assert len(await queue(compass)) == 64


async def test_control_needs_an_attached_producer_of_the_same_epoch(serve, doors):
    server = await serve()
    _, gateway = doors(server.addresses[0])
    async with wire.Push(gateway, epoch=5):
        stale = await refusal(control(gateway, epoch=4).read())
        other = await refusal(control(gateway, producer_id="q").read())

    assert stale == (grpc.StatusCode.FAILED_PRECONDITION, "PRODUCER_FENCED")
    assert other == (grpc.StatusCode.FAILED_PRECONDITION, "PRODUCER_NOT_ATTACHED")


async def test_prompts_outlive_eviction_and_are_listed_with_their_text(serve, doors):
    server = await serve(reattach_window_s=0.04, idle_s=0.02)
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway):
        pass
    await submit(compass, "\u2028 kept \U0001f600")
    while server._registry.num_loaded:
        await server._registry.sweep()
        await compass.GetServerInfo(pb.GetServerInfoRequest())

    assert await queue(compass) == [("\u2028 kept \U0001f600", "QUEUED")]


async def test_prompts_of_a_stopped_session_are_refused(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    await wire.push_all(gateway, "s", [json.dumps({"type": "agent_start"})])

    assert await refusal(submit(compass, "late")) == (grpc.StatusCode.FAILED_PRECONDITION, "SESSION_STOPPED")


async def test_retention_never_takes_an_open_prompt(serve, doors):
    server = await serve(retention={"session_bytes": 500, "interval_s": 0.02}, reattach_window_s=0.04, idle_s=0.02)
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await push.push(WORKING, *(wire.message_start("user", "x" * 500) for _ in range(5)))
        await submit(compass, "precious")
        for _ in range(20):
            await push.push(*(wire.message_start("user", "x" * 500) for _ in range(5)))
            await server._log.trim(now_unix_ms=0)
    while server._registry.num_loaded:
        await server._registry.sweep()
        await compass.GetServerInfo(pb.GetServerInfoRequest())

    assert await queue(compass) == [("precious", "QUEUED")]
    kept = [frame for frame in await wire.frames_of(compass) if frame.event.HasField("prompt")]
    assert [frame.event.prompt.text for frame in kept] == ["precious"]
