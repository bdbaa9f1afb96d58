"""kill -9 of the agent, the bridge and the service at random instants, with prompts queued: none is lost or doubled.

COMPASS_KILL_ROUNDS sets how many rounds each gets (the real agent half as many), COMPASS_KILL_SEED which.
"""

import asyncio
import contextlib
import os
import random
import signal
from pathlib import Path

import pytest

import compass
from bridge.conftest import frames_of, prompt_states, scripted, submit
from bridge.pi import broken
from compass.v1 import compass_pb2 as pb

ROUNDS = int(os.environ.get("COMPASS_KILL_ROUNDS", "2"))
SEED = int(os.environ.get("COMPASS_KILL_SEED", "1"))
NUM_PROMPTS = 5
LONGEST_S = 1.2
"""By then a round without a kill is over."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(60 + 30 * ROUNDS)]


class Round:
    """One server, one session, and whatever runs the agent now."""

    def __init__(self, serve_process, bridge, folder: Path, session: str, command: list[str], **more: object) -> None:
        self.address = f"unix:{folder}/socket"
        self.session = session
        self._serve = serve_process
        self._bridge = bridge
        self._command = command
        self._more = more
        self.server = None
        self.run = None

    async def serve(self) -> None:
        self.server = await self._serve("--reattach-window-s", "30", listen=self.address)

    async def start_bridge(self) -> None:
        self.run = await self._bridge(self.address, self.session, self._command, **self._more)

    async def kill(self, victim: str) -> None:
        match victim:
            case "agent":
                for pid in self.run.agent_pids:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                await self.run.ended()
                await self.start_bridge()
            case "bridge":
                await self.run.kill()
                await self.start_bridge()
            case "service":
                await self.server.kill()
                await self.serve()


@pytest.fixture
def a_round(serve_process, bridge, tmp_path):
    """Make a round: `a_round(session, command)`."""

    def make(session: str, command: list[str], **more: object) -> Round:
        return Round(serve_process, bridge, tmp_path, session, command, **more)

    return make


@pytest.mark.parametrize("number", range(ROUNDS))
@pytest.mark.parametrize("victim", ["agent", "bridge", "service"])
async def test_no_prompt_is_lost_and_none_is_recorded_twice(a_round, victim, number):
    await play(a_round("s", scripted(pause_s=0.1)), victim, number)


@pytest.mark.parametrize("number", range((ROUNDS + 1) // 2))
@pytest.mark.parametrize("victim", ["agent", "bridge", "service"])
async def test_the_same_holds_for_the_real_agent(a_round, pi, victim, number):
    pi.replies(broken("half an answer", end="end", pause_s=0.03))
    await play(a_round("s", pi.command, env=pi.env), victim, number)


async def play(round_: Round, victim: str, number: int) -> None:
    """Queue prompts, kill somebody at some instant, and see that each prompt is recorded once all the same."""
    after_s = random.Random(f"{SEED}/{victim}/{number}").uniform(0.0, LONGEST_S)
    await round_.serve()
    async with compass.connect(round_.address) as client:
        await round_.start_bridge()
        ids = [await submit(client, round_.session, f"prompt {each}") for each in range(NUM_PROMPTS)]
        await asyncio.sleep(after_s)
        await round_.kill(victim)
        frames = await until_all_recorded(client, round_.session)

    for prompt_id in ids:
        states = prompt_states(frames, prompt_id)
        assert states[0] == "QUEUED", (after_s, prompt_id, states)
        assert states.count("RECORDED") == 1, (after_s, prompt_id, states)
        assert states[-1] == "RECORDED", (after_s, prompt_id, states)
    recorded = [frame.event.user_message.prompt_id for frame in frames if frame.event.user_message.prompt_id]
    assert sorted(recorded) == sorted(ids), after_s


async def until_all_recorded(client: compass.Client, session: str) -> list[compass.Frame]:
    """Tail until the last prompt is recorded; by their order the others are too."""
    num_recorded = 0
    async with client.tail(session) as tail:
        async for item in tail:
            num_recorded += item.event.prompt.state == pb.SESSION_PROMPT_STATE_RECORDED
            if num_recorded == NUM_PROMPTS:
                break
    return await frames_of(client, session)
