"""A process that appends to a log without pause and says what was acknowledged, until it is killed.

Run with the data directory. Prints one line an acknowledged record, its session and its last seq, in one write, so that
a line that was read is a record that was acknowledged.
"""

import asyncio
import os
import random
import sys
from pathlib import Path

from log_samples import record

from compass_service.log import Retention, SqliteLog


async def write_session(log: SqliteLog, session_id: str) -> None:
    stored = await log.load(session_id)
    head = stored.head_seq if stored else 0
    rng = random.Random()
    while True:
        lanes = "".join(rng.choices("tP", (9, 1), k=rng.randrange(1, 40)))
        await log.append(record(head + 1, lanes, session_id=session_id, size=100))
        head += len(lanes)
        os.write(1, f"{session_id} {head}\n".encode())


async def main(data_dir: Path) -> None:
    log = SqliteLog.open(data_dir, retention=Retention(), reserve_bytes=64 * 1024)
    await asyncio.gather(*(write_session(log, f"s{n}") for n in range(8)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
