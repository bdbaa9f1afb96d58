"""How many inner events the mapper maps in a second, by kind, and what the typed decoder gains over json.loads.

Prints one JSON object. Every number is the median of `--rounds` rounds; rates of one run may be compared, those of two
machines may not.
"""

import argparse
import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import structlog

from compass_service.mapper import Mapper
from compass_service.mapper.decode import decode

START = '{"type":"message_start","message":{"role":"assistant","content":[]}}'
TOOL_START = '{"type":"tool_execution_start","toolCallId":"c1","toolName":"bash","args":{"_i":"List files"}}'
WORDS = "word0 word1 word2 word3 word4 word5 word6 word7 word8 word9 " * 170  # about 10 KB, a long answer


def update(kind: str, **fields: Any) -> str:
    return json.dumps({"type": "message_update", "assistantMessageEvent": {"type": kind, "contentIndex": 0, **fields}})


def cumulative(text: str) -> str:
    """Return a delta as an agent in rpc mode writes it: with the whole message so far, twice."""
    message = {"role": "assistant", "content": [{"type": "text", "text": text}]}
    event = json.loads(update("text_delta", delta="word ", partial=message))
    return json.dumps({**event, "message": message})


def tool_update(output: str) -> str:
    partial = {"content": [{"type": "text", "text": output}]}
    return json.dumps({"type": "tool_execution_update", "toolCallId": "c1", "toolName": "b", "partialResult": partial})


def message_end(text: str) -> str:
    usage = {"input": 10, "output": 5, "cost": {"total": 0.01}}
    message = {"role": "assistant", "content": [{"type": "text", "text": text}], "stopReason": "stop", "usage": usage}
    return json.dumps({"type": "message_end", "message": message})


# What one round maps. A kind of several events counts each of them.
KINDS: dict[str, list[str]] = {
    "text_delta": [update("text_delta", delta="Hello ")],
    "thinking_delta": [update("thinking_delta", delta="Hello ")],
    "text_delta_cumulative_20kb": [cumulative(WORDS)],
    "text_delta_2kb": [update("text_delta", delta=WORDS[:2_048])],
    "text_delta_lone_surrogate": [update("text_delta", delta="a\ud83db")],
    "toolcall_delta": [update("toolcall_delta", delta='{"path"')],
    "message": [START, update("text_delta", delta="Hello "), message_end("Hello ")],
    "tool_call": [
        TOOL_START,
        tool_update("hi"),
        json.dumps({"type": "tool_execution_end", "toolCallId": "c1", "toolName": "bash", "result": {"text": "hi"}}),
    ],
    "tool_update_unchanged_4kb": [tool_update(WORDS[:4_000])],
    "unmapped": ['{"type":"goal_updated","goal":{"text":"go on"}}'],
}


def events_per_s(events: Iterable[str], num_events: int) -> float:
    mapper = Mapper("bench")
    mapper.map(START, now_ms=1)
    mapper.map(TOOL_START, now_ms=1)
    began = time.perf_counter()
    for number, event in enumerate(itertools.islice(itertools.cycle(events), num_events)):
        mapper.map(event, now_ms=1_796_000_000_000 + number // 64)
    return num_events / (time.perf_counter() - began)


def calls_per_s(call: Callable[[str], object], text: str, num_calls: int) -> float:
    began = time.perf_counter()
    for _ in range(num_calls):
        call(text)
    return num_calls / (time.perf_counter() - began)


def gain(text: str, num_calls: int) -> float:
    return calls_per_s(decode, text, num_calls) / calls_per_s(json.loads, text, num_calls)


def measure(num_events: int, rounds: int) -> dict[str, Any]:
    rates = {
        kind: round(statistics.median(events_per_s(events, num_events) for _ in range(rounds)))
        for kind, events in KINDS.items()
    }
    gains = {
        kind: round(statistics.median(gain(KINDS[kind][0], num_events // 4) for _ in range(rounds)), 1)
        for kind in ("text_delta", "text_delta_cumulative_20kb", "message")
    }
    return {
        "events_per_s": rates,
        "us_per_event": {kind: round(1e6 / rate, 2) for kind, rate in rates.items()},
        "decoder_speed_over_json_loads": gains,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=20_000, help="events a round")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # stdout is for the numbers
    print(json.dumps(measure(options.events, options.rounds), indent=2))


if __name__ == "__main__":
    main()
