"""Publishing, against a server that does exactly what a test says: delivery, room, refusals."""

import asyncio

import pytest

import compass
from client.publishing import Gate, client_of, delta, event, push_all, push_many
from client.scripted import Pushes, fail, running, serve, until


async def test_what_is_pushed_is_stored_in_order_and_the_session_is_closed():
    async with client_of(serve) as (client, servicer):
        async with client.publish("s", title="A title", agent_name="pi", agent_version="1", epoch=7) as publisher:
            for number in range(300):
                await publisher.push(event(number))
        assert servicer.log.events == [event(number) for number in range(300)]
        assert servicer.log.closed
        assert publisher.stats.acked_seq == publisher.stats.pushed == 300
        assert publisher.stats.dropped == 0
        assert publisher.stats.sent_bytes > sum(len(stored) for stored in servicer.log.events)
    hello = servicer.hellos[0]
    assert (hello.session_id, hello.title, hello.agent_name, hello.agent_version) == ("s", "A title", "pi", "1")
    assert (hello.epoch, publisher.epoch, hello.producer_id) == (7, 7, publisher.producer_id)


async def test_text_bytes_and_objects_are_pushed_alike():
    async with client_of(serve) as (client, servicer):
        await push_all(client.publish("s"), '{"a":1}\n', b'{"a":1}', {"a": 1})
    assert servicer.log.events == ['{"a":1}'] * 3


async def test_epochs_of_one_client_rise():
    async with client_of(serve) as (client, servicer):
        for _ in range(3):
            await push_all(client.publish("s"))
    epochs = [hello.epoch for hello in servicer.hellos]
    assert epochs == sorted(set(epochs))
    assert len({hello.producer_id for hello in servicer.hellos}) == 1


async def test_flush_returns_once_everything_pushed_so_far_is_acknowledged():
    gate = Gate()
    async with client_of(gate) as (client, servicer), client.publish("s") as publisher:
        await publisher.push(event(1))
        flushing = asyncio.create_task(publisher.flush())
        await until(lambda: servicer.num_calls == 1 and publisher._stream.is_established)
        assert not flushing.done()
        gate.opened.set()
        await flushing
        assert servicer.log.events == [event(1)]
        await publisher.flush()


async def test_an_acknowledgement_that_was_lost_does_not_store_anything_twice():
    async def store_and_cut(stream):
        await stream.ack()
        stream.log.store((await stream.read()).batch)
        await fail("UNAVAILABLE")(stream)

    async with client_of(store_and_cut, serve) as (client, servicer):
        await push_all(client.publish("s"), *map(event, range(10)))
    assert servicer.log.events == [event(number) for number in range(10)]
    assert servicer.hellos[0] == servicer.hellos[1]


@pytest.mark.parametrize("code", ["UNAVAILABLE", "CANCELLED", "INTERNAL", "UNKNOWN"])
async def test_a_cut_before_anything_is_stored_sends_it_all_again(code):
    async def read_and_cut(stream):
        await stream.ack()
        await stream.read()
        await fail(code)(stream)

    async with client_of(read_and_cut, fail(code), serve) as (client, servicer):
        await push_all(client.publish("s"), *map(event, range(10)))
    assert servicer.log.events == [event(number) for number in range(10)]


async def test_a_stream_that_the_server_ends_with_ok_is_a_cut():
    async def end_early(stream):
        await stream.ack()

    async with client_of(end_early, serve) as (client, servicer):
        await push_all(client.publish("s"), event(1))
    assert servicer.log.events == [event(1)]


async def test_a_publisher_waits_for_a_server_that_is_not_there_yet():
    async with running(Pushes(serve)) as address:
        pass
    servicer = Pushes(serve)
    async with compass.connect(address) as client, client.publish("s") as publisher:
        await publisher.push(event(1))
        await until(lambda: publisher._patience.is_failing)
        async with running(servicer, address=address):
            await publisher.close()
    assert servicer.log.events == [event(1)]


async def test_a_full_log_is_tried_again_when_the_server_says_so():
    async with client_of(fail("RESOURCE_EXHAUSTED", "LOG_FULL", retry_after_s=0.05), serve) as (client, servicer):
        await push_all(client.publish("s"), event(1))
    assert servicer.log.events == [event(1)]


async def test_a_publisher_gives_up_when_nothing_has_succeeded_for_too_long():
    async with client_of(fail("UNAVAILABLE", "DRAINING"), retry_for_s=0.1) as (client, _):
        with pytest.raises(compass.ServerUnavailableError) as caught:
            await push_all(client.publish("s"), event(1), event(2))
    assert (caught.value.detail, caught.value.num_unacknowledged) == ("DRAINING", 2)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (fail("FAILED_PRECONDITION", "PRODUCER_FENCED", epoch=7), compass.ProducerFencedError),
        (fail("FAILED_PRECONDITION", "SESSION_STOPPED"), compass.SessionStoppedError),
        (fail("ALREADY_EXISTS", "PRODUCER_ATTACHED"), compass.ProducerAttachedError),
        (fail("ABORTED", "PRODUCER_REPLACED"), compass.ProducerReplacedError),
        (fail("INVALID_ARGUMENT", "INVALID_EVENT", seq=1), compass.InvalidEventError),
        (fail("INVALID_ARGUMENT", "UNKNOWN_DIALECT"), compass.UnknownDialectError),
        (fail("INVALID_ARGUMENT", "INVALID_SESSION_ID"), compass.InvalidSessionIdError),
    ],
)
@pytest.mark.parametrize("then", ["flush", "drain", "close"])
async def test_a_final_refusal_is_raised_with_what_was_not_acknowledged(script, expected, then):
    async with client_of(script) as (client, servicer):
        with pytest.raises(expected) as caught:
            await push_all(client.publish("s"), event(1), event(2), then=then)
    assert caught.value.num_unacknowledged == 2
    assert servicer.num_calls == 1


async def test_a_final_refusal_reaches_a_push_that_waits_and_every_later_one():
    gate = asyncio.Event()

    async def refuse_later(stream):
        await stream.ack()
        await gate.wait()
        await fail("FAILED_PRECONDITION", "PRODUCER_FENCED")(stream)

    async def push_until_refused(publisher):
        async with publisher:
            waiting = asyncio.create_task(push_many(publisher, event, 50))
            await until(publisher._turn.locked)
            gate.set()
            with pytest.raises(compass.ProducerFencedError):
                await waiting
            with pytest.raises(compass.ProducerFencedError):
                await publisher.push(delta(1))

    async with client_of(refuse_later) as (client, _):
        with pytest.raises(compass.ProducerFencedError):
            await push_until_refused(client.publish("s", priority_items=2))


async def test_trace_never_waits_and_what_it_drops_is_told_in_its_place():
    gate = Gate(window_events=1)
    async with client_of(gate) as (client, servicer):
        async with client.publish("s", trace_items=10) as publisher:
            await publisher.push(event(0))
            await until(lambda: publisher._stream is not None and publisher._stream.is_established)
            await push_many(publisher, delta, 500)
            await publisher.push(event(1))
            gate.opened.set()
        assert publisher.stats.dropped == 500 - (len(servicer.log.events) - 2)
        assert publisher.stats.dropped >= 480
    stored = servicer.log.events
    assert (stored[0], stored[-1]) == (event(0), event(1))
    at = 0
    for entry in servicer.log.entries[1:-1]:
        if isinstance(entry, int):
            at += entry
        else:
            assert entry == delta(at)
            at += 1
    assert at == 500


async def test_priority_waits_for_room_and_nothing_of_it_is_dropped():
    gate = Gate(window_events=1)
    async with client_of(gate) as (client, servicer), client.publish("s", priority_items=3) as publisher:
        pushing = asyncio.create_task(push_many(publisher, event, 50))
        await until(publisher._turn.locked)
        assert publisher.stats.pushed < 50
        gate.opened.set()
        await pushing
    assert servicer.log.events == [event(number) for number in range(50)]


async def test_a_publisher_that_waits_drops_no_trace_either():
    async with client_of(Gate(window_events=2)) as (client, servicer):
        servicer.scripts[0].opened.set()
        async with client.publish("s", wait=True, trace_items=1, priority_items=2) as publisher:
            await push_many(publisher, delta, 100)
    assert servicer.log.entries == [delta(number) for number in range(100)]


async def test_pushes_that_wait_are_taken_in_the_order_of_their_calls():
    gate = Gate()
    async with client_of(gate) as (client, servicer), client.publish("s", priority_items=1) as publisher:
        pushes = [asyncio.create_task(publisher.push(event(number))) for number in range(40)]
        await until(publisher._turn.locked)
        gate.opened.set()
        await asyncio.gather(*pushes)
    assert servicer.log.events == [event(number) for number in range(40)]


async def test_no_more_than_the_window_and_two_messages_are_ever_unacknowledged():
    seen = []

    async def stop_and_wait(stream):
        """Read what the producer is willing to send without any acknowledgement, then acknowledge it."""
        await stream.ack(window_events=5)
        unread = asyncio.create_task(stream.read())
        while len(stream.log.events) < 40:
            batches = []
            while (await asyncio.wait({unread}, timeout=0.02))[0]:
                batches.append(unread.result().batch)
                unread = asyncio.create_task(stream.read())
            seen.append([len(batch.events) for batch in batches])
            for batch in batches:
                stream.log.store(batch)
            await stream.ack(window_events=5)
        assert (await unread).WhichOneof("item") == "bye"
        await stream.ack(closed=True)

    async with client_of(stop_and_wait) as (client, servicer), client.publish("s") as publisher:
        await push_many(publisher, event, 40)
    assert servicer.log.events == [event(number) for number in range(40)]
    assert max(map(sum, seen)) == 5
    assert max(map(len, seen)) <= 2


async def test_an_event_that_no_message_can_carry_becomes_a_drop():
    huge = '{"type":"x","a":"' + "x" * (16 << 20) + '"}'
    receives = [("grpc.max_receive_message_length", 16 << 20)]
    async with client_of(serve, server_options=receives) as (client, servicer):
        publisher = client.publish("s")
        await push_all(publisher, event(0), huge, event(1), huge, then="close")
    assert servicer.log.entries == [event(0), 1, event(1), 1]
    assert publisher.stats.dropped == 2


async def test_a_refusal_is_seen_also_when_it_overtakes_a_write():
    """A write that fails because of the refusal makes grpc.aio report INTERNAL in its stead."""
    large = '{"type":"x","a":"' + "x" * (5 << 20) + '"}'
    receives = [("grpc.max_receive_message_length", 2 << 20)]

    async def serve_until_cut(stream):
        # The end of the requests comes before the status of the refusal; returning now would hide it.
        await stream.serve()
        if not stream.log.closed:
            await asyncio.Event().wait()

    async with client_of(serve_until_cut, server_options=receives) as (client, servicer):
        await push_all(client.publish("s"), event(0), large, event(1), then="close")
    assert servicer.log.entries == [event(0), 1, event(1)]
    assert servicer.num_calls == 2


async def test_an_event_that_the_server_refuses_as_too_large_becomes_a_drop_and_is_not_sent_for_ever():
    large = '{"type":"x","a":"' + "x" * (2 << 20) + '"}'

    async def refuse_large(stream):
        await stream.ack()
        while (request := await stream.read()).ByteSize() < len(large):
            stream.log.store(request.batch)
            await stream.ack()
        await fail("RESOURCE_EXHAUSTED")(stream)

    async with client_of(refuse_large, serve) as (client, servicer):
        await push_all(client.publish("s"), event(0), large, event(1))
    assert servicer.log.entries == [event(0), 1, event(1)]
    assert servicer.num_calls == 2


async def test_a_producer_that_comes_again_with_its_epoch_sends_only_the_rest():
    async with client_of(serve) as (client, servicer):
        for num_events in (3, 5):
            publisher = client.publish("s", producer_id="p", epoch=9, wait=True, close_on_exit=False)
            async with publisher:
                await push_many(publisher, event, num_events)
            assert publisher.stats.acked_seq == num_events
    assert servicer.log.events == [event(number) for number in range(5)]


async def test_a_server_that_lost_acknowledged_events_ends_the_publisher():
    async def forget(stream):
        stream.log.acked_seq = 0
        await serve(stream)

    async def store_one_and_cut(stream):
        await stream.ack()
        stream.log.store((await stream.read()).batch)
        await stream.ack()
        await stream.read()
        await fail("UNAVAILABLE")(stream)

    async def push_two(publisher):
        async with publisher:
            await publisher.push(event(1))
            await publisher.flush()
            await publisher.push(event(2))
            await publisher.flush()

    async with client_of(store_one_and_cut, forget) as (client, servicer):
        with pytest.raises(compass.SequenceJumpError) as caught:
            await push_two(client.publish("s"))
        await until(lambda: servicer.num_open == 0)
    assert (caught.value.expected_seq, caught.value.num_unacknowledged) == (1, 1)


async def test_a_sequence_jump_is_mended_by_sending_again_from_the_seq_that_is_missing():
    async def lose_a_batch(stream):
        await stream.ack()
        await stream.read()
        await fail("ABORTED", "SEQUENCE_JUMP", expected_seq=1)(stream)

    async with client_of(lose_a_batch, serve) as (client, servicer):
        await push_all(client.publish("s"), event(1))
    assert servicer.log.events == [event(1)]


async def test_what_is_no_event_is_refused_at_once_and_the_publisher_goes_on():
    async with client_of(serve) as (client, servicer), client.publish("s") as publisher:
        await publisher.push(event(1))
        with pytest.raises(compass.InvalidEventError) as caught:
            await publisher.push("[1]")
        await publisher.push(event(2))
    assert caught.value.seq is None
    assert servicer.log.events == [event(1), event(2)]


async def test_the_loop_gets_its_turns_while_trace_is_pushed_without_a_pause():
    async with client_of(serve) as (client, servicer), client.publish("s") as publisher:
        await push_many(publisher, delta, 20_000)
        assert len(servicer.log.events) > 1_000
        assert publisher.stats.dropped == 0


async def test_a_burst_of_trace_drops_nothing_while_the_server_keeps_up():
    async with client_of(serve) as (client, servicer), client.publish("s", trace_items=300) as publisher:
        await publisher.push(delta(0))
        await publisher.flush()
        for number in range(1, 5_000):
            await publisher.push(delta(number))
    assert servicer.log.entries == [delta(number) for number in range(5_000)]


async def test_a_stalled_server_does_not_slow_trace_down():
    gate = Gate(window_events=1)
    async with client_of(gate) as (client, _), client.publish("s", trace_items=100, close_on_exit=False) as publisher:
        await until(lambda: publisher._stream is not None and publisher._stream.is_established)
        async with asyncio.timeout(5):
            await push_many(publisher, delta, 50_000)
        assert publisher.stats.dropped > 49_000
        gate.opened.set()
