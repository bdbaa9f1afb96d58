"""The readable rendering of a tail."""

import io
import re

import pytest

from compass.cli.render import FrameRenderer
from compass.cli.screen import Screen
from compass.gap import Gap
from compass.v1 import compass_pb2 as pb
from compass.v1 import failure_pb2


def rendered(*items: pb.AgentSessionFrame | Gap, a_batch: int = 100) -> str:
    out = io.StringIO()
    renderer = FrameRenderer(Screen(out))
    for start in range(0, len(items), a_batch):
        renderer.render(items[start : start + a_batch])
    renderer.close()
    return out.getvalue()


def frame(*, state: int = 0, **event: object) -> pb.AgentSessionFrame:
    return pb.AgentSessionFrame(event=pb.SessionEvent(**event) if event else None, state=state)


def text(text: str, message_id: str = "m1") -> pb.AgentSessionFrame:
    return frame(assistant_text=pb.SessionAssistantText(text=text, message_id=message_id))


def failure(**fields: object) -> pb.AgentSessionFrame:
    return frame(session_error=pb.SessionError(kind=pb.SESSION_ERROR_KIND_ERROR, **fields))


@pytest.mark.parametrize("a_batch", [1, 2, 100])
def test_text_streams_on_one_line_however_it_comes_in_batches(a_batch):
    user = frame(user_message=pb.SessionUserMessage(text="Say hi", message_id="u1"))

    shown = rendered(user, text("Hel"), text("lo"), text("again", "m2"), a_batch=a_batch)

    assert shown == "user > Say hi\nagent > Hello\nagent > again\n"


def test_a_failure_says_what_where_and_what_to_do():
    shown = rendered(
        failure(
            message="Too fast.\nSlow down.",
            status=429,
            category=failure_pb2.FAILURE_CATEGORY_RATE_LIMITED,
            provider="openai",
            model="gpt",
            retry_after_ms=20_000,
        )
    )

    assert shown == (
        "✗ ERROR  RATE_LIMITED · status 429 · openai/gpt · retry after 20 s\n"
        "  Too fast.\n"
        "  Slow down.\n"
        "  → Wait and try again\n"
    )


def test_a_failure_of_a_category_from_the_future_is_shown_without_advice():
    assert rendered(failure(category=99)) == "✗ ERROR  99\n  (the agent gave no message)\n"


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        (pb.SESSION_ABORT_ORIGIN_UNSPECIFIED, "aborted, origin unknown"),
        (pb.SESSION_ABORT_ORIGIN_USER, "aborted by the user"),
        (pb.SESSION_ABORT_ORIGIN_WATCHDOG, "aborted by a watchdog"),
        (99, "aborted, origin unknown"),
    ],
)
def test_an_abort_names_its_origin_and_is_no_error(origin, expected):
    shown = rendered(frame(session_error=pb.SessionError(kind=pb.SESSION_ERROR_KIND_ABORTED, abort_origin=origin)))

    assert shown == f"■ {expected}\n"
    assert "error" not in shown.lower()


def test_a_cut_message_is_marked_incomplete_on_a_line_of_its_own():
    end = pb.SessionMessageEnd(
        message_id="m1",
        outcome=pb.SESSION_MESSAGE_OUTCOME_INCOMPLETE,
        stop_reason=pb.SESSION_STOP_REASON_DISCONNECTED,
    )

    assert rendered(text("half"), frame(message_end=end)) == (
        "agent > half\n⚠ incomplete: cut off, the agent is gone\n"
    )


def test_gaps_say_how_many_where_and_why():
    lag = Gap(4, 16, 13, pb.SESSION_GAP_REASON_SUBSCRIBER_LAG)
    overflow = Gap(0, 0, 1, pb.SESSION_GAP_REASON_PRODUCER_OVERFLOW, seq=20)

    shown = rendered(text("a"), lag, text("b"), overflow.to_frame("s"))

    assert "13 frames missing (seq 4 to 16): this reader was too slow" in shown
    assert "1 event of the agent missing: the agent had to drop them" in shown


def test_a_tool_call_is_shown_with_its_end_output_and_diffs():
    call = pb.SessionToolCall(tool_call_id="t1", title="Edit", status=pb.AGENT_TOOL_CALL_STATUS_IN_PROGRESS)
    diffs = [
        pb.SessionFileDiff(path="a.py", old_text="x\n", new_text="y\nz\n"),
        pb.SessionFileDiff(path="new.py", new_text="1\n"),
    ]
    update = pb.SessionToolCallUpdate(
        tool_call_id="t1",
        status=pb.AGENT_TOOL_CALL_STATUS_FAILED,
        output="\n".join(f"line {number}" for number in range(20)),
        diffs=diffs,
    )

    shown = rendered(frame(tool_call=call), frame(tool_call_update=update)).splitlines()

    assert shown[:3] == ["  ▸ Edit", "  ✗ failed: Edit", "    line 0"]
    assert shown[-3:] == ["    … 8 more lines", "    ± a.py (-1 +2 lines)", "    ± new.py (new, 1 line)"]


def test_long_reasoning_is_folded_to_one_line():
    thoughts = [frame(thinking=pb.SessionThinking(text="hm \n\n", message_id="m1")) for _ in range(200)]

    shown = rendered(*thoughts, text("Done"), a_batch=7)

    thinking, answer = shown.splitlines()
    assert thinking.startswith("thinking hm hm hm")
    assert re.search(r"… \d+ more characters$", thinking)
    assert len(thinking) < 300
    assert answer == "agent > Done"


def test_control_characters_of_an_agent_never_reach_the_terminal():
    evil = "\x1b]0;owned\x07\x1b[2J\u202e"
    call = pb.SessionToolCall(tool_call_id="t1", title=evil)
    update = pb.SessionToolCallUpdate(tool_call_id="t1", status=pb.AGENT_TOOL_CALL_STATUS_COMPLETED, output=evil)
    injection = pb.SessionInjection(op_kind=pb.SESSION_INJECTION_KIND_STEER, from_handle=evil)
    activity = pb.SessionActivity(phase=pb.SESSION_PHASE_AWAITING_INPUT, detail=evil)

    shown = rendered(
        text(evil),
        frame(user_message=pb.SessionUserMessage(text=evil, message_id="u1")),
        frame(thinking=pb.SessionThinking(text=evil, message_id="m1")),
        frame(tool_call=call),
        frame(tool_call_update=update),
        frame(notice=pb.SessionNotice(text=evil, link=evil)),
        frame(plan=pb.SessionPlan(entries=[pb.AgentPlanEntry(content=evil)])),
        failure(message=evil, provider=evil, model=evil, failure=failure_pb2.Failure(code="E", problem=evil)),
        frame(session_injection=injection),
        frame(activity=activity),
        frame(prompt=pb.SessionPrompt(prompt_id=evil, text=evil)),
        frame(run_event={"run_id": evil, "node_failed": {"node_id": evil, "failure": {"problem": evil}}}),
    )

    assert shown.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (frame(state=pb.AGENT_SESSION_STATE_DISCONNECTED), "── disconnected ──"),
        (frame(state=99), "── unknown ──"),
        (frame(plan=pb.SessionPlan()), "plan cleared"),
        (
            frame(
                activity=pb.SessionActivity(
                    phase=pb.SESSION_PHASE_RETRYING,
                    attempt=2,
                    max_attempts=3,
                    delay_ms=4_000,
                    supersedes_event_id="e1",
                )
            ),
            "↻ retry 2 of 3 in 4 s; it takes back the failure above",
        ),
        (
            frame(activity=pb.SessionActivity(phase=pb.SESSION_PHASE_COMPACTING, detail="threshold")),
            "… compacting its context (threshold)",
        ),
        (
            frame(activity=pb.SessionActivity(phase=pb.SESSION_PHASE_THINKING, stalled=True)),
            "… nothing has come for a while: thinking",
        ),
        (
            frame(notice=pb.SessionNotice(text="moved", link="https://example.org")),
            "note: moved (https://example.org)",
        ),
        (
            frame(prompt=pb.SessionPrompt(prompt_id="p1", state=pb.SESSION_PROMPT_STATE_QUEUED, text="Go")),
            "✉ prompt p1 queued: Go",
        ),
        (frame(run_event={"run_id": "r1", "run_started": {"workflow": "w"}}), "run r1: run started"),
        (
            frame(run_event={"run_id": "r1", "node_failed": {"node_id": "n1", "failure": {"problem": "no disk"}}}),
            "run r1: node failed · n1 · no disk",
        ),
    ],
)
def test_everything_else_is_one_line(item, expected):
    assert rendered(item) == f"{expected}\n"


def test_phases_that_the_text_shows_are_not_told_twice():
    responding = frame(activity=pb.SessionActivity(phase=pb.SESSION_PHASE_RESPONDING))
    responding.seq = 3

    assert rendered(responding) == ""


def test_a_late_reader_is_told_what_the_agent_is_doing_whatever_it_is():
    assert rendered(frame(activity=pb.SessionActivity(phase=pb.SESSION_PHASE_RESPONDING))) == "… responding\n"
