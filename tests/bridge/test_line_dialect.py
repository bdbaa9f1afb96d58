"""The seam for a third family of agents: the example of docs/bridge.md, run."""

import os
import sys
from pathlib import Path

import compass
from bridge.conftest import is_recorded, submit, until_frame, until_state
from compass.v1 import compass_pb2 as pb
from e2e.conftest import ROOT

AGENT = Path(__file__).with_name("line_agent.py")


async def test_an_agent_of_another_family_takes_prompts_and_aborts_through_its_dialect(serve, bridge):
    server = await serve()
    path = os.pathsep.join((str(ROOT / "client"), str(ROOT / "examples")))
    options = ("--protocol", "rpc", "--dialect", "line_dialect:LineDialect")
    async with compass.connect(server.addresses[0]) as client:
        command = [sys.executable, str(AGENT)]
        await bridge(server.addresses[0], "s", command, *options, env={"PYTHONPATH": path})
        slow = await submit(client, "s", "slow")
        quick = await submit(client, "s", "quick")
        await until_frame(client, "s", is_recorded(slow))
        await client.abort("s")
        await until_frame(client, "s", is_recorded(quick))
        await until_state(client, "s", "READY")
        rows = [(row.text, row.incomplete) async for row in client.transcript("s")]
        info = await client.get_session("s")

    assert rows == [("slow", False), ("a part ", True), ("quick", False), ("a part and the rest", False)]
    assert info.agent_name == "line"
    assert (info.counts.errors, info.counts.aborts) == (0, 1)
    assert info.state == pb.AGENT_SESSION_STATE_READY


async def test_a_dialect_that_is_not_there_is_told(serve, bridge):
    server = await serve()
    run = await bridge(server.addresses[0], "s", ["cat"], "--dialect", "nowhere:Nothing")
    code, err = await run.ended()

    assert code == 2
    assert "'nowhere:Nothing' is neither omp, pi nor MODULE:CLASS" in err
