"""How fast the embedded session log is, beside plain sqlite3 with one row a frame in the same run. Prints JSON.

    python bench/log.py [--frames N] [--dir DIR]

DIR must be on the disk in question: on tmpfs an fsync costs nothing.
"""

import argparse
import asyncio
import json
import os
import shutil
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import uvloop

from compass_service.frames import number
from compass_service.log import Retention, SqliteLog
from compass_service.log.protocol import Record

BODY = os.urandom(190)
CHECKPOINT = os.urandom(600)
RECORD_FRAMES = (1, 32, 256)
IN_FLIGHT = {1: 256, 32: 8, 256: 2}
"""Appends awaited at a time: what a producer with that many frames a message has unacknowledged."""


def records(session_id: str, *, num_frames: int, per_record: int) -> Iterator[Record]:
    for first in range(1, num_frames + 1, per_record):
        frames = tuple(number(BODY, seq) for seq in range(first, first + per_record))
        yield Record(session_id, first, bytes(per_record), frames, CHECKPOINT, 1_000 + first)


async def append_all(log: SqliteLog, made: list[Record], *, in_flight: int) -> float:
    began = time.perf_counter()
    for at in range(0, len(made), in_flight):
        await asyncio.gather(*map(log.append, made[at : at + in_flight]))
    return time.perf_counter() - began


async def read_all(log: SqliteLog, session_id: str) -> tuple[int, float]:
    began = time.perf_counter()
    num_frames, next_seq = 0, 1
    while (page := await log.read(session_id, next_seq, end_seq=1 << 60, max_bytes=1 << 20)).records:
        num_frames += sum(len(record.frames) for record in page.records)
        next_seq = page.next_seq
    return num_frames, time.perf_counter() - began


def plain_append(path: Path, made: list[Record]) -> float:
    """What one would write first: a row a frame, a commit a record."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS frames (session_id, seq, lane, body, PRIMARY KEY (session_id, seq))")
    began = time.perf_counter()
    for record in made:
        rows = [(record.session_id, record.first_seq + at, 0, frame) for at, frame in enumerate(record.frames)]
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO frames VALUES (?, ?, ?, ?)", rows)
        connection.execute("COMMIT")
    took_s = time.perf_counter() - began
    connection.close()
    return took_s


def plain_read(path: Path, session_id: str) -> tuple[int, float]:
    connection = sqlite3.connect(path)
    began = time.perf_counter()
    found = connection.execute("SELECT body FROM frames WHERE session_id = ? ORDER BY seq", (session_id,)).fetchall()
    took_s = time.perf_counter() - began
    connection.close()
    return len(found), took_s


async def measure_speed(folder: Path, *, num_frames: int, per_record: int) -> dict[str, object]:
    made = list(records("s", num_frames=num_frames, per_record=per_record))
    few = made[:10_000]  # a commit a frame is bound by fsync on the plain side: more of them would say no more
    log = SqliteLog.open(folder / f"log-{per_record}", retention=Retention())
    append_s = await append_all(log, made, in_flight=IN_FLIGHT[per_record])
    del made  # a server does not hold them either, and the garbage collector would look at all of them
    num_read, read_s = await read_all(log, "s")
    await log.close()
    plain = folder / f"plain-{per_record}.db"
    plain_s = plain_append(plain, few)
    num_plain_read, plain_read_s = plain_read(plain, "s")
    append_rate = num_read / append_s
    plain_rate = len(few) * per_record / plain_s
    return {
        "frames_a_record": per_record,
        "appends_in_flight": IN_FLIGHT[per_record],
        "append_frames_per_s": round(append_rate),
        "plain_append_frames_per_s": round(plain_rate),
        "append_ratio": round(append_rate / plain_rate, 1),
        "catch_up_frames_per_s": round(num_read / read_s),
        "plain_read_frames_per_s": round(num_plain_read / plain_read_s),
    }


async def measure_commit(folder: Path, *, checkpoint_in_commit: bool) -> list[float]:
    """Latencies in ms of one append of 32 frames after another, 63 MB in all, sorted."""
    log = SqliteLog.open(folder, retention=Retention())
    if checkpoint_in_commit:
        # SQLite's default, which takes the place of our own hook and with it of our checkpointer.
        log._store._connection.wal_autocheckpoint(1_000)  # noqa: SLF001
    taken_ms = []
    for record in records("s", num_frames=320_000, per_record=32):
        began = time.perf_counter()
        await log.append(record)
        taken_ms.append((time.perf_counter() - began) * 1000)
    await log.close()
    return sorted(taken_ms)


async def compare_commits(folder: Path) -> dict[str, dict[str, float]]:
    """Medians of three runs of each kind, taken in turns so that a noisy neighbour disturbs both."""
    runs: dict[str, list[list[float]]] = {"off_the_commit_path": [], "in_the_commit": []}
    for turn in range(3):
        for name, latencies in runs.items():
            in_commit = name == "in_the_commit"
            latencies.append(await measure_commit(folder / f"{name}-{turn}", checkpoint_in_commit=in_commit))
    cuts = {"p50_ms": 0.5, "p99_ms": 0.99, "p999_ms": 0.999}
    return {
        name: {
            cut: round(statistics.median(taken[int(len(taken) * share)] for taken in latencies), 3)
            for cut, share in cuts.items()
        }
        for name, latencies in runs.items()
    }


async def measure_trim(folder: Path) -> dict[str, float]:
    """Latency of appends while retention takes 100,000 frames that were written one at a time."""
    log = SqliteLog.open(folder / "trim", retention=Retention(age_ms=1_000_000))
    old = list(records("old", num_frames=100_000, per_record=1))
    await append_all(log, old, in_flight=256)
    trim = asyncio.create_task(log.trim(now_unix_ms=1 << 40))
    began, taken_ms = time.perf_counter(), []
    for record in records("new", num_frames=1 << 30, per_record=1):
        one = time.perf_counter()
        await log.append(record._replace(at_unix_ms=1 << 40))
        taken_ms.append((time.perf_counter() - one) * 1000)
        if trim.done():
            break
    trim_s = time.perf_counter() - began
    await log.close()
    return {"trim_s": round(trim_s, 3), "append_max_ms": round(max(taken_ms), 3), "appends": len(taken_ms)}


async def main(num_frames: int, folder: Path) -> dict[str, object]:
    return {
        "bench": "log",
        "frames": num_frames,
        "frame_bytes": len(number(BODY, num_frames)),
        "speed": [await measure_speed(folder, num_frames=num_frames, per_record=each) for each in RECORD_FRAMES],
        "commit_with_checkpoints": await compare_commits(folder),
        "append_during_trim": await measure_trim(folder),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=200_000)
    parser.add_argument("--dir", type=Path, default=None, help="where to make the temporary data directory")
    arguments = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="compass-bench-", dir=arguments.dir))
    try:
        print(json.dumps(uvloop.run(main(arguments.frames, work)), indent=2))
    finally:
        shutil.rmtree(work)
