"""The lane pair against a list-based model, and its edges one by one."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from compass.lanes import Entry, Hole, LaneBounds, LanePair, is_priority
from compass.v1 import compass_pb2 as pb
from compass.v1 import run_event_pb2

WIDE = LaneBounds(trace_items=1_000, trace_bytes=1_000_000, priority_items=1_000, priority_bytes=1_000_000)


def entry(position: int, size: int = 1) -> Entry[str]:
    return Entry(position, size, f"item {position}")


def take_all(lanes: LanePair[str]) -> list[Hole | Entry[str]]:
    return lanes.take(max_items=1_000_000, max_bytes=1_000_000_000)


def test_items_of_both_lanes_come_in_order_of_position():
    lanes: LanePair[str] = LanePair(WIDE)
    lanes.offer_trace([entry(1), entry(2)])
    lanes.offer_priority(entry(3))
    lanes.offer_trace([entry(4)])

    assert [taken.position for taken in take_all(lanes) if isinstance(taken, Entry)] == [1, 2, 3, 4]
    assert lanes.cursor == 4
    assert lanes.is_empty


def test_dropped_trace_items_become_one_hole_in_their_place():
    lanes: LanePair[str] = LanePair(LaneBounds(2, 1_000, 10, 1_000), cursor=10)
    lanes.offer_trace([entry(position) for position in range(11, 21)])

    assert [Hole(11, 18), entry(19), entry(20)] == take_all(lanes)
    assert lanes.dropped == 8


def test_a_priority_item_between_dropped_ones_splits_the_hole():
    lanes: LanePair[str] = LanePair(LaneBounds(1, 1_000, 10, 1_000))
    lanes.offer_trace([entry(1), entry(2)])
    lanes.offer_priority(entry(3))
    lanes.offer_trace([entry(4), entry(5)])

    assert [Hole(1, 2), entry(3), Hole(4, 4), entry(5)] == take_all(lanes)


def test_trace_is_bounded_in_bytes_but_keeps_the_newest_item():
    lanes: LanePair[str] = LanePair(LaneBounds(100, 10, 10, 1_000))
    lanes.offer_trace([entry(1, size=8), entry(2, size=8)])
    lanes.offer_trace([entry(3, size=50)])

    assert [Hole(1, 2), entry(3, size=50)] == take_all(lanes)


def test_a_reader_that_is_behind_keeps_little_trace_ahead_of_a_priority_item():
    lanes: LanePair[str] = LanePair(LaneBounds(160, 100_000, 10, 1_000))
    lanes.offer_trace([entry(position) for position in range(1, 162)])
    lanes.take(max_items=1, max_bytes=1)
    lanes.offer_priority(entry(162))
    lanes.offer_trace([entry(position) for position in range(163, 203)])

    taken = take_all(lanes)

    assert Hole(3, 145) == taken[0]
    assert list(range(146, 203)) == [item.position for item in taken if isinstance(item, Entry)]


def test_a_reader_that_does_not_read_at_all_keeps_the_newest_trace_up_to_its_bound():
    lanes: LanePair[str] = LanePair(LaneBounds(160, 100_000, 10, 1_000))
    lanes.take(max_items=1, max_bytes=1)
    lanes.offer_trace([entry(position) for position in range(1, 481)])
    lanes.offer_priority(entry(481))
    lanes.offer_trace([entry(position) for position in range(482, 492)])

    taken = take_all(lanes)

    assert taken[0] == Hole(1, 330)
    assert [item.position for item in taken if isinstance(item, Entry)] == list(range(331, 492))


def test_a_reader_stays_behind_until_it_finds_nothing_waiting():
    lanes: LanePair[str] = LanePair(LaneBounds(160, 100_000, 10, 1_000))
    lanes.offer_trace([entry(position) for position in range(1, 162)])

    take_all(lanes)
    assert lanes.is_behind

    take_all(lanes)
    assert not lanes.is_behind


def test_a_reader_that_is_not_behind_loses_nothing_to_a_priority_item():
    lanes: LanePair[str] = LanePair(LaneBounds(160, 100_000, 10, 1_000))
    lanes.offer_trace([entry(position) for position in range(1, 161)])
    lanes.offer_priority(entry(161))

    assert len(take_all(lanes)) == 161


def test_past_its_bound_the_priority_lane_is_spilled_and_nothing_overtakes_it():
    lanes: LanePair[str] = LanePair(LaneBounds(10, 1_000, 2, 1_000))
    for position in (1, 2, 3):
        lanes.offer_priority(entry(position))
    lanes.offer_trace([entry(4)])

    assert [entry(1), entry(2)] == take_all(lanes)
    assert (lanes.spilled_from, lanes.spilled_last) == (3, 3)
    assert not lanes.is_empty

    lanes.refill([entry(3)], covered=3)
    assert [entry(3), entry(4)] == take_all(lanes)
    assert lanes.spilled_from is None


def test_what_is_spilled_during_a_refill_waits_for_the_next_one():
    lanes: LanePair[str] = LanePair(LaneBounds(10, 1_000, 1, 1_000))
    for position in (1, 2, 3):
        lanes.offer_priority(entry(position))
    take_all(lanes)

    lanes.refill([entry(2)], covered=2)

    assert lanes.spilled_from == 3
    assert [entry(2)] == take_all(lanes)


def test_taking_stops_at_the_byte_budget_but_gives_at_least_one_item():
    lanes: LanePair[str] = LanePair(WIDE)
    lanes.offer_trace([entry(1, size=100), entry(2, size=100)])

    assert [entry(1, size=100)] == lanes.take(max_items=10, max_bytes=1)
    assert [entry(2, size=100)] == lanes.take(max_items=10, max_bytes=1)


@pytest.mark.parametrize("name", ["trace_items", "trace_bytes", "priority_items", "priority_bytes"])
def test_a_bound_below_one_is_refused(name):
    bounds = {"trace_items": 1, "trace_bytes": 1, "priority_items": 1, "priority_bytes": 1, name: 0}
    with pytest.raises(ValueError, match=name):
        LaneBounds(**bounds)


PRIORITY = [
    pb.AgentSessionFrame(state=pb.AGENT_SESSION_STATE_WORKING),
    pb.AgentSessionFrame(gap=pb.SessionGap(dropped=1)),
    *(
        pb.AgentSessionFrame(event=event)
        for event in (
            pb.SessionEvent(session_injection=pb.SessionInjection()),
            pb.SessionEvent(session_error=pb.SessionError()),
            pb.SessionEvent(user_message=pb.SessionUserMessage()),
            pb.SessionEvent(message_end=pb.SessionMessageEnd()),
            pb.SessionEvent(activity=pb.SessionActivity()),
            pb.SessionEvent(prompt=pb.SessionPrompt()),
        )
    ),
    *(
        pb.AgentSessionFrame(event=pb.SessionEvent(run_event=event))
        for event in (
            run_event_pb2.SessionRunEvent(run_failed=run_event_pb2.RunFailed()),
            run_event_pb2.SessionRunEvent(run_completed=run_event_pb2.RunCompleted()),
            run_event_pb2.SessionRunEvent(run_canceled=run_event_pb2.RunCanceled()),
            run_event_pb2.SessionRunEvent(node_failed=run_event_pb2.NodeFailed(failure={"code": "x"})),
        )
    ),
]
TRACE = [
    *(
        pb.AgentSessionFrame(event=event)
        for event in (
            pb.SessionEvent(assistant_text=pb.SessionAssistantText()),
            pb.SessionEvent(thinking=pb.SessionThinking()),
            pb.SessionEvent(tool_call=pb.SessionToolCall()),
            pb.SessionEvent(tool_call_update=pb.SessionToolCallUpdate()),
            pb.SessionEvent(plan=pb.SessionPlan()),
            pb.SessionEvent(notice=pb.SessionNotice()),
            pb.SessionEvent(run_event=run_event_pb2.SessionRunEvent()),
            pb.SessionEvent(run_event=run_event_pb2.SessionRunEvent(node_failed=run_event_pb2.NodeFailed())),
        )
    ),
]


@pytest.mark.parametrize("frame", PRIORITY)
def test_what_a_person_must_see_is_priority(frame):
    assert is_priority(frame)


@pytest.mark.parametrize("frame", TRACE)
def test_everything_else_is_trace(frame):
    assert not is_priority(frame)


class LanesMachine(RuleBasedStateMachine):
    """Random offers, takes and refills. The model is the list of all positions with their lane."""

    def __init__(self) -> None:
        super().__init__()
        self.lanes: LanePair[str] = LanePair(LaneBounds(5, 60, 3, 40))
        self.offered: list[bool] = []
        self.given: list[Hole | Entry[str]] = []

    @rule(lanes=st.lists(st.booleans(), min_size=1, max_size=12), size=st.integers(1, 30))
    def offer(self, lanes, size):
        for lane_is_priority in lanes:
            self.offered.append(lane_is_priority)
            item = entry(len(self.offered), size)
            if lane_is_priority:
                self.lanes.offer_priority(item)
            else:
                self.lanes.offer_trace([item])

    @rule(max_items=st.integers(1, 6), max_bytes=st.integers(1, 100))
    def take(self, max_items, max_bytes):
        self.given += self.lanes.take(max_items=max_items, max_bytes=max_bytes)

    @precondition(lambda self: self.lanes.spilled_from is not None)
    @rule(num=st.integers(1, 4))
    def refill(self, num):
        first, last = self.lanes.spilled_from, self.lanes.spilled_last
        covered = min(last, first + num)
        positions = [position for position in range(first, covered + 1) if self.offered[position - 1]]
        if not self.lanes._priority:
            self.lanes.refill([entry(position) for position in positions], covered=covered)

    @invariant()
    def everything_given_is_in_order_and_every_absence_is_a_hole(self):
        expected = 1
        for item in self.given:
            first, last = (item.first, item.last) if isinstance(item, Hole) else (item.position, item.position)
            assert expected == first
            expected = last + 1
        assert expected == self.lanes.cursor + 1

    @invariant()
    def no_priority_item_is_ever_in_a_hole(self):
        for item in self.given:
            if isinstance(item, Hole):
                assert not any(self.offered[item.first - 1 : item.last])

    @invariant()
    def memory_is_bounded(self):
        assert len(self.lanes._trace) <= 5
        assert len(self.lanes._priority) <= 3 + 5

    def teardown(self):
        while not self.lanes.is_empty:
            if self.lanes.spilled_from is not None and not self.lanes._priority:
                self.refill(4)
            self.given += take_all(self.lanes)
        self.everything_given_is_in_order_and_every_absence_is_a_hole()
        self.no_priority_item_is_ever_in_a_hole()
        given = [item.position for item in self.given if isinstance(item, Entry)]
        priorities = [position for position, lane in enumerate(self.offered, 1) if lane]
        assert priorities == [position for position in given if self.offered[position - 1]]
        dropped = sum(item.count for item in self.given if isinstance(item, Hole))
        assert dropped == self.lanes.dropped
        assert self.lanes.cursor == len(self.offered)


TestLanesMachine = pytest.mark.timeout(60)(LanesMachine.TestCase)
TestLanesMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
