"""What is missing, and how it is filled in later, as the fold shows it."""

import random

import pytest
from histories import History

from compass.fold import SessionFold, fold
from compass.gap import Gap
from compass.v1 import compass_pb2 as pb

LAG = pb.SESSION_GAP_REASON_SUBSCRIBER_LAG
RETENTION = pb.SESSION_GAP_REASON_RETENTION


@pytest.fixture
def history() -> History:
    history = History()
    history.user("Count", "u1")  # 1
    for number in range(8):  # 2 to 9
        history.text(f"{number} ", "m1")
    history.end("m1")  # 10
    return history


def test_a_gap_is_shown_with_its_bounds_and_marks_the_message_around_it(history):
    view = fold(history.without(4, 5, 6))

    assert view.gaps == (Gap(4, 6, 3, LAG),)
    assert view.messages[1].has_gap
    assert not view.messages[0].has_gap
    assert view.messages[1].text == "0 1 5 6 7 "


def test_a_gap_that_is_filled_in_any_order_leaves_no_trace(history):
    for seed in range(20):
        session = SessionFold()
        for item in history.without(3, 4, 5, 8):
            session.apply(item)
        fetched = [history.frames[seq - 1] for seq in (3, 4, 5, 8)]
        random.Random(seed).shuffle(fetched)
        for frame in fetched:
            session.apply(frame)
            assert session.view.messages[1].message_id == "m1"

        assert session.view == fold(history.frames)


def test_a_gap_that_is_filled_in_part_shrinks(history):
    session = SessionFold()
    for item in history.without(3, 4, 5, 6, 7):
        session.apply(item)

    session.apply(history.frames[4])

    assert session.view.gaps == (Gap(3, 4, 2, LAG), Gap(6, 7, 2, LAG))


def test_a_gap_told_after_its_frames_came_is_no_gap(history):
    session = SessionFold()
    for frame in history.frames:
        session.apply(frame)

    session.apply(Gap(3, 5, 3, LAG))

    assert session.view.gaps == ()


def test_a_fetch_that_finds_retention_changes_the_reason(history):
    session = SessionFold()
    for item in history.without(3, 4, 5, 6):
        session.apply(item)

    session.apply(Gap(3, 4, 2, RETENTION))
    session.apply(history.frames[5 - 1])

    assert session.view.gaps == (Gap(3, 4, 2, RETENTION), Gap(6, 6, 1, LAG))


def test_the_same_frame_twice_counts_once(history):
    assert fold([*history.frames, *history.frames[:7]]) == fold(history.frames)


def test_a_gap_frame_as_the_wire_has_it_is_a_gap(history):
    items = history.without(4, 5)
    frames = [item.to_frame("s-1") if isinstance(item, Gap) else item for item in items]

    assert fold(frames) == fold(items)


def test_the_head_covers_a_gap_at_the_end(history):
    view = fold(history.without(9, 10))

    assert view.head_seq == 10


def test_what_the_producer_dropped_stays_a_gap_and_marks_the_open_message():
    history = History()
    history.text("one ", "m1")
    history.overflow(dropped=12)
    history.text("three", "m1")
    history.end("m1")
    history.text("whole", "m2")

    view = fold(history.frames)

    assert view.gaps == (Gap(0, 0, 12, pb.SESSION_GAP_REASON_PRODUCER_OVERFLOW, seq=2),)
    assert [message.has_gap for message in view.messages] == [True, False]


def test_a_gap_that_may_hold_the_head_of_a_message_marks_it():
    history = History()
    history.user("Go", "u1")  # 1
    history.activity(pb.SESSION_PHASE_RESPONDING)  # 2
    history.text("lost ", "m1")  # 3
    history.text("kept", "m1")  # 4
    history.end("m1")  # 5

    assert [message.has_gap for message in fold(history.without(3)).messages] == [False, True]


def test_a_gap_after_the_last_chunk_of_an_open_message_marks_it():
    history = History()
    history.text("kept ", "m1")
    history.text("lost", "m1")
    history.activity(pb.SESSION_PHASE_RESPONDING)

    assert fold(history.without(2)).messages[0].has_gap


def test_a_gap_among_tool_updates_marks_no_message():
    history = History()
    history.text("I look.", "m1")  # 1
    history.end("m1")  # 2
    history.tool("t1", "List")  # 3
    history.tool_update("t1", "a")  # 4
    history.tool_update("t1", "b", status=pb.AGENT_TOOL_CALL_STATUS_COMPLETED)  # 5
    history.text("Done", "m2")  # 6
    history.end("m2")  # 7

    view = fold(history.without(4))

    assert [message.has_gap for message in view.messages] == [False, False]


def test_a_tool_call_whose_beginning_is_missing_is_completed_later():
    history = History()
    history.text("I look.", "m1")
    history.tool("t1", "List files")
    history.tool_update("t1", "a", status=pb.AGENT_TOOL_CALL_STATUS_COMPLETED)
    session = SessionFold()
    for item in history.without(2):
        session.apply(item)
    assert session.view.tool_calls[0].title == ""

    session.apply(history.frames[1])

    assert session.view == fold(history.frames)
    assert session.view.tool_calls[0].title == "List files"
