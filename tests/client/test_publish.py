import pytest

import compass
from client.scripted import Pushes, fail, running, serve


def event(number):
    return f'{{"type":"turn_start","n":{number}}}'


async def push_all(publisher, *events):
    async with publisher:
        for each in events:
            await publisher.push(each)
        await publisher.flush()


async def test_what_is_pushed_is_stored_in_order_and_the_session_is_closed():
    servicer = Pushes(serve)
    async with running(servicer) as address, compass.connect(address) as client:
        async with client.publish("s", title="A title") as publisher:
            for number in range(300):
                await publisher.push(event(number))
        assert servicer.log.events == [event(number) for number in range(300)]
        assert servicer.log.closed
        assert publisher.stats.acked_seq == publisher.stats.pushed == 300
    assert servicer.hellos[0].title == "A title"


async def test_an_acknowledgement_that_was_lost_does_not_store_anything_twice():
    async def store_and_cut(stream):
        await stream.ack()
        stream.log.store((await stream.read()).batch)
        await fail("UNAVAILABLE")(stream)

    servicer = Pushes(store_and_cut, serve)
    async with running(servicer) as address, compass.connect(address) as client, client.publish("s") as publisher:
        for number in range(10):
            await publisher.push(event(number))
        await publisher.close()
    assert servicer.log.events == [event(number) for number in range(10)]
    assert servicer.hellos[0].epoch == servicer.hellos[1].epoch


async def test_a_fenced_producer_learns_it_from_flush_with_what_was_not_acknowledged():
    servicer = Pushes(fail("FAILED_PRECONDITION", "PRODUCER_FENCED", epoch=7))
    async with running(servicer) as address, compass.connect(address) as client:
        publisher = client.publish("s")
        with pytest.raises(compass.ProducerFencedError) as caught:
            await push_all(publisher, event(1))
    assert (caught.value.epoch, caught.value.num_unacknowledged) == (7, 1)
