"""The server as a process: ready line, configuration, draining, locks, and being asked twice."""

import asyncio
import json
import os
import signal
import sys

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from compass.v1 import agent_gateway_pb2 as gw
from compass.v1 import compass_pb2 as pb
from e2e import wire


async def run(*flags: str, **environment: str) -> tuple[int, str]:
    """Run a server that is expected to end by itself; return its exit code and stderr."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "compass_service",
        *flags,
        stderr=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
    )
    _, stderr = await process.communicate()
    return process.returncode, stderr.decode()


async def test_sigterm_drains_open_calls_and_exits_0(serve_process, doors):
    server = await serve_process("--grace-s", "5")
    compass, gateway = doors(server.address)
    async with wire.Push(gateway) as push:
        await push.push(wire.message_start())
        call = compass.TailSession(pb.TailSessionRequest(session_id="s", follow=True))
        watch = compass.WatchSessions(pb.WatchSessionsRequest())
        assert (await call.read()).frames
        assert (await watch.read()).sessions
        await push.push(wire.delta("acknowledged"))

        assert await server.terminate() == 0
        for stream in (call, watch, push.call):
            with pytest.raises(grpc.aio.AioRpcError) as ended:
                await wire.read_all(stream)
            assert (ended.value.code(), wire.reason(ended.value)) == (grpc.StatusCode.UNAVAILABLE, "DRAINING")


async def test_a_second_signal_ends_at_once(serve_process, doors):
    server = await serve_process("--grace-s", "600")
    compass, gateway = doors(server.address, ("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 16_384))
    async with wire.Push(gateway) as push:
        call = compass.TailSession(pb.TailSessionRequest(session_id="s", follow=True))
        assert (await call.read()).frames
        # A reader that stops reading holds its call open for the whole grace.
        await push.push(wire.message_start(), *(wire.delta("x" * 10_000) for _ in range(100)))
        server.process.send_signal(signal.SIGTERM)
        assert await push.call.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.OK}
        server.process.send_signal(signal.SIGTERM)
        assert await server.process.wait() != 0
        call.cancel()


async def test_a_data_directory_that_is_held_is_refused(serve_process, tmp_path):
    await serve_process()

    code, stderr = await run("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "data"))

    assert code == 1
    assert "held by another process" in stderr


async def test_an_address_that_is_taken_is_refused(serve_process, tmp_path):
    server = await serve_process()

    code, stderr = await run("--listen", server.address, "--data-dir", str(tmp_path / "other"))

    assert code == 1
    assert "cannot_serve" in stderr


@pytest.mark.parametrize(
    ("flags", "environment", "named"),
    [
        (["--listen", "nowhere"], {}, "listen"),
        (["--lanes.trace-frames", "0"], {}, "lanes.trace_frames"),
        (["--grace-s", "soon"], {}, "grace_s"),
        ([], {"COMPASS_TRACE_LANES__TRACE_BYTES": "-1"}, "lanes.trace_bytes"),
        (["--config", "/nonexistent.toml"], {}, "config"),
        (["--no-such-flag"], {}, "no-such-flag"),
    ],
)
async def test_a_wrong_configuration_names_the_option_and_exits_2(flags, environment, named):
    code, stderr = await run(*flags, **environment)

    assert code == 2
    assert named in stderr
    assert "Traceback" not in stderr


async def test_flags_win_over_the_environment_and_that_over_the_file(serve_process, doors, tmp_path, monkeypatch):
    file = tmp_path / "server.toml"
    file.write_text("heartbeat_s = 1.0\n[lanes]\ntrace_frames = 1\ntrace_bytes = 1\npriority_frames = 1\n")
    monkeypatch.setenv("COMPASS_TRACE_LANES__TRACE_BYTES", "2")
    monkeypatch.setenv("COMPASS_TRACE_LANES__PRIORITY_FRAMES", "2")

    server = await serve_process("--config", str(file), "--lanes.priority-frames", "3")
    limits = (await doors(server.address)[0].GetServerInfo(pb.GetServerInfoRequest())).limits

    assert (limits.heartbeat_ms, limits.trace_lane_frames) == (1_000, 1)
    assert (limits.trace_lane_bytes, limits.priority_lane_frames) == (2, 3)


async def test_health_serves_and_stops_serving(serve_process, dial):
    server = await serve_process()
    stub = health_pb2_grpc.HealthStub(dial(server.address))
    for service in ("", "compass.v1.CompassService", "compass.v1.AgentGateway"):
        answer = await stub.Check(health_pb2.HealthCheckRequest(service=service))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
    watch = stub.Watch(health_pb2.HealthCheckRequest(service=""))
    await watch.read()

    ending = asyncio.create_task(server.terminate())

    assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
    watch.cancel()
    assert await ending == 0


async def test_log_lines_are_json_on_stderr(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")

    code, stderr = await run("--data-dir", str(blocked), "--listen", "127.0.0.1:0")

    assert code == 1
    line = json.loads(stderr.strip().splitlines()[-1])
    assert (line["event"], line["level"]) == ("cannot_serve", "critical")


async def test_an_acknowledged_unary_event_survives_a_kill_right_after_the_reply(serve_process, doors):
    server = await serve_process()
    _, gateway = doors(server.address)
    event = gw.InnerEvent(json=wire.message_start("user", "kept"))
    await gateway.PushEvent(gw.PushEventRequest(session_id="s", event=event))
    await server.kill()

    server = await serve_process()
    compass, _ = doors(server.address)
    assert wire.kinds(await wire.frames_of(compass)) == ["user_message"]
