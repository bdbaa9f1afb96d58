"""What this is for, in under a minute: recorded runs of real agents played as live sessions, with a pane that stalls.

Starts a server of its own, plays one run that succeeds with a tool, one that fails and one that is aborted, and tails
each in this terminal. Beside it a second pane opens the same session and then reads nothing until the session is over,
while the agent thinks far more than that pane's trace lane holds. Exits 1 if that pane missed a failure, an abort, an
end, or a frame that no gap accounts for.
"""

import asyncio
import contextlib
import json
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import compass
from compass.v1 import compass_pb2 as pb

RECORDINGS = Path(__file__).parents[1] / "tests" / "data" / "recordings"
SESSIONS = {"succeeds": "omp-tool", "fails": "omp-inband", "is-aborted": "pi-rpc-abort"}
LINE_S = 0.1
THOUGHTS = 20_000


class Account(NamedTuple):
    """What the stalled pane found when it read again."""

    frames: list[compass.Frame]
    gaps: list[compass.Gap]

    @property
    def num_missing(self) -> int:
        return sum(gap.dropped for gap in self.gaps)

    def summary(self) -> str:
        """Say what came through and what did not."""
        gaps = "1 gap" if len(self.gaps) == 1 else f"{len(self.gaps)} gaps"
        got = ", ".join(self.priority())
        return f"{len(self.frames):,} frames read, {self.num_missing:,} told as missing in {gaps}, still got: {got}"

    def priority(self) -> list[str]:
        """Name the endings that came through, in order."""
        kinds = {pb.SESSION_ERROR_KIND_ERROR: "error", pb.SESSION_ERROR_KIND_ABORTED: "abort"}
        named = []
        for frame in self.frames:
            if frame.event.HasField("session_error"):
                named.append(kinds[frame.event.session_error.kind])
            if frame.state == pb.AGENT_SESSION_STATE_STOPPED:
                named.append("end")
        return named


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[str]:
    """Run a server on a free port for as long as the block runs."""
    with tempfile.TemporaryDirectory() as folder:
        flags = ("--listen", "127.0.0.1:0", "--data-dir", folder, "--log-level", "warning", "--log-format", "console")
        command = (sys.executable, "-m", "compass_service", *flags)
        server = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        if not (ready := await server.stdout.readline()):
            sys.exit("the server did not start")
        try:
            yield json.loads(ready)["listen"][0]
        finally:
            server.send_signal(signal.SIGTERM)
            await server.wait()


def with_thoughts(lines: Sequence[str]) -> Iterator[str]:
    """Yield a recording, with an agent that reasons at length before its first answer."""
    answer = next(number for number, line in enumerate(lines) if opens_answer(line))
    yield from lines[: answer + 1]
    for number in range(THOUGHTS):
        delta = f"Thought {number}: " + "on the one hand, on the other hand, " * 4
        event = {"type": "thinking_delta", "contentIndex": 0, "delta": delta}
        yield json.dumps({"type": "message_update", "assistantMessageEvent": event})
    yield from lines[answer + 1 :]


def opens_answer(line: str) -> bool:
    """Tell whether an inner event begins an assistant message."""
    event = json.loads(line)
    return bool(event["type"] == "message_start" and event["message"]["role"] == "assistant")


async def play(client: compass.Client, session: str, recording: str) -> Account:
    """Play a recording at a pace to watch, beside a pane that stalls. Returns what that pane found afterwards."""
    lines = (RECORDINGS / f"{recording}.jsonl").read_bytes().decode().rstrip("\n").split("\n")
    recorded = set(lines)
    async with client.tail(session, delivery="live") as stalled:
        async with client.publish(session, agent_name=recording, wait=True) as publisher:
            await publisher.push(lines[0])
            await publisher.flush()
            first = await anext(stalled)  # it is open, and reads no more
            for event in with_thoughts(lines[1:]):
                await publisher.push(event)
                if event in recorded:
                    await asyncio.sleep(LINE_S)
        items = [first, *[item async for item in stalled]]
    gaps = [item for item in items if isinstance(item, compass.Gap)]
    return Account([item for item in items if not isinstance(item, compass.Gap)], gaps)


async def show(address: str, client: compass.Client, session: str, recording: str) -> bool:
    """Play one session and tail it in the terminal. Returns whether the stalled pane missed nothing that matters."""
    print(f"\n━━ {session}: {recording} ━━\n", flush=True)
    tailing = (sys.executable, "-m", "compass.cli", "--server", address, "tail", session, "--wait", "--complete")
    tail = await asyncio.create_subprocess_exec(*tailing)
    account = await play(client, session, recording)
    was_shown = await tail.wait() == 0

    head_seq = (await client.get_session(session)).head_seq
    expected = {"succeeds": ["end"], "fails": ["error", "end"], "is-aborted": ["abort", "end"]}[session]
    is_whole = len(account.frames) + account.num_missing == head_seq
    print(f"\n   the stalled pane: {account.summary()}; the log has {head_seq:,} frames", flush=True)
    return was_shown and is_whole and bool(account.gaps) and account.priority() == expected


async def main() -> int:
    async with serving() as address, compass.connect(address) as client:
        results = [await show(address, client, session, recording) for session, recording in SESSIONS.items()]
    print("\nNothing that matters was missed." if all(results) else "\nSomething was missed.")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
