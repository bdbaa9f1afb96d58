import asyncio

import pytest

import compass
from client.scripted import Pushes, running, serve
from compass.lanes import Entry, LaneBounds, LanePair


def event(number):
    return f'{{"type":"turn_start","n":{number}}}'


async def test_what_is_pushed_without_waiting_goes_past_a_full_lane_and_is_stored_in_its_place():
    servicer = Pushes(serve)
    async with running(servicer) as address, compass.connect(address) as client:
        async with client.publish("s", priority_items=4) as publisher:
            waiting = asyncio.create_task(publisher.push(event(0)))
            await waiting
            assert all(publisher.push_nowait(event(number)) for number in range(1, 50))
        assert servicer.log.events == [event(number) for number in range(50)]


async def test_a_publisher_that_is_not_entered_or_is_over_takes_nothing_without_waiting():
    servicer = Pushes(serve)
    async with running(servicer) as address, compass.connect(address) as client:
        publisher = client.publish("s")
        assert not publisher.push_nowait(event(1))
        async with publisher:
            assert publisher.push_nowait(event(2))
            with pytest.raises(compass.InvalidEventError):
                publisher.push_nowait("no object")
            await publisher.close()
            assert not publisher.push_nowait(event(3))
        assert not publisher.push_nowait(event(4))
        assert servicer.log.events == [event(2)]


def test_a_priority_item_offered_past_the_bound_is_kept_in_memory_and_taken_in_order():
    lanes = LanePair(LaneBounds(trace_items=1, trace_bytes=10, priority_items=1, priority_bytes=10))
    for position in (1, 2, 3):
        lanes.offer_priority(Entry(position, 1, position), past_bound=True)
    assert lanes.spilled_from is None
    assert [entry.item for entry in lanes.take(max_items=9, max_bytes=9)] == [1, 2, 3]
