"""The commands about prompts against a real server."""

import asyncio
import json

import pytest
from click.testing import CliRunner

import compass
from compass.cli import main
from e2e.commands import Done


@pytest.fixture
async def cli(serve):
    server = await serve()
    address = server.addresses[0]

    async def invoke(*arguments: str, stdin: str = "") -> Done:
        runner = CliRunner()
        environment = {"COMPASS_SERVER": address}
        done = await asyncio.to_thread(runner.invoke, main, arguments, env=environment, input=stdin)
        return Done(done.exit_code, done.stdout, done.stderr)

    async with compass.connect(address) as client, client.agent("s") as agent:
        await agent.publisher.attached()
        invoke.agent = agent
        yield invoke


async def test_a_prompt_prints_its_id_and_is_listed_until_it_is_cancelled(cli):
    first = await cli("prompt", "s", "look at\nthis")
    second = await cli("prompt", "s", "-", stdin="from standard input")
    listed = await cli("prompts", "s")
    shown = await cli("show", "s")
    cancelled = await cli("cancel", "s", "p1")
    left = await cli("prompts", "s", "--json")

    assert (first.code, first.out, second.out) == (0, "p1\n", "p2\n")
    assert listed.out == "p1  queued  look at\\nthis\np2  queued  from standard input\n"
    assert "open prompts:\n  p1  queued  look at\\nthis\n" in shown.out
    assert cancelled.code == 0
    assert left.json == [
        {"promptId": "p2", "state": "SESSION_PROMPT_STATE_QUEUED", "text": "from standard input"},
    ]


async def test_every_command_writes_one_json_object(cli):
    prompted = await cli("prompt", "s", "do it", "--json")
    shown = await cli("show", "s", "--json")
    cancelled = await cli("cancel", "s", "p1", "--json")
    aborted = await cli("abort", "s", "--json")

    assert prompted.json == [{"promptId": "p1", "state": "SESSION_PROMPT_STATE_QUEUED"}]
    assert [prompt["text"] for prompt in json.loads(shown.out)["prompts"]] == ["do it"]
    assert cancelled.json == [{"state": "SESSION_PROMPT_STATE_CANCELLED"}]
    assert aborted.json == [{"sessionId": "s"}]


async def test_the_same_request_id_is_the_same_prompt(cli):
    first = await cli("prompt", "s", "once", "--request-id", "r")
    again = await cli("prompt", "s", "once", "--request-id", "r")
    other = await cli("prompt", "s", "other", "--request-id", "r")

    assert first.out == again.out == "p1\n"
    assert other.code == 6


async def test_what_is_not_there_or_past_cancelling_has_its_exit_code(cli):
    controls = cli.agent.control()
    _, handed = await asyncio.gather(cli("prompt", "s", "taken"), anext(controls))
    past = await cli("cancel", "s", handed.prompt_id)
    unknown = await cli("cancel", "s", "p99")
    nowhere = await cli("prompt", "nowhere", "hello")
    await controls.aclose()

    assert (past.code, unknown.code, nowhere.code) == (6, 3, 3)
    assert past.err == "compass-trace: prompt p1 of session s is claimed\n"


async def test_an_abort_reaches_the_agent(cli):
    controls = cli.agent.control()
    following = asyncio.ensure_future(anext(controls))
    await cli.agent.push({"type": "agent_start"})
    await cli.agent.flush()
    aborted = await cli("abort", "s")
    item = await following
    await controls.aclose()

    assert aborted.code == 0
    assert isinstance(item, compass.Abort)
