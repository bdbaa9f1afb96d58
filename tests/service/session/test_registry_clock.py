"""The reattach window when the machine's clock is set back."""

import json
from pathlib import Path

from compass.v1 import compass_pb2 as pb
from compass_service.log import Retention, SqliteLog
from compass_service.session.producers import Hello
from compass_service.session.registry import Registry
from compass_service.session.session import Event

WINDOW_MS = 1_000


async def test_a_lost_producer_is_judged_though_the_clock_was_set_back(tmp_path: Path):
    now_ms = 1_000_000
    log = SqliteLog.open(tmp_path, retention=Retention(), reserve_bytes=0)
    registry = Registry(log, now_ms=lambda: now_ms, reattach_window_ms=WINDOW_MS, idle_ms=10, phase_limits={})
    session = await registry.open("s", create=True)
    attachment = session.attach(Hello("s", "p", 1))
    await session.push(attachment, 1, [Event(json.dumps({"type": "agent_start"}))], 0)
    session.detach(attachment)

    now_ms = 100_000
    await registry.sweep()
    still = session.mapper.state.lifecycle
    now_ms += WINDOW_MS
    await registry.sweep()
    await registry.settled()
    judged = session.mapper.state.lifecycle
    await log.close()

    assert (still, judged) == (pb.AGENT_SESSION_STATE_DISCONNECTED, pb.AGENT_SESSION_STATE_ERRORED)
