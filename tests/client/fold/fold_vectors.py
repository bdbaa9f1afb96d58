"""The shared vectors of the fold: histories as frames in, the view out. Run this file to write them anew.

A fold in another language reads tests/data/fold/*.json: `frames` in canonical protobuf JSON, `view` in canonical form.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict
from histories import SESSION, History

from compass.fold import fold, view_to_dict
from compass.gap import Gap
from compass.v1 import compass_pb2 as pb

DIRECTORY = Path(__file__).parents[2] / "data" / "fold"

Items = list[pb.AgentSessionFrame | Gap]


def a_turn_with_tools() -> Items:
    """A turn with reasoning, a tool call with a diff, a plan, usage and a notice."""
    history = History()
    history.state(pb.AGENT_SESSION_STATE_WORKING)
    history.activity(pb.SESSION_PHASE_THINKING)
    history.user("Add a test", "u1", prompt_id="p1")
    history.thinking("First look.", "m1")
    history.text("I look ", "m1")
    history.text("around.\u2028😀", "m1")
    history.end("m1", stop_reason=pb.SESSION_STOP_REASON_TOOL_USE, usage=120)
    history.tool("t1", "Write a test")
    history.tool_update("t1", "wrote 1 li", original_bytes=5_000)
    created = pb.SessionFileDiff(path="tests/test_a.py", new_text="def test_a(): ...\n")
    history.tool_update("t1", "wrote 1 line", status=pb.AGENT_TOOL_CALL_STATUS_COMPLETED, diffs=(created,))
    plan = [
        pb.AgentPlanEntry(content="write", status=pb.AGENT_PLAN_ENTRY_STATUS_COMPLETED),
        pb.AgentPlanEntry(content="run", status=pb.AGENT_PLAN_ENTRY_STATUS_PENDING),
    ]
    history.log(plan=pb.SessionPlan(entries=plan))
    history.log(notice=pb.SessionNotice(text="Switched to the small model"))
    history.text("Done.", "m2")
    history.end("m2", usage=40)
    history.activity(pb.SESSION_PHASE_IDLE)
    history.state(pb.AGENT_SESSION_STATE_READY)
    return history.without()


def a_retry_after_the_first_token() -> Items:
    """The first attempt fails after it was shown in part; the second succeeds. The answer is there once."""
    history = History()
    history.user("Plan it", "u1")
    history.text("Here is the plan", "m1")
    history.cut("m1")
    history.retry(history.failure("connection reset", "m1"))
    history.text("Here is the plan: step 1", "m2")
    history.end("m2")
    return history.without()


def retries_that_all_fail() -> Items:
    """Four attempts fail before their first chunk: one card, one failure that stands, beside the user message."""
    history = History()
    history.user("Go", "u1")
    for attempt in (1, 2, 3):
        history.retry(history.failure(f"429 attempt {attempt}"), attempt=attempt)
    history.failure("429 attempt 4")
    return history.without()


def aborts_and_a_cancelled_retry() -> Items:
    """A cut answer that was aborted, then a retry that was cancelled: aborts, and no failure that stands."""
    history = History()
    history.user("Go", "u1")
    history.text("Half an", "m1")
    history.cut("m1", stop_reason=pb.SESSION_STOP_REASON_ABORTED)
    history.abort("m1", origin=pb.SESSION_ABORT_ORIGIN_WATCHDOG)
    history.user("Again", "u2")
    history.retry(history.failure("529"))
    history.abort(origin=pb.SESSION_ABORT_ORIGIN_USER)
    return history.without()


def gaps_of_every_reason() -> Items:
    """What a slow reader was not given, what retention took, and what the producer dropped."""
    history = History()
    history.user("Count", "u1")
    for number in range(9):
        history.text(f"{number} ", "m1")
    history.overflow(dropped=5)
    history.text("end", "m1")
    history.end("m1")
    items = history.without(4, 5, 6, 9)
    return [Gap(1, 2, 2, pb.SESSION_GAP_REASON_RETENTION), *items[2:]]


def a_live_start_without_history() -> Items:
    """A snapshot without seqs, then frames of a message whose beginning was not asked for."""
    history = History()
    history.text("unseen ", "m1")
    history.text("seen", "m1")
    activity = pb.SessionActivity(phase=pb.SESSION_PHASE_RESPONDING)
    return [
        pb.AgentSessionFrame(session_id=SESSION, state=pb.AGENT_SESSION_STATE_WORKING),
        pb.AgentSessionFrame(session_id=SESSION, event=pb.SessionEvent(activity=activity)),
        *history.frames[1:],
    ]


def prompts_injections_and_a_run() -> Items:
    """A prompt from queue to record, a steer, and events of a workflow run."""
    history = History()
    queued = pb.SessionPrompt(prompt_id="p1", state=pb.SESSION_PROMPT_STATE_QUEUED, text="Fix it", author="ann")
    history.log(prompt=queued)
    history.log(prompt=pb.SessionPrompt(prompt_id="p1", state=pb.SESSION_PROMPT_STATE_CLAIMED))
    history.user("Fix it", "u1", prompt_id="p1")
    history.log(prompt=pb.SessionPrompt(prompt_id="p1", state=pb.SESSION_PROMPT_STATE_RECORDED))
    history.user("Faster", "u2", steering=True)
    steer = pb.SessionInjection(op_kind=pb.SESSION_INJECTION_KIND_STEER, message_id="u2", from_handle="@bo")
    history.log(session_injection=steer)
    history.log(run_event={"run_id": "run-1", "run_failed": {"failure": {"code": "E1", "problem": "no disk"}}})
    return history.without()


def failures_before_any_message() -> Items:
    """A session that fails before anyone said anything, then stops while a retry is awaited."""
    history = History()
    history.failure("no model is configured")
    history.retry(history.failure("529"))
    history.state(pb.AGENT_SESSION_STATE_STOPPED)
    return history.without()


SCENARIOS: tuple[Callable[[], Items], ...] = (
    a_turn_with_tools,
    a_retry_after_the_first_token,
    retries_that_all_fail,
    aborts_and_a_cancelled_retry,
    gaps_of_every_reason,
    a_live_start_without_history,
    prompts_injections_and_a_run,
    failures_before_any_message,
)


def vector(scenario: Callable[[], Items]) -> dict[str, Any]:
    items = scenario()
    frames = [item.to_frame(SESSION) if isinstance(item, Gap) else item for item in items]
    return {
        "description": scenario.__doc__,
        "frames": [MessageToDict(frame) for frame in frames],
        "view": view_to_dict(fold(items)),
    }


def path_of(scenario: Callable[[], Items]) -> Path:
    return DIRECTORY / f"{scenario.__name__}.json"


if __name__ == "__main__":
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    for scenario in SCENARIOS:
        path_of(scenario).write_text(json.dumps(vector(scenario), indent=1, ensure_ascii=False) + "\n")
