"""How publishing ends: drain, close, an exception, a cancel, each with a server that does exactly what a test says."""

import asyncio

import grpc
import pytest

import compass
from client.publishing import Gate, client_of, event, push_all, push_many
from client.scripted import fail, serve, until


async def test_drain_ends_the_stream_and_leaves_the_session_open():
    ended = asyncio.Event()

    async def serve_and_note(stream):
        await stream.serve()
        ended.set()

    async with client_of(serve_and_note) as (client, servicer):
        async with client.publish("s") as publisher:
            await publisher.push(event(1))
            await publisher.drain()
            assert servicer.log.events == [event(1)]
            with pytest.raises(compass.PublisherClosedError):
                await publisher.push(event(2))
            await publisher.drain()
        await ended.wait()
    assert not servicer.log.closed


async def test_leaving_the_block_drains_when_asked_to():
    async with client_of(serve) as (client, servicer), client.publish("s", close_on_exit=False) as publisher:
        await publisher.push(event(1))
    assert servicer.log.events == [event(1)]
    assert not servicer.log.closed


async def push_and_fail(publisher):
    async with publisher:
        await publisher.push(event(1))
        raise ZeroDivisionError


async def test_an_exception_in_the_block_passes_and_what_was_pushed_is_drained_without_a_close():
    async with client_of(serve) as (client, servicer):
        with pytest.raises(ZeroDivisionError):
            await push_and_fail(client.publish("s"))
    assert servicer.log.events == [event(1)]
    assert not servicer.log.closed


async def test_an_exception_in_the_block_passes_in_bounded_time_when_nothing_is_acknowledged(monkeypatch):
    monkeypatch.setattr("compass.publish._LEAVE_GRACE_S", 0.05)
    async with client_of(Gate()) as (client, servicer):
        with pytest.raises(ZeroDivisionError):
            await push_and_fail(client.publish("s"))
    assert servicer.log.events == []


async def test_a_close_whose_answer_was_lost_has_closed_the_session():
    async def close_and_cut(stream):
        await stream.ack()
        while (request := await stream.read()).WhichOneof("item") != "bye":
            stream.log.store(request.batch)
            await stream.ack()
        await fail("UNAVAILABLE")(stream)

    async with client_of(close_and_cut, fail("FAILED_PRECONDITION", "SESSION_STOPPED")) as (client, servicer):
        await push_all(client.publish("s"), event(1))
    assert servicer.log.events == [event(1)]
    assert servicer.num_calls == 2


async def test_a_close_that_was_not_confirmed_is_not_taken_for_one():
    async def end_without_an_answer(stream):
        await stream.ack()
        while (await stream.read()).WhichOneof("item") != "bye":
            stream.log.acked_seq += 1
            await stream.ack()

    async with client_of(end_without_an_answer, serve) as (client, servicer):
        await push_all(client.publish("s"), event(1), then="close")
    assert servicer.num_calls == 2
    assert servicer.log.closed


async def test_a_push_that_is_cancelled_while_it_waits_has_not_taken_the_event():
    gate = Gate(window_events=1)
    async with client_of(gate) as (client, servicer), client.publish("s", priority_items=1) as publisher:
        waiting = asyncio.create_task(push_many(publisher, event, 10))
        await until(publisher._turn.locked)
        num_taken = publisher.stats.pushed
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert publisher.stats.pushed == num_taken
        gate.opened.set()
    assert servicer.log.events == [event(number) for number in range(num_taken)]


@pytest.mark.parametrize("verb", ["flush", "drain", "close"])
async def test_a_cancel_while_waiting_for_acknowledgements_passes(verb, monkeypatch):
    monkeypatch.setattr("compass.publish._LEAVE_GRACE_S", 0.05)
    async with client_of(Gate()) as (client, servicer):
        num_tasks = len(asyncio.all_tasks())
        publishing = asyncio.create_task(push_all(client.publish("s"), event(1), then=verb))
        await until(lambda: servicer.num_calls == 1)
        publishing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await publishing
        await until(lambda: servicer.num_open == 0 and len(asyncio.all_tasks()) <= num_tasks)


async def test_a_cancel_between_two_attempts_passes(monkeypatch):
    monkeypatch.setattr("compass.publish._LEAVE_GRACE_S", 0.05)
    async with client_of(fail("UNAVAILABLE", retry_after_s=30)) as (client, _):
        publisher = client.publish("s")
        publishing = asyncio.create_task(push_all(publisher, event(1)))
        await until(lambda: publisher._patience.is_failing)
        async with asyncio.timeout(5):
            publishing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await publishing


async def test_closing_the_client_ends_its_publishers():
    async def push_and_close(client):
        async with client.publish("s") as publisher:
            await publisher.push(event(1))
            await until(lambda: publisher._stream is not None and publisher._stream.is_established)
            await client.close()
            await publisher.flush()

    async with client_of(Gate()) as (client, _):
        with pytest.raises(compass.ClientClosedError) as caught:
            await push_and_close(client)
    assert caught.value.num_unacknowledged == 1


async def test_a_publisher_is_used_as_a_block():
    async with client_of(serve) as (client, _):
        with pytest.raises(RuntimeError, match="async with"):
            await client.publish("s").push(event(1))


async def test_a_drain_that_did_not_end_with_ok_is_done_again():
    async def store_and_reset(stream):
        await stream.ack()
        stream.log.store((await stream.read()).batch)
        await stream.ack()
        assert await stream.read() is grpc.aio.EOF
        await fail("UNAVAILABLE")(stream)

    async with client_of(store_and_reset, serve) as (client, servicer):
        await push_all(client.publish("s"), event(1), then="drain")
    assert servicer.num_calls == 2
