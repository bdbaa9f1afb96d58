"""GetTranscript: what was said, what was cut off, and each failure beside it, once."""

import asyncio
import json

from compass.v1 import compass_pb2 as pb
from e2e import wire

TURN = (json.dumps({"type": "agent_start"}), wire.message_start("user", "Plan it"))
ABORTED, FAILED = pb.SESSION_ERROR_KIND_ABORTED, pb.SESSION_ERROR_KIND_ERROR


async def rows(compass, **request: object) -> list[pb.TranscriptMessage]:
    """Read all pages."""
    found: list[pb.TranscriptMessage] = []
    token = ""
    while True:
        asked = pb.GetTranscriptRequest(session_id="s", page_token=token, **request)
        response = await compass.GetTranscript(asked)
        found += response.messages
        if not (token := response.next_page_token):
            return found


def retry(attempt: int) -> str:
    return json.dumps({"type": "auto_retry_start", "attempt": attempt, "maxAttempts": 3, "delayMs": 10})


def fails(text: str = "", error: str = "connection reset") -> str:
    return wire.message_end("error", text, errorMessage=error)


async def test_a_retry_after_the_first_token_gives_the_sentence_once(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await push.push(*TURN, wire.message_start(), wire.delta("Here is the plan"), fails("Here is the plan"))
        cut = await rows(compass)
        await push.push(retry(1), wire.message_start(), wire.delta("Here is the plan: step 1"))
        await push.push(wire.message_end("stop", "Here is the plan: step 1"))

    assert [(row.text, row.incomplete, len(row.errors)) for row in cut] == [
        ("Plan it", False, 0),
        ("Here is the plan", True, 1),
    ]
    assert [(row.text, row.incomplete, len(row.errors)) for row in await rows(compass)] == [
        ("Plan it", False, 0),
        ("Here is the plan: step 1", False, 0),
    ]


async def test_attempts_that_all_fail_before_a_chunk_leave_one_error_beside_the_user_message(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await push.push(*TURN)
        for attempt in (1, 2, 3):
            await push.push(wire.message_start(), fails(error=f"429 number {attempt}"), retry(attempt))
        await push.push(wire.message_start(), fails(error="429 number 4"))

    (row,) = await rows(compass)

    assert (row.role, row.text) == (pb.TRANSCRIPT_ROLE_USER, "Plan it")
    assert [(error.kind, error.message) for error in row.errors] == [(FAILED, "429 number 4")]


async def test_an_aborted_message_is_incomplete_with_the_abort_beside_it(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await push.push(*TURN, wire.message_start(), wire.delta("Half"), wire.message_end("aborted", "Half"))

    _, row = await rows(compass)

    assert (row.text, row.incomplete, row.stop_reason) == ("Half", True, pb.SESSION_STOP_REASON_ABORTED)
    assert [error.kind for error in row.errors] == [ABORTED]


async def test_a_message_of_a_lost_producer_is_not_judged_until_its_window_has_closed(serve, doors):
    server = await serve(reattach_window_s=0.3)
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await push.push(*TURN, wire.message_start(), wire.delta("Ha"), wire.delta("lf"))
    async with asyncio.timeout(5):
        while (state := await session_state(compass)) == pb.AGENT_SESSION_STATE_WORKING:
            pass
        assert state == pb.AGENT_SESSION_STATE_DISCONNECTED
        _, open_row = await rows(compass)
        while await session_state(compass) != pb.AGENT_SESSION_STATE_ERRORED:
            pass
    _, row = await rows(compass)

    assert not open_row.HasField("incomplete")
    assert (row.text, row.incomplete, row.stop_reason) == ("Half", True, pb.SESSION_STOP_REASON_DISCONNECTED)
    assert [error.kind for error in row.errors] == [FAILED]


async def session_state(compass) -> int:
    return (await compass.GetSession(pb.GetSessionRequest(session_id="s"))).session.state


async def test_a_failure_before_anyone_spoke_has_a_row_without_a_role(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await push.push(json.dumps({"type": "agent_start"}), wire.message_start(), fails(error="no model"))

    (row,) = await rows(compass)

    assert (row.role, [error.message for error in row.errors]) == (pb.TRANSCRIPT_ROLE_UNSPECIFIED, ["no model"])


async def test_pages_hold_every_row_once_and_a_later_call_sees_what_came_since(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await push.push(*(wire.message_start("user", f"question {number}") for number in range(25)))
        before = await rows(compass, page_size=4)
        await push.push(wire.message_start("user", "one more"))

    assert [row.text for row in before] == [f"question {number}" for number in range(25)]
    assert [row.text for row in await rows(compass, page_size=7)][-2:] == ["question 24", "one more"]


async def test_a_page_never_outgrows_a_response_whatever_it_holds(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    answer = "é" * 700_000
    async with wire.Push(gateway) as push:
        await push.push(*TURN, wire.message_start(), wire.delta(answer), wire.message_end("stop", answer))
        await push.push(*(fails(error="x" * 2_000) for _ in range(3)))

    found = await rows(compass, page_size=1_000)

    assert "".join(row.text for row in found[1:]) == answer
    assert {row.message_id for row in found[1:]} == {found[1].message_id}
