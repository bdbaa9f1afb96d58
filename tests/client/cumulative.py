"""A long answer as an agent in rpc mode writes it: every update repeats the whole message so far, twice."""

import json
from collections.abc import Iterator

_COST = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}
_USAGE = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0, "cost": _COST}


def answer(num_words: int) -> Iterator[str]:
    """Yield the lines of one turn, in the shape of the recording pi-rpc-autocompact."""
    yield _line({"type": "agent_start"})
    yield _line({"type": "turn_start"})
    yield _line({"type": "message_start", "message": _message("")})
    yield _line({"type": "message_update", **_update("text_start", "")})
    text = ""
    for number in range(num_words):
        word = f"word{number} "
        text += word
        yield _line({"type": "message_update", **_update("text_delta", text, delta=word)})
    yield _line({"type": "message_update", **_update("text_end", text, content=text)})
    yield _line({"type": "message_end", "message": _message(text)})
    yield _line({"type": "turn_end", "message": _message(text), "toolResults": []})
    yield _line({"type": "agent_end", "messages": [_message(text)]})


def _update(kind: str, text: str, **more: object) -> dict[str, object]:
    event = {"type": kind, "contentIndex": 0, **more, "partial": _message(text)}
    return {"assistantMessageEvent": event, "message": _message(text)}


def _message(text: str) -> dict[str, object]:
    return {
        "role": "assistant",
        "content": [{"type": "text", "text": text}] if text else [],
        "api": "openai-completions",
        "provider": "fake",
        "model": "med",
        "usage": _USAGE,
        "stopReason": "stop",
        "timestamp": 1796073394318,
        "responseId": "chatcmpl-1",
        "responseModel": "m",
    }


def _line(event: dict[str, object]) -> str:
    return json.dumps(event, separators=(",", ":"))
