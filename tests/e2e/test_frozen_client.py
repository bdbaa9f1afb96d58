"""A client that was generated from nothing but the frozen file works against this server unchanged."""

import asyncio
import json
import os
import sys
from pathlib import Path

from contract import wire
from contract.toolchain import compile_frozen
from e2e.wire import Push, frames_of, kind, kinds, push_all, recording

CLIENT = Path(__file__).parents[1] / "contract" / "frozen_client.py"
FROZEN_ARMS = {field.split()[-1] for number, field in wire.FROZEN_MESSAGES["SessionEvent"].items() if number > 2}


async def test_a_frozen_client_reads_every_frame_and_the_end(serve, doors, tmp_path) -> None:
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    await push_all(gateway, "s", recording("omp-inband"), close=False)
    async with Push(gateway, "s", producer_id="later", take_over=True) as push:
        await push.push(*recording("omp-tool"), dropped=3)
        await push.bye()

    *shown, end = await _read_with_frozen_stubs(tmp_path, server.addresses[0], "s")

    current = await frames_of(compass, "s")
    assert [_kind(frame) for frame in shown] == [name if _is_frozen(name) else "unknown" for name in kinds(current)]
    assert {"gap", "user_message", "message_end", "activity"} <= set(kinds(current)), "nothing additive was sent"
    assert end == {"code": "OK"}


async def test_a_frozen_client_reads_an_error_as_it_was_agreed(serve, doors, tmp_path) -> None:
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    await push_all(gateway, "s", recording("omp-inband"))

    shown = await _read_with_frozen_stubs(tmp_path, server.addresses[0], "s")

    (error,) = [frame.event.session_error for frame in await frames_of(compass, "s") if kind(frame) == "session_error"]
    assert error.category, "nothing additive was sent"
    assert [frame["event"]["session_error"] for frame in shown if _kind(frame) == "session_error"] == [
        {"kind": "SESSION_ERROR_KIND_ERROR", "message": error.message, "status": 429},
    ]


async def _read_with_frozen_stubs(stubs: Path, address: str, session_id: str) -> list[dict]:
    compile_frozen(stubs, "--python_out=.", "--grpc_python_out=.")
    for package in ("compass", "compass/v1"):
        (stubs / package / "__init__.py").touch()  # so that no installed package of the name is found instead
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        CLIENT,
        address,
        session_id,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(stubs)},
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    return [json.loads(line) for line in output.decode().rstrip("\n").split("\n")]


def _is_frozen(name: str) -> bool:
    return name.isupper() or name in FROZEN_ARMS


def _kind(frame: dict) -> str:
    if "state" in frame:
        return frame["state"].removeprefix("AGENT_SESSION_STATE_")
    arms = set(frame.get("event", {})) - {"event_id", "at_unix_ms"}
    return arms.pop() if arms else "unknown"
