"""`compass-trace run` with the real agent pi against a scripted provider: what a pane sees of each kind of turn."""

import asyncio
import os
import signal
from typing import NamedTuple

import pytest

import compass
import compass.fold
from bridge.conftest import frames_of, is_recorded, prompt_states, submit, until_frame, until_state
from bridge.pi import Pi, answered, asked_for_tool, broken, empty, refused
from client.stream.provider import Reply
from compass.v1 import compass_pb2 as pb
from compass.v1 import failure_pb2

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

CATEGORIES = failure_pb2.FailureCategory


class Pane:
    """One session of pi as a pane sees it."""

    def __init__(self, client: compass.Client) -> None:
        self.client = client

    async def prompt(self, text: str, **more: object) -> str:
        return await submit(self.client, "s", text, **more)

    async def until(self, holds) -> list[compass.Frame]:
        return await until_frame(self.client, "s", holds)

    async def until_rest(self, *, errors: int = 0) -> list[compass.Frame]:
        """Wait until the agent rests after its turn, and so many failures."""
        num_errors = 0
        has_worked = False

        def rests(frame: compass.Frame) -> bool:
            nonlocal num_errors, has_worked
            num_errors += frame.event.session_error.kind == pb.SESSION_ERROR_KIND_ERROR
            has_worked = has_worked or frame.state == pb.AGENT_SESSION_STATE_WORKING
            is_idle = frame.event.HasField("activity") and frame.event.activity.phase == pb.SESSION_PHASE_IDLE
            return has_worked and is_idle and num_errors >= errors

        return await self.until(rests)

    async def rows(self) -> list[pb.TranscriptMessage]:
        return [row async for row in self.client.transcript("s")]


@pytest.fixture
async def pane(serve, bridge, pi):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client:
        shown = Pane(client)
        shown.run = await bridge(server.addresses[0], "s", pi.command, env=pi.env)
        yield shown


async def test_an_answer(pi: Pi, pane: Pane):
    pi.replies(answered("hello there"))
    prompt_id = await pane.prompt("hi")
    frames = await pane.until_rest()
    code = await pane.run.terminate()

    assert prompt_states(frames, prompt_id) == ["QUEUED", "CLAIMED", "RECORDED"]
    assert [(row.text, row.incomplete) for row in await pane.rows()] == [("hi", False), ("hellothere", False)]
    assert code == 0
    assert (await frames_of(pane.client, "s"))[-1].state == pb.AGENT_SESSION_STATE_STOPPED


async def test_tools(pi: Pi, pane: Pane):
    pi.replies(asked_for_tool("echo from the tool"), answered("done"))
    await pane.prompt("use it")
    frames = await pane.until(lambda frame: frame.event.assistant_text.text == "done")

    updates = [frame.event.tool_call_update for frame in frames if frame.event.HasField("tool_call_update")]
    assert updates[-1].status == pb.AGENT_TOOL_CALL_STATUS_COMPLETED
    assert updates[-1].output == "from the tool"


class Failing(NamedTuple):
    """A way to fail, and what is to be seen of it."""

    reply: Reply
    category: str
    text: str | None
    """What of an answer had come before it."""
    num_failures: int
    """With the retries that pi makes by itself."""


@pytest.mark.parametrize(
    "failing",
    [
        pytest.param(Failing(refused(401, "bad key"), "AUTH_INVALID", None, 1), id="401"),
        pytest.param(Failing(refused(429, "slow down"), "RATE_LIMITED", None, 3), id="429"),
        pytest.param(Failing(refused(500, "boom"), "SERVER_ERROR", None, 3), id="500"),
        pytest.param(Failing(broken("half an", end="close"), "NETWORK", "halfan", 3), id="cut"),
        pytest.param(Failing(broken("half an", end="reset"), "NETWORK", "halfan", 3), id="reset"),
        pytest.param(Failing(empty(), "MALFORMED_RESPONSE", None, 1), id="empty"),
    ],
)
async def test_a_failure_has_its_category_and_the_next_prompt_works(pi: Pi, pane: Pane, failing: Failing):
    reply, category, text, num_failures = failing
    pi.replies(*[reply] * num_failures, answered("recovered"))
    failed = await pane.prompt("first")
    frames = await pane.until_rest(errors=num_failures)
    following = await pane.prompt("second")
    await pane.until(lambda frame: frame.event.assistant_text.text == "recovered")
    rows = await pane.rows()

    errors = [frame.event.session_error for frame in frames if frame.event.HasField("session_error")]
    assert [CATEGORIES.Name(error.category).removeprefix("FAILURE_CATEGORY_") for error in errors] == (
        [category] * num_failures
    )
    assert not any(error.HasField("status") for error in errors)  # pi reports none
    retries = [frame.event.activity for frame in frames if frame.event.activity.supersedes_event_id]
    assert len(retries) == num_failures - 1
    assert frames[-2].state == pb.AGENT_SESSION_STATE_ERRORED
    partial = [(row.text, row.incomplete) for row in rows if row.role == pb.TRANSCRIPT_ROLE_ASSISTANT]
    assert partial[-1] == ("recovered", False)
    assert ((text, True) in partial) == (text is not None)
    everything = await frames_of(pane.client, "s")
    for prompt_id in (failed, following):
        assert prompt_states(everything, prompt_id) == ["QUEUED", "CLAIMED", "RECORDED"]


async def test_a_retry_that_succeeds_leaves_no_failure_standing(pi: Pi, pane: Pane):
    pi.replies(refused(429, "slow down", "retry-after: 0"), answered("fine"))
    prompt_id = await pane.prompt("hi")
    waiting = await pane.prompt("behind")
    frames = await pane.until(is_recorded(waiting))

    view = compass.fold.fold(frames)
    assert [(card.outcome.value, len(card.attempts)) for card in view.errors] == [("recovered", 1)]
    assert prompt_states(frames, prompt_id) == prompt_states(frames, waiting) == ["QUEUED", "CLAIMED", "RECORDED"]


async def test_an_abort_of_a_slow_answer(pi: Pi, pane: Pane):
    pi.replies(broken("half an", end="hang"), answered("next"))
    await pane.prompt("slow one")
    await pane.until(lambda frame: frame.event.assistant_text.text == "an")
    await pane.client.abort("s")
    frames = await pane.until(lambda frame: frame.event.HasField("session_error"))
    await until_state(pane.client, "s", "READY")
    await pane.prompt("go on")
    await pane.until(lambda frame: frame.event.assistant_text.text == "next")
    rows = await pane.rows()

    error = frames[-1].event.session_error
    assert (error.kind, error.abort_origin) == (pb.SESSION_ERROR_KIND_ABORTED, pb.SESSION_ABORT_ORIGIN_USER)
    assert [(row.text, row.incomplete) for row in rows[1:]] == [("halfan", True), ("go on", False), ("next", False)]


async def test_a_prompt_that_triggers_compaction_and_is_aborted(pi: Pi, pane: Pane):
    pi.replies(
        answered("one", tokens=20),
        broken("big", end="hang", tokens=95_000),
        broken("a summary", end="end", pause_s=0.7),
        broken("never whole", end="hang"),
        answered("answered"),
    )
    await pane.prompt("zero")
    await pane.until(lambda frame: frame.event.assistant_text.text == "one")
    await pane.prompt("first")
    await pane.until(lambda frame: frame.event.assistant_text.text == "big")
    await pane.client.abort("s")
    await pane.until(lambda frame: frame.event.HasField("session_error"))
    triggering = await pane.prompt("second")
    await pane.until(lambda frame: frame.event.activity.phase == pb.SESSION_PHASE_COMPACTING)
    held = [await pane.prompt(text) for text in ("third", "fourth")]
    queued = [(each.text, each.state) for each in await pane.client.prompts("s")]
    await pane.client.abort("s")
    frames = await pane.until(is_recorded(held[-1]))

    claimed, waiting = pb.SESSION_PROMPT_STATE_CLAIMED, pb.SESSION_PROMPT_STATE_QUEUED
    assert queued == [("second", claimed), ("third", waiting), ("fourth", waiting)]
    for prompt_id in (triggering, *held):
        assert prompt_states(frames, prompt_id) == ["QUEUED", "CLAIMED", "RECORDED"]
    shown = [frame.event.user_message.text for frame in frames if frame.event.HasField("user_message")]
    assert shown == ["zero", "first", "second", "third", "fourth"]
    aborts = [
        frame.event.session_error for frame in frames if frame.event.session_error.kind == pb.SESSION_ERROR_KIND_ABORTED
    ]
    assert [abort.abort_origin for abort in aborts] == [pb.SESSION_ABORT_ORIGIN_USER] * 2


async def test_the_agent_is_killed_in_the_middle_of_an_answer(pi: Pi, pane: Pane):
    pi.replies(broken("half an", end="hang"))
    await pane.prompt("slow one")
    behind = await pane.prompt("behind")
    await pane.until(lambda frame: frame.event.assistant_text.text == "an")
    os.kill(pane.run.agent_pids[0], signal.SIGKILL)
    async with asyncio.timeout(20):
        code, _ = await pane.run.ended()
    frames = await frames_of(pane.client, "s")

    assert code == 13
    assert (await pane.client.get_session("s")).state == pb.AGENT_SESSION_STATE_ERRORED
    assert [prompt.prompt_id for prompt in await pane.client.prompts("s")] == [behind]
    ends = [frame.event.message_end for frame in frames if frame.event.HasField("message_end")]
    assert ends[-1].outcome == pb.SESSION_MESSAGE_OUTCOME_INCOMPLETE
