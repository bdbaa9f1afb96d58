"""An agent written in Python against a real server: prompts that cannot be lost, through `client.agent`."""

import asyncio
from pathlib import Path

import pytest

import compass
from compass.v1 import compass_pb2 as pb

START = {"type": "agent_start"}
END = {"type": "agent_end"}
STATES = pb.SessionPromptState


def user(text: str) -> dict[str, object]:
    return {"type": "message_start", "message": {"role": "user", "content": [{"type": "text", "text": text}]}}


async def states(client: compass.Client, session: str = "s") -> list[str]:
    return [
        STATES.Name(item.event.prompt.state).removeprefix("SESSION_PROMPT_STATE_")
        async for item in client.tail(session, follow=False)
        if isinstance(item, compass.Frame) and item.event.HasField("prompt")
    ]


async def queued(client: compass.Client) -> list[str]:
    return [prompt.text for prompt in await client.prompts("s")]


async def test_a_prompt_is_handed_over_and_recorded(serve):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client, client.agent("s") as agent:
        await agent.flush()
        controls = agent.control()
        answer, control = await asyncio.gather(prompt_soon(client, "do it"), anext(controls))
        assert isinstance(control, compass.Prompt)
        await control.recorded(user("do it, expanded"))
        await agent.flush()

        assert (control.prompt_id, control.text, control.steer) == (answer.prompt_id, "do it", False)
        assert await states(client) == ["QUEUED", "CLAIMED", "RECORDED"]
        assert await queued(client) == []
        await controls.aclose()


async def prompt_soon(client: compass.Client, text: str, **more) -> pb.SubmitPromptResponse:
    while True:
        try:
            return await client.submit_prompt("s", text, **more)
        except compass.SessionNotFoundError:
            await asyncio.sleep(0)


async def test_a_prompt_that_is_given_back_is_handed_over_again(serve):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client, client.agent("s") as agent:
        controls = agent.control()
        _, first = await asyncio.gather(prompt_soon(client, "again"), anext(controls))
        await first.returned()
        second = await anext(controls)
        await controls.aclose()

        assert second.text == "again"
        assert second.control_seq > first.control_seq
        assert await states(client) == ["QUEUED", "CLAIMED", "RETURNED", "CLAIMED"]


async def test_a_prompt_that_is_refused_again_and_again_rests_in_the_queue_where_it_can_be_cancelled(serve):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client, client.agent("s") as agent:
        controls = agent.control()
        answer, first = await asyncio.gather(prompt_soon(client, "refused"), anext(controls))
        await first.returned()
        await (await anext(controls)).returned()
        following = asyncio.ensure_future(anext(controls))
        while (await states(client)).count("RETURNED") < 2:
            pass
        cancelled = await client.cancel_prompt("s", answer.prompt_id)
        await client.submit_prompt("s", "accepted")
        handed = await following
        await controls.aclose()

        assert cancelled.state == pb.SESSION_PROMPT_STATE_CANCELLED
        assert handed.text == "accepted"


async def test_aborts_come_between_prompts_in_order(serve):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client, client.agent("s") as agent:
        controls = agent.control()
        _, prompt = await asyncio.gather(prompt_soon(client, "long"), anext(controls))
        await agent.push(START)
        await prompt.recorded(user("long"))
        await agent.flush()
        await client.abort("s")
        abort = await anext(controls)
        await controls.aclose()

        assert isinstance(abort, compass.Abort)
        assert abort.control_seq > prompt.control_seq


async def test_each_item_is_taken_once_over_kills_of_the_server(serve_process, tmp_path: Path):
    address = f"unix:{tmp_path}/socket"
    server = await serve_process(listen=address)
    async with compass.connect(address) as client, client.agent("s", close_on_exit=False) as agent:
        controls = agent.control()
        _, first = await asyncio.gather(prompt_soon(client, "first"), anext(controls))
        following = asyncio.ensure_future(anext(controls))
        await server.kill()
        await first.recorded(user("first"))
        server = await serve_process(listen=address)
        await agent.push(END)
        await client.submit_prompt("s", "second")
        second = await following
        await second.recorded(user("second"))
        await agent.flush()
        await controls.aclose()

        assert [first.text, second.text] == ["first", "second"]
        assert (await states(client)).count("RECORDED") == 2
        assert await queued(client) == []


async def test_control_ends_when_the_agent_closes_and_raises_when_the_session_is_stopped_by_others(serve):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client:
        async with client.agent("s") as agent:
            reading = asyncio.create_task(read_all(agent))
            await agent.flush()
            await agent.publisher.close()
            assert await reading == []

        with pytest.raises(compass.SessionStoppedError):  # noqa: PT012 - leaving the block is part of it
            async with client.agent("other") as agent:
                reading = asyncio.create_task(read_all(agent))
                await agent.publisher.attached()
                await client.close_session("other")
                await reading


async def read_all(agent: compass.Agent) -> list[compass.Control]:
    return [control async for control in agent.control()]


async def test_an_attempt_that_is_made_again_makes_no_second_prompt(serve):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client, client.agent("s") as agent:
        await agent.publisher.attached()
        first = await client.submit_prompt("s", "once", client_request_id="r")
        again = await client.submit_prompt("s", "once", client_request_id="r")
        with pytest.raises(compass.PromptConflictError) as refused:
            await client.submit_prompt("s", "other", client_request_id="r")

        assert first.prompt_id == again.prompt_id == refused.value.prompt_id


async def test_what_ended_an_agent_process_is_told_and_the_session_stays_open(serve):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client:
        async with client.agent("s", close_on_exit=False) as agent:
            controls = agent.control()
            await asyncio.gather(prompt_soon(client, "taken"), anext(controls))
            await agent.push(START)
            await agent.publisher.report_exit(code=None, signal="SIGKILL", last_stderr="out of memory")
            await controls.aclose()

        assert (await client.get_session("s")).state == pb.AGENT_SESSION_STATE_ERRORED
        assert await states(client) == ["QUEUED", "CLAIMED", "RETURNED"]
