"""Slimming: how much of a cumulative answer, as an agent writes it in rpc mode, leaves the producer, and its cost."""

import asyncio
import contextlib
import json
import sys
import time

from harness import NUM_RUNS, ROOT, wire
from harness.processes import apart, serving
from harness.report import Report, Target, main, medians

import compass
from compass.slimming import slim

sys.path.append(str(ROOT / "tests"))
from client.cumulative import answer

TARGET = Target("bytes", at_most=1_000_000)
NUM_SMALL = 100_000


class Meter:
    """Stands between client and server and counts the bytes that leave the client, framing included."""

    def __init__(self, address: str) -> None:
        self._host, _, self._port = address.rpartition(":")
        self.num_bytes = 0

    async def serve(self) -> asyncio.Server:
        """Listen on a free port."""
        return await asyncio.start_server(self._connect, "127.0.0.1", 0)

    async def _connect(self, client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter) -> None:
        server_in, server_out = await asyncio.open_connection(self._host, int(self._port))
        # grpc keeps a connection until its channel is collected, so that only the end of the loop ends this.
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(self._copy(client_in, server_out, counts=True), self._copy(server_in, client_out))

    async def _copy(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, counts: bool = False) -> None:
        while data := await source.read(65_536):
            self.num_bytes += len(data) if counts else 0
            sink.write(data)
            await sink.drain()
        sink.close()


async def publish(address: str, session_id: str, lines: list[str]) -> dict[str, float]:
    """Publish an answer through the meter until it is durable, and check that it arrived whole."""
    meter = Meter(address)
    async with await meter.serve() as listening, contextlib.AsyncExitStack() as stack:
        host, port = listening.sockets[0].getsockname()
        client = await stack.enter_async_context(compass.connect(f"{host}:{port}"))
        async with client.publish(session_id, wait=True) as publisher:
            for line in lines:
                await publisher.push(line)
        sent_bytes = meter.num_bytes
        texts = [row.text async for row in client.transcript(session_id)]
    whole = json.loads(lines[-1])["messages"][0]["content"][0]["text"]
    assert texts == [whole], "the answer must arrive whole"
    return {"sent": sent_bytes, "as the agent writes it": sum(map(len, lines))}


def cost_us(lines: list[str]) -> float:
    """Return what slimming one of the lines takes."""
    began = time.perf_counter()
    for line in lines:
        slim(line)
    return (time.perf_counter() - began) / len(lines) * 1e6


def measure(*, quick: bool) -> Report:
    """Measure what leaves the client's connection, and in this process what slimming costs."""
    lines = list(answer(200 if quick else 2_000))
    small = [wire.delta("word0 ")] * (NUM_SMALL // (100 if quick else 1))
    with serving() as server, apart() as client:
        runs = [client.run(publish, server.address, f"slim-{run}", lines) for run in range(NUM_RUNS)]
    figures = medians(runs)
    value = figures.pop("sent")
    return Report(
        f"what leaves the producer of a cumulative stream of {len(lines):,} events",
        TARGET,
        value,
        [run["sent"] for run in runs],
        figures,
        {"sent to written": value / figures["as the agent writes it"]},
        {"us to slim a cumulative event": cost_us(lines), "us to slim a small event": cost_us(small)},
    )


if __name__ == "__main__":
    main(measure)
