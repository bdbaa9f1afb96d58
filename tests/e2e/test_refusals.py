"""Wrong input: each gets its documented answer, and everybody else's stream goes on."""

import asyncio
import base64

import grpc
import pytest
import structlog

from compass.v1 import agent_gateway_pb2 as gw
from compass.v1 import compass_pb2 as pb
from e2e import wire

Code = grpc.StatusCode


async def refusal(awaitable) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await awaitable
    return refused.value


@pytest.mark.parametrize(
    "event",
    [
        pytest.param("{", id="malformed"),
        pytest.param("", id="empty"),
        pytest.param("[]", id="a list"),
        pytest.param('"text"', id="a string"),
        pytest.param("12", id="a number"),
        pytest.param("{} {}", id="two objects"),
        pytest.param('{"type":"notice","message":"\\ud83"}', id="a cut escape"),
    ],
)
async def test_an_event_that_is_no_object_is_refused_with_its_seq_and_nothing_is_stored(serve, doors, event):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await push.push(wire.message_start("user", "hello"))
        await push.send(wire.message_start("user", "lost with its batch"), event)
        error = await refusal(push.acked())

    assert (
        error.code(),
        wire.reason(error),
        wire.info(error).metadata["seq"],
    ) == (Code.INVALID_ARGUMENT, "INVALID_EVENT", "3")
    frames = await wire.frames_of(compass)
    assert wire.kinds(frames).count("user_message") == 1


@pytest.mark.parametrize(
    "event",
    [
        '{"type":7}',
        "{}",
        '{"type":"message_update","assistantMessageEvent":5}',
        '{"type":"message_end","message":[]}',
        '{"type":"tool_execution_start","toolCallId":{},"args":3}',
        '{"type":"message_update","assistantMessageEvent":{"type":"text_delta","delta":"\\ud83d"}}',
        '{"type":"message_update","message":{"x":"\\ud83d"},"assistantMessageEvent":{"type":"text_delta","delta":"a"}}',
        '{"type":"notice","message":"nul \\u0000 and \\u2028"}',
        '{"type":"' + "x" * 100_000 + '"}',
        "[" * 0 + '{"type":"deep","x":' + "[" * 500 + "]" * 500 + "}",
    ],
)
async def test_any_object_is_accepted_and_the_stream_goes_on(serve, doors, event):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await push.push(wire.message_start(), event, wire.delta("after"))
        await push.bye()

    assert "after" in "".join(frame.event.assistant_text.text for frame in await wire.frames_of(compass))


@pytest.mark.parametrize(
    ("hello", "code", "reason"),
    [
        ({"session_id": "x" * 10_240}, Code.INVALID_ARGUMENT, "INVALID_SESSION_ID"),
        ({"session_id": ""}, Code.INVALID_ARGUMENT, "INVALID_SESSION_ID"),
        ({"session_id": "a/b"}, Code.INVALID_ARGUMENT, "INVALID_SESSION_ID"),
        ({"session_id": "a\n"}, Code.INVALID_ARGUMENT, "INVALID_SESSION_ID"),
        ({"dialect": "klingon"}, Code.INVALID_ARGUMENT, "UNKNOWN_DIALECT"),
        ({"producer_id": ""}, Code.INVALID_ARGUMENT, "INVALID_REQUEST"),
        ({"epoch": 0}, Code.INVALID_ARGUMENT, "INVALID_REQUEST"),
        ({"title": "x" * 1_025}, Code.INVALID_ARGUMENT, "INVALID_REQUEST"),
    ],
)
async def test_a_hello_outside_its_bounds_is_refused(serve, doors, hello, code, reason):
    server = await serve()
    compass, gateway = doors(server.addresses[0])

    error = await refusal(wire.Push(gateway, **hello).__aenter__())

    assert (code, reason) == (error.code(), wire.reason(error))
    assert len(error.details()) < 400
    assert not (await compass.ListSessions(pb.ListSessionsRequest())).sessions


async def test_a_batch_before_hello_is_refused(serve, doors):
    server = await serve()
    _, gateway = doors(server.addresses[0])
    call = gateway.PushEvents()
    await call.write(wire.batch(1, ["{}"]))

    assert await call.code() == Code.INVALID_ARGUMENT


async def test_a_sequence_jump_names_the_seq_to_go_on_with(serve, doors):
    server = await serve()
    _, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await push.push(wire.message_start())
        push.next_seq = 5
        error = await refusal(push.push(wire.delta("jump")))

    assert (
        error.code(),
        wire.reason(error),
        wire.info(error).metadata["expected_seq"],
    ) == (Code.ABORTED, "SEQUENCE_JUMP", "2")


async def test_what_was_committed_is_acknowledged_before_a_refusal(serve, doors):
    server = await serve()
    _, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await push.send(wire.message_start())
        await push.send("not json")
        acked = await push.acked(1)
        error = await refusal(push.acked())

    assert acked.acked_seq == 1
    assert wire.reason(error) == "INVALID_EVENT"


@pytest.mark.timeout(30)
async def test_an_event_of_8_mib_is_taken_and_one_over_16_mib_is_not(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await push.push(wire.message_start(), wire.delta("x" * 8 * 1024 * 1024))
        await push.send(wire.delta("x" * 17 * 1024 * 1024))
        error = await refusal(push.acked())
    responses = [response async for response in wire.tail(compass)]

    assert error.code() == Code.RESOURCE_EXHAUSTED
    assert max(response.ByteSize() for response in responses) <= 1024 * 1024
    text = "".join(frame.event.assistant_text.text for response in responses for frame in response.frames)
    assert len(text) == 8 * 1024 * 1024


async def test_a_cursor_above_the_head_says_what_is_held(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    await wire.push_all(gateway, "s", [wire.message_start("user", "hello")], close=False)

    error = await refusal(wire.frames_of(compass, since_seq=99))

    assert (error.code(), wire.reason(error)) == (Code.OUT_OF_RANGE, "CURSOR_ABOVE_HEAD")
    assert int(wire.info(error).metadata["head_seq"]) < 99
    subscribe = compass.SubscribeAgentSession(pb.SubscribeAgentSessionRequest(session_id="s", since_seq=99))
    assert await subscribe.code() == Code.OUT_OF_RANGE


async def test_an_unknown_session_is_not_found_by_every_rpc(serve, doors):
    server = await serve()
    compass, _ = doors(server.addresses[0])

    errors = [
        await refusal(wire.frames_of(compass, "ghost")),
        await refusal(compass.GetSession(pb.GetSessionRequest(session_id="ghost"))),
        await refusal(compass.GetTranscript(pb.GetTranscriptRequest(session_id="ghost"))),
        await refusal(compass.CloseSession(pb.CloseSessionRequest(session_id="ghost"))),
        await refusal(compass.SubscribeAgentSession(pb.SubscribeAgentSessionRequest(session_id="ghost")).read()),
    ]

    assert {(Code.NOT_FOUND, "SESSION_NOT_FOUND")} == {(error.code(), wire.reason(error)) for error in errors}
    assert not (await compass.ListSessions(pb.ListSessionsRequest())).sessions


async def test_a_range_that_ends_before_it_begins_names_the_field(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    await wire.push_all(gateway, "s", wire.recording("pi-ok"))

    error = await refusal(wire.frames_of(compass, since_seq=5, until_seq=2))

    assert (error.code(), wire.info(error).metadata["field"]) == (Code.INVALID_ARGUMENT, "until_seq")


@pytest.mark.parametrize("request_fields", [{"page_size": -1}, {"page_size": 1_001}, {"page_token": "%%%"}])
async def test_a_page_outside_its_bounds_is_refused(serve, doors, request_fields):
    server = await serve()
    compass, _ = doors(server.addresses[0])

    assert (
        await refusal(compass.ListSessions(pb.ListSessionsRequest(**request_fields)))
    ).code() == Code.INVALID_ARGUMENT


@pytest.mark.parametrize("number", ["-1", "9" * 30, "-" + "9" * 30])
async def test_a_page_token_with_a_number_of_no_place_is_refused(serve, doors, number):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    await wire.push_all(gateway, "s", wire.recording("pi-ok"))
    listing = base64.urlsafe_b64encode(f"{number}/s".encode()).decode()
    row = base64.urlsafe_b64encode(number.encode()).decode()

    for asked in (
        compass.ListSessions(pb.ListSessionsRequest(page_token=listing)),
        compass.GetTranscript(pb.GetTranscriptRequest(session_id="s", page_token=row)),
    ):
        assert wire.reason(await refusal(asked)) == "INVALID_PAGE_TOKEN"


async def test_one_producers_refusal_leaves_the_others_alone(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway, "good") as good:
        reader = asyncio.create_task(wire.frames_of(compass, "good", follow=True))
        for number in range(20):
            await good.push(wire.message_start("user", f"{number}"))
            await refusal(gateway.PushEvent(gw.PushEventRequest(session_id="bad", event=gw.InnerEvent(json="nope"))))
        await good.bye()

    assert wire.kinds(await reader).count("user_message") == 20


async def test_an_unforeseen_failure_shows_a_fixed_sentence_and_a_correlation_id(serve, doors, monkeypatch):
    server = await serve()
    compass, _ = doors(server.addresses[0])

    async def explode(*_: object, **__: object) -> None:
        raise RuntimeError("secret path and cause")

    monkeypatch.setattr(server._log, "load", explode)
    with structlog.testing.capture_logs() as logged:
        error = await refusal(compass.GetSession(pb.GetSessionRequest(session_id="s")))

    assert error.code() == Code.INTERNAL
    assert "secret" not in error.details() + repr(error.trailing_metadata())
    correlation_id = wire.info(error).metadata["correlation_id"]
    [line] = [line for line in logged if line.get("correlation_id") == correlation_id]
    assert "secret path" in line["internal_cause"]
