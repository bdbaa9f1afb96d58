"""Handing over a prompt or an abort when something went wrong just then: late returns, lost items, early aborts."""

from compass.v1 import agent_gateway_pb2 as gw
from compass.v1 import compass_pb2 as pb
from e2e import wire
from e2e.test_prompts import READY, WORKING, control, queue, states, submit


async def test_a_return_of_an_earlier_handing_over_says_nothing_about_a_later_one(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        prompt = await submit(compass, "again")
        calls = control(gateway)
        first = await calls.read()
        returned = gw.PromptReturned(prompt_id=prompt.prompt_id, control_seq=first.control_seq)
        await push.call.write(gw.PushEventsRequest(prompt_returned=returned))
        second = await calls.read()
        await push.call.write(gw.PushEventsRequest(prompt_returned=returned))
        await push.push(WORKING)
        calls.cancel()

    assert second.control_seq > first.control_seq
    assert await states(compass) == ["QUEUED", "CLAIMED", "RETURNED", "CLAIMED"]


async def test_a_handing_over_that_was_lost_on_the_way_comes_again_when_its_process_is_back(serve, doors):
    server = await serve(reattach_window_s=0.05)
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway):
        await submit(compass, "unread")
        calls = control(gateway)
        await calls.initial_metadata()
        calls.cancel()
    while "RETURNED" not in await states(compass):
        pass
    async with wire.Push(gateway):
        handed = await control(gateway).read()

    assert handed.prompt.text == "unread"
    assert await queue(compass) == [("unread", "CLAIMED")]


async def test_an_abort_asked_for_before_the_turn_began_is_sent_again_when_it_does(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await submit(compass, "taken")
        calls = control(gateway)
        await calls.read()
        await compass.AbortSession(pb.AbortSessionRequest(session_id="s"))
        first = await calls.read()
        await push.push(WORKING)
        second = await calls.read()
        calls.cancel()

    assert first.HasField("abort")
    assert second.HasField("abort")


async def test_a_claimed_steer_holds_up_no_prompt_of_a_resting_agent(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        calls = control(gateway)
        await push.push(WORKING)
        await submit(compass, "steer", steer=True)
        await calls.read()
        await submit(compass, "next")
        await push.push(READY)
        handed = await calls.read()
        calls.cancel()

    assert handed.prompt.text == "next"
