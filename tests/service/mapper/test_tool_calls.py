"""Tool calls: their titles, output, file diffs and plans. Diffs and plans are hand-made: no recording holds one."""

import itertools
import json

import pytest
from mapping import (
    AGENT_END,
    AGENT_START,
    Traced,
    aborted,
    events,
    failed,
    kinds,
    only,
    output,
    phases,
    shape,
    start,
    text,
    tool_end,
    tool_start,
    tool_update,
)

from compass.limits import MAX_FRAME_BYTES, MAX_TOOL_OUTPUT_CHARS
from compass.v1 import compass_pb2 as pb

EDITS = [{"oldText": "one", "newText": "two"}, {"oldText": "three", "newText": "four"}]


def diffs(frames):
    (update,) = events(frames, "tool_call_update")
    return [(diff.path, diff.old_text if diff.HasField("old_text") else None, diff.new_text) for diff in update.diffs]


def plan(frames):
    return [
        (entry.content, pb.AgentPlanEntryStatus.Name(entry.status).removeprefix("AGENT_PLAN_ENTRY_STATUS_"))
        for entry in only(frames, "plan").entries
    ]


def test_a_tool_runs_through_its_statuses():
    traced = Traced()
    traced.push(AGENT_START)
    frames = traced.push(tool_start(), tool_update(output("hi")), tool_end(output("hi there")))
    assert shape(frames) == ["tool_call", "tool_call_update", "tool_call_update"]
    call = only(frames, "tool_call")
    assert (call.tool_call_id, call.title, call.status) == ("c1", "bash", pb.AGENT_TOOL_CALL_STATUS_IN_PROGRESS)
    running, ended = events(frames, "tool_call_update")
    assert (running.status, running.output) == (pb.AGENT_TOOL_CALL_STATUS_IN_PROGRESS, "hi")
    assert (ended.status, ended.output) == (pb.AGENT_TOOL_CALL_STATUS_COMPLETED, "hi there")
    assert phases(frames) == ["RUNNING_TOOL", "THINKING"]


def test_a_tool_that_failed_is_failed_and_changed_no_file():
    traced = Traced()
    traced.push(tool_start(name="edit", path="a.py", edits=EDITS))
    frames = traced.push(tool_end(output("no match"), name="edit", is_error=True))
    update = only(frames, "tool_call_update")
    assert (update.status, update.output) == (pb.AGENT_TOOL_CALL_STATUS_FAILED, "no match")
    assert diffs(frames) == []


@pytest.mark.parametrize(
    ("event", "title"),
    [
        (tool_start(_i="List files", intent="other"), "List files"),
        ({**tool_start(), "intent": "List all"}, "List all"),
        (tool_start(intent="List some"), "List some"),
        (tool_start(_i="  ", name="bash"), "bash"),
        (tool_start(_i=None, name="bash"), "bash"),
        ({"type": "tool_execution_start", "toolCallId": "c1"}, ""),
    ],
)
def test_the_title_is_the_intent_else_the_name(event, title):
    assert only(Traced().push(event), "tool_call").title == title


def test_a_long_title_is_cut_and_says_so():
    frames = Traced().push(tool_start(_i="é" * 1_000))
    title = only(frames, "tool_call").title
    assert (len(title), title[-1]) == (256, "…")
    assert frames[0].original_bytes == 2_000


def test_the_phase_names_a_tool_that_still_runs():
    traced = Traced()
    traced.push(AGENT_START, tool_start("c1", "bash"))
    running_since = traced.now_ms
    traced.push(tool_start("c2", "grep"), tool_end("", "c2"))
    assert (traced.state.activity.phase, traced.state.activity.detail) == (pb.SESSION_PHASE_RUNNING_TOOL, "bash")
    assert traced.state.activity.started_at_unix_ms == running_since
    traced.push(tool_end("", "c1"))
    assert traced.state.activity.phase == pb.SESSION_PHASE_THINKING


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        (output("  text \n"), "text"),
        ({"content": [text("a"), {"type": "image", "data": "…"}, text("b")]}, "a\nb"),
        ({"content": "plain"}, "plain"),
        ({"text": "t", "message": "m"}, "t"),
        ({"errorMessage": "e", "message": "m"}, "e"),
        ({"message": "m"}, "m"),
        ({"content": [], "message": "m"}, "m"),
        ({"content": []}, ""),
        ({"content": [{"type": "image", "data": "…"}], "details": {}}, ""),
        ({"code": 1, "ok": [True]}, '{"code":1,"ok":[true]}'),
        ({}, "{}"),
        ("just text", "just text"),
        ([1, "é"], '[1,"é"]'),
        (7, "7"),
        (None, ""),
    ],
)
def test_output_is_the_text_of_a_result_in_every_form(result, shown):
    assert only(Traced().push(tool_start(), tool_end(result)), "tool_call_update").output == shown


def test_output_is_cut_with_an_ellipsis_and_says_so():
    long = "é" * 10_000
    frames = Traced().push(tool_start(), tool_end(output(long)))
    shown = only(frames, "tool_call_update").output
    assert (len(shown), shown[-1]) == (MAX_TOOL_OUTPUT_CHARS, "…")
    assert frames[-2].original_bytes == 20_000


def test_growing_output_is_shown_each_time_it_grew_by_a_quarter():
    traced = Traced()
    traced.push(tool_start())
    lengths = [len(only(frames, "tool_call_update").output) for n in range(200) if (frames := grow(traced, n))]
    assert lengths[:5] == [1, 2, 3, 4, 5]
    assert all(later >= 1.25 * earlier for earlier, later in itertools.pairwise(lengths))
    assert len(lengths) < 25


def grow(traced, length):
    return traced.push(tool_update(output("x" * length)))


def test_cumulative_output_costs_no_more_than_its_bound():
    traced = Traced()
    traced.push(tool_start())
    whole = 0
    for number in range(1, 500):
        for draft in traced.mapper.map(json.dumps(tool_update(output("line\n" * number))), now_ms=traced.tick()):
            whole += len(draft.body)
    assert whole < 6 * MAX_TOOL_OUTPUT_CHARS


def test_an_empty_update_gives_no_frame():
    traced = Traced()
    traced.push(tool_start())
    assert traced.push(tool_update({"content": []}), tool_update(None)) == []


def test_a_tool_event_that_comes_late_begins_nothing():
    traced = Traced()
    traced.push(AGENT_START, tool_start(), aborted())
    assert traced.push(tool_update(output("still here"))) == []
    frames = traced.push(tool_end(output("done after all")))
    assert only(frames, "tool_call_update").status == pb.AGENT_TOOL_CALL_STATUS_FAILED
    assert only(frames, "tool_call_update").output == "done after all"
    assert traced.state.activity.phase == pb.SESSION_PHASE_IDLE


def test_a_call_that_begins_again_is_judged_anew():
    traced = Traced()
    traced.push(AGENT_START, tool_start(), aborted(), AGENT_START, tool_start())
    frames = traced.push(tool_end(output("done")))
    assert only(frames, "tool_call_update").status == pb.AGENT_TOOL_CALL_STATUS_COMPLETED


def test_a_run_that_ends_leaves_no_tool_running():
    traced = Traced()
    traced.push(AGENT_START, tool_start())
    frames = traced.push(AGENT_END)
    assert only(frames, "tool_call_update").status == pb.AGENT_TOOL_CALL_STATUS_FAILED
    assert shape(traced.push(AGENT_START)) == ["WORKING"]


@pytest.mark.parametrize("event", [tool_start(""), tool_start(None), tool_update("a", ""), tool_end("a", 7)])
def test_a_tool_event_without_an_id_is_counted(event):
    traced = Traced()
    assert traced.push(event) == []
    assert traced.state.counts.unmapped == {event["type"]: 1}


def test_an_id_that_is_too_long_is_another_id_but_always_the_same():
    traced = Traced()
    long = "x" * 100_000
    frames = traced.push(tool_start(long), tool_update(output("a"), long), tool_end("b", long), tool_start(long + "y"))
    ids = [event.tool_call_id for arm in ("tool_call", "tool_call_update") for event in events(frames, arm)]
    assert len(set(ids)) == 2
    assert max(map(len, ids)) < 100


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        ({"path": "a.py", "oldText": "x", "newText": "y"}, [("a.py", "x", "y")]),
        ({"path": "new.py", "newText": "y"}, [("new.py", None, "y")]),
        ({"path": "new.py", "oldText": None, "newText": "y"}, [("new.py", None, "y")]),
        ({"path": "gone.py", "oldText": "x", "newText": ""}, [("gone.py", "x", "")]),
        ({"path": "a.py", "diff": "@@"}, []),
        ({"oldText": "x", "newText": "y"}, []),
        ({"path": 7, "oldText": "x", "newText": "y"}, []),
        (
            {
                "perFileResults": [
                    {"path": "a.py", "oldText": "1", "newText": "2"},
                    {"path": "b.py", "isError": True, "oldText": "1", "newText": "2"},
                    {"path": "c.py", "error": "no match", "newText": "2"},
                    "nonsense",
                    {"path": "d.py", "newText": "new"},
                ],
                "path": "ignored.py",
                "newText": "ignored",
            },
            [("a.py", "1", "2"), ("d.py", None, "new")],
        ),
    ],
)
def test_diffs_are_read_from_the_details_of_a_result(details, expected):
    assert diffs(Traced().push(tool_start(name="edit"), tool_end(output("ok", **details), name="edit"))) == expected


def test_diffs_are_what_the_arguments_asked_for_when_the_result_has_none():
    traced = Traced()
    traced.push(tool_start(name="edit", path="a.py", edits=EDITS))
    frames = traced.push(tool_end(output("ok", diff="@@"), name="edit"))
    assert diffs(frames) == [("a.py", "one", "two"), ("a.py", "three", "four")]


def test_diffs_of_the_result_win_over_those_of_the_arguments():
    traced = Traced()
    traced.push(tool_start(name="edit", path="a.py", edits=EDITS))
    frames = traced.push(tool_end(output("ok", path="a.py", oldText="all", newText="new"), name="edit"))
    assert diffs(frames) == [("a.py", "all", "new")]


@pytest.mark.parametrize("edits", [None, "x", [], [{}], ["x"], [{"oldText": 1, "newText": 2}]])
def test_edits_that_cannot_be_read_are_no_diffs(edits):
    traced = Traced()
    traced.push(tool_start(name="edit", path="a.py", edits=edits))
    assert diffs(traced.push(tool_end(output("ok"), name="edit"))) == []


def test_large_diffs_are_cut_to_fit_a_frame_and_say_so():
    traced = Traced()
    results = [{"path": f"{n}.py", "oldText": "é" * 40_000, "newText": "😀" * 40_000} for n in range(5)]
    frames = traced.push(tool_start(name="edit"), tool_end(output("x" * 9_000, perFileResults=results), name="edit"))
    update = only(frames, "tool_call_update")
    assert 0 < len(update.diffs) < 5
    (ended,) = (frame for frame in frames if frame.event.HasField("tool_call_update"))
    assert ended.ByteSize() < MAX_FRAME_BYTES
    assert ended.original_bytes > 5 * (80_000 + 160_000)


def test_a_large_old_text_leaves_room_for_the_new_one():
    details = {"path": "a.py", "oldText": "o" * 300_000, "newText": "n" * 300_000}
    ((path, old, new),) = diffs(Traced().push(tool_end(output("ok", **details))))
    assert (path, len(old) > 60_000, len(new) > 60_000) == ("a.py", True, True)


def test_many_diffs_are_cut_in_number_and_say_so():
    results = [{"path": "a", "newText": "n"} for _ in range(100_000)]
    frames = Traced().push(tool_end(output("ok", perFileResults=results)))
    assert len(diffs(frames)) == 256
    assert frames[0].original_bytes == 200_000


def test_a_path_is_kept_whole_or_its_diff_left_out():
    results = [{"path": "p" * 5_000, "newText": "n"}, {"path": "p" * 4_000, "newText": "n"}]
    frames = Traced().push(tool_end(output("ok", perFileResults=results)))
    assert diffs(frames) == [("p" * 4_000, None, "n")]
    assert frames[0].original_bytes == 9_002


def test_edits_of_open_calls_are_kept_within_a_budget():
    traced = Traced()
    for number in range(40):
        edits = [{"oldText": "o" * 3_000, "newText": "n" * 3_000}]
        traced.push(tool_start(f"c{number}", "edit", path="a.py", edits=edits))
    kept = sum(len(edit.old_text) + len(edit.new_text) for tool in traced.state.tools.values() for edit in tool.edits)
    assert 24_000 < kept <= 32 * 1024
    frames = traced.push(tool_end("ok", "c39", "edit"))
    assert diffs(frames) == []
    assert frames[0].original_bytes == 6_004


PHASES = [
    {"name": "A", "tasks": [{"content": "first", "status": "completed"}, {"content": "second", "status": "abandoned"}]},
    {"name": "B", "tasks": [{"content": "third", "status": "in_progress"}, {"content": "fourth", "status": "pending"}]},
    {"tasks": [{"content": "fifth", "status": "guessed"}, {"status": "pending"}, "nonsense"]},
    "nonsense",
]


def test_a_todo_result_gives_the_plan_beside_the_update():
    frames = Traced().push(tool_start(name="todo"), tool_end(output("ok", phases=PHASES), name="todo"))
    assert shape(frames) == ["tool_call", "tool_call_update", "plan"]
    assert plan(frames) == [
        ("first", "COMPLETED"),
        ("second", "COMPLETED"),
        ("third", "IN_PROGRESS"),
        ("fourth", "PENDING"),
        ("fifth", "UNSPECIFIED"),
    ]


@pytest.mark.parametrize(
    "ended",
    [
        tool_end(output("ok"), name="todo"),
        tool_end(output("ok", phases=PHASES), name="bash"),
        tool_end(output("ok", phases=PHASES), name="todo", is_error=True),
        tool_end(output("ok", phases="many"), name="todo"),
    ],
)
def test_other_results_give_no_plan(ended):
    assert shape(Traced().push(ended)) == ["tool_call_update"]


def test_a_reminder_gives_the_plan_and_a_clearing_empties_it():
    traced = Traced()
    todos = [{"content": "first", "status": "pending"}]
    assert plan(traced.push({"type": "todo_reminder", "todos": todos, "attempt": 1})) == [("first", "PENDING")]
    assert plan(traced.push({"type": "todo_auto_clear"})) == []


def test_a_large_plan_is_cut_and_says_so():
    todos = [{"content": "é" * 1_000, "status": "pending"}] * 1_000
    frames = Traced().push({"type": "todo_reminder", "todos": todos})
    assert len(plan(frames)) == 256
    assert frames[0].original_bytes == 2_000_000


def test_tools_that_end_or_begin_after_a_failure_do_not_bring_the_turn_back():
    traced = Traced()
    traced.push(AGENT_START, tool_start("c1"), tool_start("c2"), start(), failed())
    assert traced.state.activity.phase == pb.SESSION_PHASE_IDLE
    assert kinds(traced.push(tool_end("x", "c2"), tool_start("c3"))) == ["tool_call_update", "tool_call"]
