"""The command line as a process: pipes, terminals, signals, and turns that are still going on."""

import asyncio
import contextlib
import json
import os
import pty
import signal
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import pytest
from google.protobuf.json_format import MessageToDict

import compass
from compass.cli import wait
from compass.cli.outcome import Outcome, OutcomeReader
from compass.v1 import compass_pb2 as pb
from compass.v1 import compass_pb2_grpc
from e2e import wire
from e2e.commands import ROOT, Done, lines_of

COMMAND = (sys.executable, "-m", "compass.cli")


class Cli:
    """Runs `compass-trace` against one server."""

    def __init__(self, address: str) -> None:
        self.environment = {
            **{name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")},
            "COMPASS_SERVER": address,
            "PYTHONPATH": str(ROOT / "client"),
            "PYTHONUNBUFFERED": "",
        }
        self.started: list[asyncio.subprocess.Process] = []

    async def start(self, *arguments: str, **options: Any) -> asyncio.subprocess.Process:
        return await self._spawn(*COMMAND, *arguments, **options)

    async def _spawn(self, *command: str, **options: Any) -> asyncio.subprocess.Process:
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), asyncio.subprocess.PIPE)
        process = await asyncio.create_subprocess_exec(
            *command, env=self.environment, **{"limit": 1 << 26, **pipes, **options}
        )
        self.started.append(process)
        return process

    async def __call__(self, *arguments: str, stdin: bytes = b"") -> Done:
        return await self._end(await self.start(*arguments), stdin)

    async def sh(self, script: str) -> Done:
        """Run a line of shell."""
        return await self._end(await self._spawn("sh", "-c", script))

    async def _end(self, process: asyncio.subprocess.Process, stdin: bytes = b"") -> Done:
        out, err = await process.communicate(stdin)
        return Done(process.returncode, out.decode(), err.decode())


@pytest.fixture
async def cli_of() -> AsyncIterator[Callable[[str], Cli]]:
    """Make command lines for servers: `cli = cli_of(address)`."""
    made: list[Cli] = []

    def make(address: str) -> Cli:
        made.append(Cli(address))
        return made[-1]

    yield make
    for process in [process for cli in made for process in cli.started]:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@pytest.fixture
async def cli(serve, cli_of) -> Cli:
    """The command line with a server of its own."""
    server = await serve(reattach_window_s=0.2)
    return cli_of(server.addresses[0])


async def test_a_push_from_a_pipe_stores_each_line_as_it_comes(cli):
    pushing = await cli.start("push", "s", "-")
    tailing = await cli.start("tail", "s", "--wait", "--json")
    first, *rest = lines_of("pi-ok").splitlines(keepends=True)

    pushing.stdin.write(first + rest[0])
    seen = json.loads(await tailing.stdout.readline())
    pushing.stdin.writelines(rest[1:])
    pushing.stdin.close()
    after, _ = await tailing.communicate()

    assert seen["state"] == "AGENT_SESSION_STATE_STARTING"
    assert json.loads(after.splitlines()[-1])["state"] == "AGENT_SESSION_STATE_STOPPED"
    assert (await pushing.wait(), tailing.returncode) == (0, 0)


async def test_a_push_whose_standard_input_is_closed_says_so_in_one_line(cli):
    done = await cli.sh(f"{sys.executable} -m compass.cli push s <&-")

    assert done.code == 2
    assert "standard input is closed" in done.err
    assert "Traceback" not in done.err


async def test_json_frames_are_the_wire_frames_as_protobuf_writes_them(cli, doors):
    await cli("push", "s", stdin=lines_of("omp-tool"))
    compass, _ = doors(cli.environment["COMPASS_SERVER"])

    tailed = await cli("tail", "s", "--json", "--complete")

    assert tailed.json == [MessageToDict(frame) for frame in await wire.frames_of(compass)]
    assert all(line == json.dumps(json.loads(line), separators=(",", ":")) for line in tailed.out.splitlines())


async def test_no_sessions_are_no_lines_of_json_and_a_header_for_a_person(cli):
    assert (await cli("sessions", "--json")).out == ""
    assert (await cli("sessions")).out.startswith("SESSION")


async def test_ctrl_c_ends_a_tail_quietly_with_130(cli):
    await cli("push", "s", "--no-close", stdin=lines_of("pi-ok"))
    tailing = await cli.start("tail", "s", "--json")
    await tailing.stdout.readline()

    tailing.send_signal(signal.SIGINT)
    _, err = await tailing.communicate()

    assert (tailing.returncode, err) == (130, b"")


async def test_ctrl_c_ends_a_push_that_waits_for_input(cli):
    pushing = await cli.start("push", "s")
    pushing.stdin.write(lines_of("pi-ok").splitlines(keepends=True)[0])
    await cli("tail", "s", "--wait", "--no-follow")

    pushing.send_signal(signal.SIGINT)
    _, err = await pushing.communicate()

    assert (pushing.returncode, err) == (130, b"")


async def test_a_closed_pipe_ends_a_tail_quietly(cli):
    await cli("push", "s", stdin=lines_of("pi-rpc-autocompact") * 30)
    reading, writing = os.pipe()
    tailing = await cli.start("tail", "s", "--json", stdout=writing)
    os.close(writing)
    await asyncio.to_thread(os.read, reading, 1)
    os.close(reading)

    _, err = await tailing.communicate()

    assert (tailing.returncode, err) == (141, b"")


@pytest.mark.parametrize(("no_color", "colored"), [(None, True), ("1", False)])
async def test_color_is_for_terminals_that_want_it(cli, no_color, colored):
    await cli("push", "s", stdin=lines_of("omp-inband"))
    if no_color is not None:
        cli.environment["NO_COLOR"] = no_color
    cli.environment["TERM"] = "xterm-256color"
    ours, theirs = pty.openpty()
    tailing = await cli.start("tail", "s", stdout=theirs)
    os.close(theirs)
    shown = await asyncio.to_thread(_read_all, ours)
    os.close(ours)

    assert await tailing.wait() == 0
    assert "ERROR" in shown
    assert ("\x1b[" in shown) is colored


def _read_all(descriptor: int) -> str:
    chunks = []
    with contextlib.suppress(OSError):  # how a terminal says that its other end is closed
        while chunk := os.read(descriptor, 65_536):
            chunks.append(chunk)
    return b"".join(chunks).decode()


async def test_wait_follows_a_turn_through_its_retries_to_its_end(cli):
    pushing = await cli.start("push", "s")
    *start, end, rest = lines_of("pi-err429").splitlines(keepends=True)
    first_failure = next(number for number, line in enumerate(start) if b"auto_retry_start" in line)
    pushing.stdin.writelines(start[:first_failure])
    await cli("tail", "s", "--wait", "--no-follow")
    waiting = await cli.start("wait", "s")
    pushing.stdin.writelines([*start[first_failure:], end, rest])
    pushing.stdin.close()

    out, err = await waiting.communicate()

    assert (waiting.returncode, err) == (10, b"")
    assert out.startswith(b"failed: 429")


async def test_an_outcome_that_a_retry_takes_back_at_once_is_none(serve, monkeypatch):
    server = await serve()
    has_failed = asyncio.Event()

    class Watched(OutcomeReader):
        def take(self, item: compass.TailItem) -> None:
            super().take(item)
            if self.outcome is Outcome.FAILED:
                has_failed.set()

    monkeypatch.setattr(wait, "OutcomeReader", Watched)
    monkeypatch.setattr(wait, "SETTLE_S", 5.0)
    async with compass.connect(server.addresses[0]) as client, client.publish("s") as publisher:
        await publisher.push({"type": "agent_start"})
        await publisher.push(wire.message_start())
        await publisher.push(wire.message_end("error", errorMessage="529"))
        await publisher.flush()
        waiting = asyncio.create_task(wait.outcome_of(client, "s"))
        await has_failed.wait()
        await publisher.push({"type": "auto_retry_start", "attempt": 1, "maxAttempts": 3, "delayMs": 10})
        await publisher.push(wire.message_start())
        await publisher.push(wire.message_end("stop", "Fine"))
        await publisher.push({"type": "agent_end"})
        await publisher.close()

        reader = await waiting

    assert (reader.outcome, reader.error) == (Outcome.DONE, None)


@pytest.mark.parametrize(("flags", "is_whole"), [((), False), (("--complete",), True)])
async def test_a_tail_that_is_not_read_gets_gaps_unless_it_wants_everything(serve, cli_of, flags, is_whole):
    server = await serve(lanes={"trace_frames": 64})
    reading, writing = os.pipe()
    async with compass.connect(server.addresses[0]) as client:
        async with client.publish("s", wait=True) as publisher:
            await publisher.push(wire.message_start())
            await publisher.flush()
            tailing = await cli_of(server.addresses[0]).start("tail", "s", "--json", *flags, stdout=writing)
            os.close(writing)
            begun = await asyncio.to_thread(os.read, reading, 1)
            for number in range(6_000):
                await publisher.push(wire.delta(f"{number:0300} "))
            await publisher.flush()
        head_seq = (await client.get_session("s")).head_seq
        out = begun.decode() + await asyncio.to_thread(_read_all, reading)
    os.close(reading)

    assert await tailing.wait() == 0
    frames = [json.loads(line) for line in out.splitlines()]
    gaps = [frame["gap"] for frame in frames if "gap" in frame]
    assert (gaps == []) is is_whole
    assert len(frames) - len(gaps) + sum(int(gap["dropped"]) for gap in gaps) == head_seq
    assert frames[-1]["state"] == "AGENT_SESSION_STATE_STOPPED"


async def test_wait_gives_up_after_its_timeout(cli):
    pushing = await cli.start("push", "s")
    pushing.stdin.writelines(lines_of("pi-ok").splitlines(keepends=True)[:3])
    await cli("tail", "s", "--wait", "--no-follow")

    waited = await cli("wait", "s", "--timeout", "0.3")

    assert (waited.code, waited.out) == (124, "")
    assert waited.err == "compass-trace: session s has no outcome after 0.3 s\n"


class _Cuts(compass_pb2_grpc.CompassServiceServicer):
    """A server whose tails end without the sentinel."""

    async def GetSession(self, request, context):  # noqa: N802 - a name of the wire
        return pb.GetSessionResponse(session=pb.SessionInfo(session_id=request.session_id))

    async def TailSession(self, request, context):  # noqa: N802
        frame = pb.AgentSessionFrame(session_id=request.session_id, seq=1, state=pb.AGENT_SESSION_STATE_READY)
        yield pb.TailSessionResponse(frames=[frame], head_seq=1, resume_seq=1)


async def test_a_tail_that_is_cut_has_an_exit_code_of_its_own(cli_of):
    server = grpc.aio.server()
    compass_pb2_grpc.add_CompassServiceServicer_to_server(_Cuts(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()

    done = await cli_of(f"127.0.0.1:{port}")("tail", "s", "--json")
    await server.stop(None)

    assert done.code == 5
    assert len(done.json) == 1
    assert done.err == "compass-trace: the tail of session s was interrupted after seq 1 (NO_SENTINEL)\n"
