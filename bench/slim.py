"""How much of a cumulative answer leaves a producer, and what slimming costs. Prints JSON."""

import json
import sys
import time
from pathlib import Path

from compass.slimming import slim

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from client.cumulative import answer

NUM_WORDS = 2_000
NUM_SMALL = 100_000
SMALL = '{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"word0 "}}'


def main() -> None:
    lines = list(answer(NUM_WORDS))
    num_bytes = sum(map(len, lines))
    began = time.perf_counter()
    sent_bytes = sum(slim(line).num_bytes for line in lines)
    took_s = time.perf_counter() - began
    began = time.perf_counter()
    for _ in range(NUM_SMALL):
        slim(SMALL)
    small_s = time.perf_counter() - began
    report = {
        "bench": "slim",
        "words": NUM_WORDS,
        "json_bytes": num_bytes,
        "sent_bytes": sent_bytes,
        "mb_per_s": round(num_bytes / took_s / 1e6),
        "us_per_cumulative_event": round(took_s / len(lines) * 1e6, 1),
        "us_per_small_event": round(small_s / NUM_SMALL * 1e6, 2),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
