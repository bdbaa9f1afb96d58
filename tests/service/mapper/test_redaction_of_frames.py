"""No credential that an agent reports as failure or tool text leaves the mapper, in a frame or in its saved state."""

import json

import msgspec
import pytest
from mapping import (
    AGENT_END,
    AGENT_START,
    Traced,
    aborted,
    delta,
    failed,
    only,
    output,
    start,
    tool_end,
    tool_start,
    tool_update,
    update,
)

CANARIES = {
    "key": "sk-canary1234567890abcdef",
    "bearer": "Bearer canary1234567890abcdefghij",
    "url": "https://api.example/v1?key=canary1234567890abcdef",
    "json": '{"api_key": "canary1234567890abcdef"}',
    "header": "Authorization: Basic Y2FuYXJ5OmNhbmFyeTEyMzQ=",
    "login": "postgres://admin:canary1234567890@db.example/main",
}
SECRETS = ("canary1234567890", "Y2FuYXJ5OmNhbmFyeTEyMzQ")


def places(said):
    """Every place where an agent's failure or tool text is read, by name: the events that put it there."""
    edits = [{"oldText": said, "newText": said}]
    tasks = {"phases": [{"tasks": [{"content": said, "status": "pending"}]}]}
    return {
        "errorMessage": [failed(f"429 from gpt-5: {said}")],
        "errorMessage object": [failed({"error": {"message": said}})],
        "stream error": [update("error", reason="error", error={"errorMessage": said})],
        "abort": [aborted(said)],
        "finalError": [{"type": "auto_retry_end", "success": False, "finalError": said}],
        "compaction": [AGENT_START, {"type": "compaction_end", "errorMessage": said}],
        "compaction and its turn": [AGENT_START, {"type": "compaction_end", "errorMessage": said}, AGENT_END],
        "compaction reason": [{"type": "compaction_start", "reason": said}],
        "tool title": [tool_start(_i=said)],
        "tool name": [tool_start(name=said)],
        "tool call id": [tool_start(said), tool_update(output("half"), said), tool_end(output("ok"), said)],
        "provider and model": [failed("no", provider=said, model=said), {"type": "auto_retry_end", "finalError": "no"}],
        "type": [{"type": said}, {"type": "message_update", "assistantMessageEvent": {"type": said}}],
        "tool args": [tool_start(name="edit", path=said, edits=edits)],
        "tool args as diffs": [tool_start(name="edit", path="a.py", edits=edits), tool_end("ok")],
        "tool output so far": [tool_start(), tool_update(output(said))],
        "tool result": [tool_end(output(said))],
        "tool result as JSON": [tool_end({"nested": {"said": said}})],
        "tool failure": [tool_end({"errorMessage": said}, is_error=True)],
        "diff": [tool_end(output("ok", path="a.py", oldText=said, newText=said))],
        "plan": [tool_end(output("ok", **tasks), name="todo")],
        "reminder": [{"type": "todo_reminder", "todos": [{"content": said}]}],
        "notice": [{"type": "notice", "message": said}],
        "fallback": [{"type": "retry_fallback_applied", "from": "a", "to": "b", "reason": said}],
        "dialog": [{"type": "extension_ui_request", "method": "input", "title": said}],
    }


@pytest.mark.parametrize("place", places(""))
@pytest.mark.parametrize("canary", CANARIES)
def test_no_canary_survives(canary, place):
    traced = Traced()
    traced.push(*places(CANARIES[canary])[place])
    held = [frame.SerializeToString() for frame in traced.frames] + [msgspec.msgpack.encode(traced.state)]
    assert [secret for secret in SECRETS for data in held if secret.encode() in data] == []


def test_a_type_that_is_cut_is_not_cut_through_a_secret():
    traced = Traced()
    traced.push({"type": "look at postgres://admin:canary1234567890canary1234567890canary1234567890@db.example/main"})
    assert "canary1234567890" not in str(traced.state.counts.unmapped)


@pytest.mark.parametrize("canary", CANARIES)
def test_no_canary_of_a_process_survives(canary):
    traced = Traced()
    traced.take(traced.mapper.exit(code=1, signal="", last_stderr=CANARIES[canary], now_ms=1))
    assert not any(secret in str(traced.frames) for secret in SECRETS)


def test_what_is_no_secret_survives():
    error = only(
        Traced().push(failed("429 from gpt-5-mini: Bearer canary1234567890abcdefghij is over its limit")),
        "session_error",
    )
    assert error.message.startswith("429 from gpt-5-mini: ")
    assert error.message.endswith("is over its limit")


@pytest.mark.parametrize("canary", CANARIES)
def test_a_secret_that_ends_behind_a_cut_is_recognised(canary):
    for length in range(3_930, 4_000, 3):
        said = "x" * length + " " + CANARIES[canary] + " " + "y" * 20_000
        shown = only(Traced().push(tool_end(output(said))), "tool_call_update").output
        assert not any(secret[:6] in shown for secret in SECRETS), shown[-80:]


@pytest.mark.parametrize("length", [3_980, 3_995, 3_999, 4_000, 8_000, 12_288])
def test_a_secret_across_a_cut_is_not_half_shown(length):
    said = "x" * (length - 10) + " " + CANARIES["key"] * 2 + " " + "y" * 20_000
    for events in (
        [tool_end(output(said))],
        [failed(said)],
        [tool_end(output("ok", path="a.py", oldText=said * 40, newText=said))],
    ):
        assert "canary" not in str(Traced().push(*events))


def test_text_that_shrinks_when_it_is_redacted_is_read_on():
    key = "-----BEGIN PRIVATE KEY-----\n" + "A" * 60_000 + "\n-----END PRIVATE KEY-----"
    shown = only(Traced().push(tool_end(output(f"{key}\nand then the end"))), "tool_call_update").output
    assert shown.endswith("and then the end")


def test_an_answer_is_passed_on_as_it_is():
    traced = Traced()
    traced.push(start(), delta(json.dumps(CANARIES)))
    assert only(traced.frames, "assistant_text").text == json.dumps(CANARIES)
