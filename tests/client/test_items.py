from client.scripted import frame
from compass import Gap
from compass.items import position, unpack
from compass.v1 import compass_pb2 as pb

LAG = pb.SESSION_GAP_REASON_SUBSCRIBER_LAG
OVERFLOW = pb.SESSION_GAP_REASON_PRODUCER_OVERFLOW


def gap_frame(first_seq, last_seq, *, dropped=None, reason=LAG, seq=0):
    found = pb.AgentSessionFrame(session_id="s", seq=seq)
    found.gap.first_seq = first_seq
    found.gap.last_seq = last_seq
    found.gap.dropped = last_seq - first_seq + 1 if dropped is None else dropped
    found.gap.reason = reason
    return found


def test_what_a_reader_has_already_is_left_out():
    assert unpack([frame(1), frame(2), frame(3)], after=2) == [frame(3)]


def test_a_repeat_within_one_response_is_left_out():
    assert unpack([frame(4), frame(4), frame(3), frame(5)], after=3) == [frame(4), frame(5)]


def test_a_snapshot_has_no_seq_and_is_passed_on():
    snapshot = pb.AgentSessionFrame(session_id="s", state=pb.AGENT_SESSION_STATE_WORKING)
    assert unpack([snapshot, frame(9)], after=8) == [snapshot, frame(9)]


def test_a_gap_keeps_its_place_between_frames():
    assert unpack([frame(1), gap_frame(2, 4), frame(5)], after=0) == [frame(1), Gap(2, 4, 3, LAG), frame(5)]


def test_a_gap_that_was_told_already_is_left_out():
    assert unpack([gap_frame(2, 4)], after=4) == []


def test_a_gap_that_was_told_in_part_is_cut_to_the_rest():
    assert unpack([gap_frame(2, 6)], after=4) == [Gap(5, 6, 2, LAG)]


def test_frames_that_a_gap_covers_are_not_given_after_it():
    assert unpack([gap_frame(2, 4), frame(3), frame(5)], after=1) == [Gap(2, 4, 3, LAG), frame(5)]


def test_the_gap_of_a_producer_has_a_seq_and_is_no_repeat():
    told = gap_frame(0, 0, dropped=17, reason=OVERFLOW, seq=5)
    assert unpack([told], after=4) == [Gap(0, 0, 17, OVERFLOW, 5)]
    assert unpack([told], after=5) == []


def test_a_position_is_the_seq_of_a_frame_or_the_end_of_a_gap():
    assert position(frame(7)) == 7
    assert position(Gap(2, 6, 5, LAG)) == 6
    assert position(Gap(0, 0, 3, OVERFLOW, 9)) == 9
