"""Messages, tool calls and what a session is doing, as the fold shows them."""

import time

from histories import SESSION, History

from compass.fold import FileDiff, PlanEntry, SessionFold, Usage, fold
from compass.v1 import compass_pb2 as pb


def test_an_empty_fold_has_an_empty_view():
    view = SessionFold().view

    assert view.head_seq == 0
    assert view.messages == ()
    assert view.state == pb.AGENT_SESSION_STATE_UNSPECIFIED
    assert view.activity is None


def test_pieces_of_a_message_are_joined_and_thinking_stays_apart():
    history = History()
    history.user("Say hi", "u1")
    history.thinking("The user ", "m1")
    history.thinking("greets.", "m1")
    history.text("Hel", "m1")
    history.text("lo", "m1")
    history.end("m1", usage=10)

    user, assistant = fold(history.frames).messages

    assert (user.role, user.text, user.incomplete) == (pb.TRANSCRIPT_ROLE_USER, "Say hi", False)
    assert (assistant.role, assistant.text, assistant.thinking) == (
        pb.TRANSCRIPT_ROLE_ASSISTANT,
        "Hello",
        "The user greets.",
    )
    assert (assistant.incomplete, assistant.stop_reason) == (False, pb.SESSION_STOP_REASON_STOP)
    assert (assistant.first_seq, assistant.last_seq) == (2, 6)
    assert assistant.usage == Usage(input_tokens=10, cost_microdollars=20)


def test_a_message_without_an_end_is_not_judged_and_a_cut_one_is_incomplete():
    history = History()
    history.text("half", "m1")
    assert fold(history.frames).messages[0].incomplete is None

    history.cut("m1", stop_reason=pb.SESSION_STOP_REASON_DISCONNECTED)
    (message,) = fold(history.frames).messages

    assert message.incomplete is True
    assert message.stop_reason == pb.SESSION_STOP_REASON_DISCONNECTED


def test_a_view_read_between_chunks_does_not_disturb_the_text():
    history = History()
    for word in ("one ", "two ", "three ", "four"):
        history.text(word, "m1")
    session = SessionFold()
    seen = []

    for frame in history.frames:
        session.apply(frame)
        seen.append(session.view.messages[0].text)

    assert seen == ["one ", "one two ", "one two three ", "one two three four"]


def test_a_view_once_read_never_changes():
    history = History()
    history.text("a", "m1")
    history.text("b", "m1")
    session = SessionFold()
    session.apply(history.frames[0])
    before = session.view

    session.apply(history.frames[1])

    assert before.messages[0].text == "a"
    assert session.view.messages[0].text == "ab"


def test_the_same_view_is_returned_while_nothing_comes():
    history = History()
    history.text("a", "m1")
    session = SessionFold()
    session.apply(history.frames[0])

    assert session.view is session.view


def test_unchanged_messages_are_the_same_objects_in_the_next_view():
    history = History()
    history.text("a", "m1")
    history.end("m1")
    history.text("b", "m2")
    session = SessionFold()
    for frame in history.frames[:2]:
        session.apply(frame)
    first = session.view.messages[0]

    session.apply(history.frames[2])

    assert session.view.messages[0] is first


def test_a_user_message_in_several_frames_is_one_message():
    history = History()
    history.user("long ", "u1", prompt_id="p1")
    history.user("text", "u1")

    (message,) = fold(history.frames).messages

    assert (message.text, message.prompt_id) == ("long text", "p1")


def test_a_tool_call_belongs_to_the_assistant_message_before_it():
    history = History()
    history.user("list", "u1")
    history.text("I look.", "m1")
    history.end("m1", stop_reason=pb.SESSION_STOP_REASON_TOOL_USE)
    history.tool("t1", "List files")
    history.tool_update("t1", "a.py", status=pb.AGENT_TOOL_CALL_STATUS_COMPLETED)
    history.text("Done.", "m2")

    view = fold(history.frames)

    (tool,) = view.tool_calls
    assert view.messages[1].tool_calls == (tool,)
    assert view.messages[2].tool_calls == ()
    assert (tool.title, tool.status, tool.output) == ("List files", pb.AGENT_TOOL_CALL_STATUS_COMPLETED, "a.py")


def test_a_message_that_only_called_a_tool_is_a_message():
    history = History()
    history.end("m1", stop_reason=pb.SESSION_STOP_REASON_TOOL_USE)
    history.tool("t1", "List files")

    (message,) = fold(history.frames).messages

    assert (message.message_id, message.text) == ("m1", "")
    assert [tool.tool_call_id for tool in message.tool_calls] == ["t1"]


def test_output_replaces_output_and_an_update_without_any_leaves_it():
    history = History()
    history.tool("t1", "Run")
    history.tool_update("t1", "line 1", original_bytes=9_000)
    history.tool_update("t1", "line 1\nline 2", original_bytes=9_900)
    diff = pb.SessionFileDiff(path="a.py", new_text="x")
    history.tool_update("t1", diffs=(diff,))
    history.tool_update("t1", status=pb.AGENT_TOOL_CALL_STATUS_FAILED)

    (tool,) = fold(history.frames).tool_calls

    assert (tool.output, tool.original_bytes) == ("line 1\nline 2", 9_900)
    assert tool.diffs == (FileDiff("a.py", None, "x"),)
    assert tool.status == pb.AGENT_TOOL_CALL_STATUS_FAILED


def test_a_tool_call_that_is_read_between_updates_is_always_current():
    history = History()
    history.text("I run it.", "m1")
    history.tool("t1", "Run")
    history.tool_update("t1", "1")
    history.tool_update("t1", "2", status=pb.AGENT_TOOL_CALL_STATUS_COMPLETED)
    session = SessionFold()
    seen = []

    for frame in history.frames:
        session.apply(frame)
        seen += [tool.output for tool in session.view.messages[0].tool_calls]

    assert seen == ["", "1", "2"]


def test_plan_state_and_activity_are_what_came_last():
    history = History()
    in_progress = pb.AgentPlanEntry(content="read", status=pb.AGENT_PLAN_ENTRY_STATUS_IN_PROGRESS)
    history.log(plan=pb.SessionPlan(entries=[in_progress]))
    history.state(pb.AGENT_SESSION_STATE_WORKING)
    history.activity(pb.SESSION_PHASE_RUNNING_TOOL, "bash")
    view = fold(history.frames)

    assert view.plan == (PlanEntry("read", pb.AGENT_PLAN_ENTRY_STATUS_IN_PROGRESS),)
    assert view.state == pb.AGENT_SESSION_STATE_WORKING
    assert (view.activity.phase, view.activity.detail) == (pb.SESSION_PHASE_RUNNING_TOOL, "bash")

    history.log(plan=pb.SessionPlan())
    assert fold(history.frames).plan == ()


def test_a_snapshot_counts_until_any_frame_with_a_seq_says_otherwise():
    snapshot = pb.AgentSessionFrame(session_id=SESSION, state=pb.AGENT_SESSION_STATE_WORKING)
    activity = pb.SessionEvent(activity=pb.SessionActivity(phase=pb.SESSION_PHASE_RESPONDING))
    session = SessionFold()
    session.apply(snapshot)
    session.apply(pb.AgentSessionFrame(session_id=SESSION, event=activity))
    assert session.view.state == pb.AGENT_SESSION_STATE_WORKING
    assert session.view.activity.phase == pb.SESSION_PHASE_RESPONDING
    assert session.view.head_seq == 0

    session.apply(pb.AgentSessionFrame(session_id=SESSION, state=pb.AGENT_SESSION_STATE_READY, seq=40))
    session.apply(snapshot)

    assert session.view.state == pb.AGENT_SESSION_STATE_READY


def test_a_prompt_keeps_its_text_and_shows_where_it_is():
    history = History()
    queued = pb.SessionPrompt(prompt_id="p1", state=pb.SESSION_PROMPT_STATE_QUEUED, text="Do it", author="ann")
    history.log(prompt=queued)
    history.log(prompt=pb.SessionPrompt(prompt_id="p1", state=pb.SESSION_PROMPT_STATE_RECORDED))

    (prompt,) = fold(history.frames).prompts

    assert (prompt.text, prompt.author, prompt.state) == ("Do it", "ann", pb.SESSION_PROMPT_STATE_RECORDED)


def test_notices_injections_and_run_events_are_listed_in_order():
    history = History()
    history.log(notice=pb.SessionNotice(text="first"))
    history.log(notice=pb.SessionNotice(text="second", link="https://example.org"))
    injection = pb.SessionInjection(op_kind=pb.SESSION_INJECTION_KIND_STEER, message_id="u2", from_handle="@bo")
    history.log(session_injection=injection)
    history.log(run_event={"run_id": "run-1", "node_started": {"node_id": "build"}})

    view = fold(reversed(history.frames))

    assert [(notice.text, notice.link) for notice in view.notices] == [
        ("first", None),
        ("second", "https://example.org"),
    ]
    assert [injected.from_handle for injected in view.injections] == ["@bo"]
    assert [run.event.node_started.node_id for run in view.run_events] == ["build"]


def test_usage_is_summed_over_messages():
    history = History()
    history.text("a", "m1")
    history.end("m1", usage=10)
    history.text("b", "m2")
    history.end("m2", usage=5)

    assert fold(history.frames).usage == Usage(input_tokens=15, cost_microdollars=30)


def test_two_hundred_thousand_frames_fold_in_well_under_two_seconds():
    history = History()
    for number in range(200_000):
        history.text("token ", f"m{number // 500}")
    started = time.process_time()

    view = fold(history.frames)

    assert time.process_time() - started < 2
    assert len(view.messages) == 400
    assert view.messages[0].text == "token " * 500
