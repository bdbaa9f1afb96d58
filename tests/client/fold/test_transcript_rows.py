"""The transcript's rows, as GetTranscript answers with them."""

from histories import History

from compass.fold import fold, transcript_rows
from compass.fold.transcript import MAX_ROW_BYTES
from compass.limits import MAX_TEXT_CHUNK_BYTES
from compass.v1 import compass_pb2 as pb

USER, ASSISTANT = pb.TRANSCRIPT_ROLE_USER, pb.TRANSCRIPT_ROLE_ASSISTANT


def rows_of(history: History, *missing: int) -> list[pb.TranscriptMessage]:
    return transcript_rows(fold(history.without(*missing, reason=pb.SESSION_GAP_REASON_RETENTION)))


def test_a_row_holds_a_message_with_its_tools_and_usage():
    history = History()
    history.user("List", "u1")
    history.thinking("Look first.", "m1")
    history.text("I look.", "m1")
    history.end("m1", stop_reason=pb.SESSION_STOP_REASON_TOOL_USE, usage=7)
    history.tool("t1", "List files")
    diff = pb.SessionFileDiff(path="a", old_text="", new_text="b")
    history.tool_update("t1", "a.py", status=pb.AGENT_TOOL_CALL_STATUS_COMPLETED, diffs=(diff,))

    user, assistant = rows_of(history)

    assert (user.role, user.text, user.HasField("incomplete"), user.incomplete) == (USER, "List", True, False)
    assert assistant == pb.TranscriptMessage(
        message_id="m1",
        role=ASSISTANT,
        text="I look.",
        thinking="Look first.",
        tool_calls=[
            pb.TranscriptToolCall(
                tool_call_id="t1",
                title="List files",
                status=pb.AGENT_TOOL_CALL_STATUS_COMPLETED,
                output="a.py",
                diffs=[diff],
            )
        ],
        incomplete=False,
        first_seq=2,
        last_seq=4,
        stop_reason=pb.SESSION_STOP_REASON_TOOL_USE,
        usage=pb.SessionUsage(input_tokens=7, cost_microdollars=14),
    )


def test_a_message_that_was_never_judged_leaves_incomplete_unset():
    history = History()
    history.text("half", "m1")

    (row,) = rows_of(history)

    assert not row.HasField("incomplete")
    assert not row.HasField("usage")


def test_a_failed_an_aborted_and_a_lost_message_are_incomplete_with_the_error_beside():
    history = History()
    history.text("failed here", "m1")
    history.cut("m1")
    history.failure("reset by peer", "m1")
    history.text("aborted here", "m2")
    history.cut("m2", stop_reason=pb.SESSION_STOP_REASON_ABORTED)
    history.abort("m2")
    history.text("lost here", "m3")
    history.cut("m3", stop_reason=pb.SESSION_STOP_REASON_DISCONNECTED)
    history.failure("the agent is gone", "m3")

    rows = rows_of(history)

    assert [row.incomplete for row in rows] == [True, True, True]
    assert [[error.kind for error in row.errors] for row in rows] == [
        [pb.SESSION_ERROR_KIND_ERROR],
        [pb.SESSION_ERROR_KIND_ABORTED],
        [pb.SESSION_ERROR_KIND_ERROR],
    ]
    assert [row.text for row in rows] == ["failed here", "aborted here", "lost here"]


def test_a_failure_without_a_chunk_has_no_row_of_its_own():
    history = History()
    history.user("Go", "u1")
    history.failure("401")

    (row,) = rows_of(history)

    assert (row.role, [error.message for error in row.errors]) == (USER, ["401"])


def test_failures_before_any_message_have_one_row_without_a_role():
    history = History()
    history.failure("first")
    history.failure("second")

    (row,) = rows_of(history)

    assert row.role == pb.TRANSCRIPT_ROLE_UNSPECIFIED
    assert [error.message for error in row.errors] == ["first", "second"]
    assert (row.message_id, row.text, row.HasField("incomplete")) == ("", "", False)


def test_superseded_attempts_have_no_row_and_no_error():
    history = History()
    history.user("Plan", "u1")
    history.text("Here is the plan", "m1")
    history.cut("m1")
    history.retry(history.failure("reset", "m1"))
    history.text("Here is the plan: step 1", "m2")
    history.end("m2")

    rows = rows_of(history)

    assert [row.text for row in rows] == ["Plan", "Here is the plan: step 1"]
    assert all(not row.errors for row in rows)


def test_a_whole_message_whose_text_retention_took_is_not_given_out_as_whole():
    history = History()
    history.text("gone ", "m1")
    history.text("kept", "m1")
    history.end("m1")

    (row,) = rows_of(history, 1)

    assert (row.text, row.incomplete) == ("kept", True)


def test_long_text_is_continued_in_rows_of_the_same_message_and_never_cut():
    text = "é€😀x" * 60_000
    history = History()
    history.thinking(text, "m1")
    history.text(text, "m1")
    history.end("m1", usage=3)

    rows = rows_of(history)

    assert "".join(row.text for row in rows) == text
    assert "".join(row.thinking for row in rows) == text
    assert all(len(row.text.encode()) <= MAX_TEXT_CHUNK_BYTES for row in rows)
    assert {(row.message_id, row.role, row.incomplete) for row in rows} == {("m1", ASSISTANT, False)}
    assert sum(row.usage.input_tokens for row in rows) == 3


def test_no_row_outgrows_its_bound_whatever_lies_beside_it():
    history = History()
    history.user("Go", "u1")
    history.text("I edit.", "m1")
    for number in range(12):
        history.tool(f"t{number}", "Edit")
        diff = pb.SessionFileDiff(path="big", new_text="x" * 200_000)
        history.tool_update(f"t{number}", diffs=(diff,))
    for number in range(1_500):
        history.failure(f"{number} " + "y" * 2_000)

    rows = rows_of(history)

    assert max(row.ByteSize() for row in rows) < MAX_ROW_BYTES + 10_000
    assert [tool.tool_call_id for row in rows for tool in row.tool_calls] == [f"t{number}" for number in range(12)]
    assert len([error for row in rows for error in row.errors]) == 1_500
