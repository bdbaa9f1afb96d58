"""The producer's outbox: numbering, window, resend, and drops told in their place, without a server."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from compass.errors import SequenceJumpError
from compass.lanes import LaneBounds
from compass.outbox import MAX_BATCH_BYTES, MAX_EVENT_BYTES, MAX_MESSAGES_IN_FLIGHT, Outbox, Window
from compass.v1 import agent_gateway_pb2 as pb

LARGE = 2 * MAX_BATCH_BYTES
OVERSIZE = MAX_EVENT_BYTES + 1


def bounds(trace_items=100, priority_items=100):
    return LaneBounds(trace_items, 64 << 20, priority_items, 64 << 20)


def outbox_with(*names, in_priority=True, size=10, **kwargs):
    outbox = Outbox("s", bounds(**kwargs))
    for name in names:
        outbox.push(pb.InnerEvent(json=name), size, in_priority=in_priority)
    return outbox


def names(batch):
    return [event.json for event in batch.events]


def test_a_batch_takes_what_waits_and_numbers_it_from_one():
    outbox = outbox_with("a", "b")
    batch = outbox.next_batch()
    assert (batch.first_seq, names(batch), batch.dropped) == (1, ["a", "b"], 0)


def test_no_third_message_leaves_while_two_are_in_flight():
    outbox = outbox_with("a")
    assert outbox.next_batch()
    outbox.push(pb.InnerEvent(json="b"), 10, in_priority=True)
    assert outbox.next_batch()
    outbox.push(pb.InnerEvent(json="c"), 10, in_priority=True)
    assert outbox.next_batch() is None
    outbox.acknowledge(1)
    assert names(outbox.next_batch()) == ["c"]


def test_the_window_bounds_what_is_unacknowledged():
    outbox = outbox_with("a", "b", "c")
    outbox.window = Window(events=2, num_bytes=1000)
    assert names(outbox.next_batch()) == ["a", "b"]
    assert outbox.next_batch() is None
    outbox.acknowledge(1)
    assert names(outbox.next_batch()) == ["c"]


def test_an_event_larger_than_the_window_leaves_alone():
    outbox = outbox_with("a", size=10)
    outbox.window = Window(events=8, num_bytes=15)
    outbox.push(pb.InnerEvent(json="big"), 100, in_priority=True)
    assert names(outbox.next_batch()) == ["a"]
    assert outbox.next_batch() is None
    outbox.acknowledge(1)
    assert names(outbox.next_batch()) == ["big"]


def test_a_drop_travels_in_front_of_the_event_that_followed_it():
    outbox = outbox_with("a", "b", "c", "d", in_priority=False, trace_items=2)
    batch = outbox.next_batch()
    assert (names(batch), batch.dropped, outbox.num_dropped) == (["c", "d"], 2, 2)


def test_a_drop_between_two_events_begins_a_message_of_its_own():
    outbox = outbox_with("first")
    for name in ("a", "b", "c"):
        outbox.push(pb.InnerEvent(json=name), 10, in_priority=False)
    outbox.push(pb.InnerEvent(json="huge"), OVERSIZE, in_priority=True)
    outbox.push(pb.InnerEvent(json="last"), 10, in_priority=True)
    first, second = outbox.next_batch(), outbox.next_batch()
    assert (names(first), first.dropped) == (["first", "a", "b", "c"], 0)
    assert (names(second), second.dropped, second.first_seq) == (["last"], 1, 5)


def test_what_was_not_acknowledged_goes_again_once_with_its_seq_and_its_drop():
    outbox = outbox_with("a", "b", "c", "d", in_priority=False, trace_items=3)
    assert names(outbox.next_batch()) == ["b", "c", "d"]
    outbox.resume(0)
    again = outbox.next_batch()
    assert (again.first_seq, names(again), again.dropped) == (1, ["b", "c", "d"], 1)
    outbox.resume(2)
    rest = outbox.next_batch()
    assert (rest.first_seq, names(rest), rest.dropped) == (3, ["d"], 0)


def test_a_server_that_lost_what_it_had_acknowledged_is_told_by_its_own_seq():
    outbox = outbox_with("a")
    outbox.next_batch()
    outbox.acknowledge(1)
    with pytest.raises(SequenceJumpError) as caught:
        outbox.resume(0)
    assert caught.value.expected_seq == 1


def test_what_an_earlier_life_of_the_epoch_committed_is_not_sent_again():
    outbox = outbox_with("a", "b", "c")
    outbox.resume(2)
    batch = outbox.next_batch()
    assert (batch.first_seq, names(batch)) == (3, ["c"])


def test_what_an_earlier_life_committed_is_skipped_also_when_it_is_pushed_later():
    outbox = outbox_with("a")
    outbox.resume(3)
    for name in ("b", "c", "d"):
        outbox.push(pb.InnerEvent(json=name), 10, in_priority=True)
    batch = outbox.next_batch()
    assert (batch.first_seq, names(batch), batch.dropped) == (4, ["d"], 0)
    assert outbox.num_dropped == 0


def test_an_event_that_no_message_can_carry_is_a_drop_and_the_last_one_stays_untold():
    outbox = outbox_with("a")
    outbox.push(pb.InnerEvent(json="huge"), OVERSIZE, in_priority=True)
    assert names(outbox.next_batch()) == ["a"]
    outbox.acknowledge(1)
    assert outbox.next_batch() is None
    assert (outbox.num_trailing_dropped, outbox.num_dropped) == (1, 1)
    assert outbox.settled_position == outbox.last_position == 2


def test_an_event_that_the_server_refused_as_too_large_becomes_a_drop():
    outbox = outbox_with("a")
    outbox.window = Window(events=8, num_bytes=2 * LARGE)
    outbox.push(pb.InnerEvent(json="large"), LARGE, in_priority=True)
    outbox.push(pb.InnerEvent(json="b"), 10, in_priority=True)
    assert names(outbox.next_batch()) == ["a"]
    assert names(outbox.next_batch()) == ["large"]
    assert outbox.note_refused()
    outbox.resume(1)
    batch = outbox.next_batch()
    assert (batch.first_seq, names(batch), batch.dropped) == (2, ["b"], 1)


def test_what_was_dropped_before_a_refused_event_is_told_with_it():
    outbox = outbox_with("a", "b", in_priority=False, trace_items=1)
    outbox.push(pb.InnerEvent(json="large"), LARGE, in_priority=False)
    assert names(outbox.next_batch()) == ["large"]
    assert outbox.note_refused()
    outbox.resume(outbox.acked_seq)
    outbox.push(pb.InnerEvent(json="c"), 10, in_priority=True)
    batch = outbox.next_batch()
    assert (batch.first_seq, names(batch), batch.dropped, outbox.num_dropped) == (1, ["c"], 3, 3)


def test_no_more_trace_is_dropped_than_the_bound_asks_for():
    outbox = outbox_with(*map(str, range(100)), in_priority=False, trace_items=40)
    outbox.push(pb.InnerEvent(json="urgent"), 10, in_priority=True)
    batch = outbox.next_batch()
    assert (batch.dropped, len(batch.events)) == (60, 41)


def test_a_refusal_of_small_messages_drops_nothing():
    outbox = outbox_with("a")
    outbox.next_batch()
    assert not outbox.note_refused()


class Producer(RuleBasedStateMachine):
    """Push, send, lose and acknowledge in any order; the model is the list of what was pushed."""

    def __init__(self):
        super().__init__()
        self.outbox = Outbox("s", bounds(trace_items=3, priority_items=2))
        self.pushed = []
        self.wire = []
        self.stored = []
        self.acked_seq = 0

    def push(self, size, *, in_priority):
        self.pushed.append((len(self.pushed), in_priority, size))
        event = pb.InnerEvent(json=str(len(self.pushed) - 1))
        self.outbox.push(event, size, in_priority=in_priority)

    @rule(size=st.sampled_from([10, 10, 10, LARGE, OVERSIZE]))
    def push_trace(self, size):
        self.push(size, in_priority=False)

    @precondition(lambda self: not self.outbox.priority_is_full)
    @rule(size=st.sampled_from([10, 10, 10, LARGE, OVERSIZE]))
    def push_priority(self, size):
        self.push(size, in_priority=True)

    @rule(events=st.integers(1, 5))
    def set_window(self, events):
        self.outbox.window = Window(events, 8 * LARGE)

    @rule()
    def send(self):
        if (batch := self.outbox.next_batch()) is not None:
            self.wire.append(batch)

    @precondition(lambda self: self.wire)
    @rule()
    def store(self):
        batch = self.wire.pop(0)
        assert batch.first_seq == self.acked_seq + 1
        if batch.dropped:
            self.stored.append(("dropped", batch.dropped))
        self.stored.extend(("event", int(event.json)) for event in batch.events)
        self.acked_seq += len(batch.events)

    @rule()
    def acknowledge(self):
        self.outbox.acknowledge(self.acked_seq)

    @rule()
    def cut(self):
        self.wire.clear()
        self.outbox.resume(self.acked_seq)

    @precondition(lambda self: self.wire and self.size_of(self.wire[0].events[0]) == LARGE)
    @rule()
    def refuse_as_too_large(self):
        self.wire.clear()
        assert self.outbox.note_refused()
        self.outbox.resume(self.acked_seq)

    def size_of(self, event):
        return self.pushed[int(event.json)][2]

    @invariant()
    def never_more_than_the_messages_allowed_are_out(self):
        assert len(self.wire) <= MAX_MESSAGES_IN_FLIGHT

    @invariant()
    def what_is_stored_accounts_for_every_push_in_its_place(self):
        self.accounted()

    def accounted(self):
        """Walk what is stored: each event is the next one pushed, each drop covers exactly what is missing there."""
        at = 0
        for kind, value in self.stored:
            if kind == "dropped":
                at += value
            else:
                assert value == at
                at += 1
        return at

    def teardown(self):
        self.cut()
        self.outbox.window = Window()
        while self.outbox.num_unacknowledged:
            self.send()
            self.store()
            self.acknowledge()
        assert self.outbox._dropped_before == {}
        assert self.accounted() + self.outbox.num_trailing_dropped == len(self.pushed)
        assert self.outbox.settled_position == self.outbox.last_position == len(self.pushed)
        arrived = {value for kind, value in self.stored if kind == "event"}
        assert {number for number, in_priority, size in self.pushed if in_priority and size == 10} <= arrived
        assert len(self.pushed) - len(arrived) == self.outbox.num_dropped


Producer.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestProducer = Producer.TestCase
