"""Tailing, against a server that does exactly what a test says."""

import asyncio
import contextlib
import gc

import grpc
import pytest

import compass
from client.scripted import Tails, end, fail, frames, hang, heartbeat, respond, respond_then, running, until
from compass.v1 import compass_pb2 as pb


@contextlib.asynccontextmanager
async def client_of(*scripts, **options):
    """Serve these scripts; give a client and what the server saw."""
    servicer = Tails(*scripts)
    async with running(servicer) as address, compass.connect(address, **options) as client:
        yield client, servicer


async def seqs(tail):
    return [item.seq async for item in tail]


def cut_after(*responses, code="UNAVAILABLE"):
    return respond_then(fail(code), *responses)


async def test_frames_come_in_order_and_the_tail_ends_after_the_sentinel():
    async with client_of(respond(frames(1, 2), frames(3), end(3))) as (client, _):
        tail = client.tail("s")
        assert await seqs(tail) == [1, 2, 3]
        assert (tail.resume_seq, tail.head_seq, tail.end_reason) == (3, 3, pb.SESSION_END_REASON_STOPPED)
        assert await seqs(tail) == []


async def test_frames_beside_the_sentinel_are_given_first():
    last = frames(1, 2)
    last.end.reason = pb.SESSION_END_REASON_HEAD
    async with client_of(respond(last)) as (client, _):
        tail = client.tail("s", follow=False)
        assert await seqs(tail) == [1, 2]
        assert tail.end_reason == pb.SESSION_END_REASON_HEAD


async def test_the_request_says_what_was_asked_for():
    async with client_of(respond(end(9))) as (client, servicer):
        await seqs(client.tail("s", since=3, until=9, follow=False, delivery="live"))
    assert servicer.requests == [
        pb.TailSessionRequest(session_id="s", since_seq=3, until_seq=9, delivery=pb.TAIL_DELIVERY_LIVE),
    ]


@pytest.mark.parametrize("code", ["UNAVAILABLE", "CANCELLED", "INTERNAL", "UNKNOWN"])
async def test_a_cut_tail_resumes_after_the_last_item_and_repeats_nothing(code):
    scripts = cut_after(frames(1, 2, 3), code=code), respond(frames(2, 3, 4), frames(4, 5), end(5))
    async with client_of(*scripts) as (client, servicer):
        assert await seqs(client.tail("s")) == [1, 2, 3, 4, 5]
    assert [request.since_seq for request in servicer.requests] == [0, 3]


async def test_a_tail_that_was_cut_while_items_wait_resumes_after_them():
    async with client_of(cut_after(frames(1, 2, 3)), respond(frames(4), end(4))) as (client, servicer):
        tail = client.tail("s")
        assert (await anext(tail)).seq == 1
        await until(servicer.is_over.is_set)
        assert await seqs(tail) == [2, 3, 4]
    assert servicer.requests[1].since_seq == 3


async def test_a_gap_is_yielded_in_its_place_and_not_again_after_a_cut():
    lagging = frames(1, 2, resume_seq=9)
    gap = lagging.frames.add(session_id="s").gap
    gap.first_seq, gap.last_seq, gap.dropped, gap.reason = 3, 9, 7, pb.SESSION_GAP_REASON_SUBSCRIBER_LAG
    again = frames(10)
    again.frames.insert(0, lagging.frames[2])
    async with client_of(cut_after(lagging), respond(again, end(10))) as (client, servicer):
        items = [item async for item in client.tail("s")]
    assert items[2] == compass.Gap(3, 9, 7, pb.SESSION_GAP_REASON_SUBSCRIBER_LAG)
    assert [item.seq for item in items] == [1, 2, None, 10]
    assert servicer.requests[1].since_seq == 9


async def test_the_cursor_moves_with_each_item_and_with_a_heartbeat():
    async with client_of(respond_then(hang, frames(1, 2), heartbeat(7))) as (client, _), client.tail("s") as tail:
        await anext(tail)
        assert tail.resume_seq == 1
        await anext(tail)
        assert (tail.resume_seq, tail.is_current) == (2, False)
        waiting = asyncio.create_task(anext(tail))
        await until(lambda: tail.is_current)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert tail.head_seq == 7
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(anext(tail), 0.01)
        assert tail.resume_seq == 7


async def test_a_live_start_asks_for_the_snapshot_once_and_then_resumes():
    snapshot = pb.TailSessionResponse(resume_seq=0, head_seq=0)
    snapshot.frames.add(session_id="s", state=pb.AGENT_SESSION_STATE_READY)
    async with client_of(cut_after(snapshot), respond(frames(1), end(1))) as (client, servicer):
        items = [item async for item in client.tail("s", live=True)]
    assert [item.seq for item in items] == [0, 1]
    assert [request.start for request in servicer.requests] == [pb.SESSION_START_LIVE, pb.SESSION_START_UNSPECIFIED]
    assert servicer.requests[1].since_seq == 0


async def test_batches_give_each_response_and_an_empty_one_for_a_heartbeat():
    async with client_of(respond(frames(1, 2), heartbeat(2), frames(3), end(3))) as (client, _):
        tail = client.tail("s")
        batches = [[item.seq for item in batch] async for batch in tail.batches()]
    assert batches == [[1, 2], [], [3]]
    assert tail.is_current


async def test_batches_begin_with_what_an_iteration_left():
    async with client_of(respond(frames(1, 2, 3), end(3))) as (client, _):
        tail = client.tail("s")
        await anext(tail)
        assert [[item.seq for item in batch] async for batch in tail.batches()] == [[2, 3]]
        assert tail.resume_seq == 3


async def test_a_stream_that_ends_ok_without_the_sentinel_interrupts_the_tail():
    async with client_of(respond(frames(1, 2), heartbeat(2))) as (client, servicer):
        with pytest.raises(compass.TailInterrupted) as caught:
            await seqs(client.tail("s"))
    assert (caught.value.session_id, caught.value.resume_seq, caught.value.reason) == ("s", 2, "NO_SENTINEL")
    assert len(servicer.requests) == 1


async def test_a_refusal_raises_at_once():
    async with client_of(fail("NOT_FOUND", "SESSION_NOT_FOUND")) as (client, servicer):
        with pytest.raises(compass.SessionNotFoundError) as caught:
            await seqs(client.tail("nowhere"))
    assert caught.value.session_id == "nowhere"
    assert len(servicer.requests) == 1


async def test_a_tail_gives_up_when_nothing_has_succeeded_for_too_long():
    async with client_of(cut_after(frames(1)), fail("UNAVAILABLE", "DRAINING"), retry_for_s=0.2) as (client, _):
        tail = client.tail("s")
        assert (await anext(tail)).seq == 1
        with pytest.raises(compass.TailInterrupted) as caught:
            await anext(tail)
    assert (caught.value.resume_seq, caught.value.reason) == (1, "DRAINING")
    assert isinstance(caught.value.__cause__, compass.ServerUnavailableError)


async def test_a_tail_that_was_interrupted_can_be_taken_up_again():
    scripts = cut_after(frames(1)), fail("UNAVAILABLE"), respond(frames(2), end(2))
    async with client_of(*scripts, retry_for_s=0.001) as (client, _):
        tail = client.tail("s")
        await anext(tail)
        for _ in range(2):
            with pytest.raises(compass.TailInterrupted):
                await anext(tail)
        assert await seqs(tail) == [2]


async def test_a_tail_waits_for_a_server_that_is_not_there_yet():
    async with running(Tails(hang)) as address:
        pass
    servicer = Tails(respond(frames(1), end(1)))
    async with compass.connect(address) as client:
        tail = client.tail("s")
        reading = asyncio.create_task(seqs(tail))
        await until(lambda: tail._patience.is_failing)
        async with running(servicer, address=address):
            assert await reading == [1]


async def test_a_peer_that_falls_silent_is_left_for_a_new_stream():
    scripts = respond_then(hang, frames(1)), respond(frames(2), end(2))
    async with client_of(*scripts, silence_s=0.1) as (client, servicer):
        assert await seqs(client.tail("s")) == [1, 2]
    assert len(servicer.requests) == 2


@pytest.mark.parametrize("responses", [[], [frames(1)]], ids=["before the first response", "between responses"])
async def test_a_cancel_while_reading_passes_and_ends_the_call(responses):
    async with client_of(respond_then(hang, *responses)) as (client, servicer):
        tail = client.tail("s")
        reading = asyncio.create_task(seqs(tail))
        await until(lambda: len(servicer.requests) == 1 and tail.resume_seq == len(responses))
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await until(servicer.is_over.is_set)


async def test_a_cancel_while_pausing_before_a_reconnect_passes():
    async with client_of(fail("UNAVAILABLE", retry_after_s=30)) as (client, _):
        tail = client.tail("s")
        reading = asyncio.create_task(seqs(tail))
        await until(lambda: tail._patience.is_failing)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading


async def test_a_tail_is_not_current_while_it_reconnects():
    cut = asyncio.Event()

    async def cut_when_told(context):
        await context.write(heartbeat(0))
        await cut.wait()
        await fail("UNAVAILABLE", retry_after_s=30)(context)

    async with client_of(cut_when_told) as (client, _):
        tail = client.tail("s")
        reading = asyncio.create_task(seqs(tail))
        await until(lambda: tail.is_current)
        cut.set()
        await until(lambda: tail._patience.is_failing)
        assert not tail.is_current
        reading.cancel()
        await asyncio.wait([reading])


async def test_a_cancel_while_connecting_passes():
    async with asyncio.timeout(5), client_of(hang) as (client, _):
        reading = asyncio.create_task(seqs(client.tail("s")))
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading


async def test_a_read_that_timed_out_loses_and_repeats_nothing():
    scripts = respond_then(hang, frames(1, 2)), respond(frames(3), end(3))
    async with client_of(*scripts) as (client, servicer):
        tail = client.tail("s")
        assert [(await anext(tail)).seq, (await anext(tail)).seq] == [1, 2]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(tail), 0.05)
        assert await seqs(tail) == [3]
    assert servicer.requests[1].since_seq == 2


async def test_closing_the_client_interrupts_its_tails():
    async with client_of(respond_then(hang, frames(1))) as (client, _):
        tail = client.tail("s")
        reading = asyncio.create_task(seqs(tail))
        await until(lambda: tail.resume_seq == 1)
        await client.close()
        with pytest.raises(compass.TailInterrupted) as caught:
            await reading
    assert (caught.value.reason, caught.value.resume_seq) == ("CLIENT_CLOSED", 1)


async def test_leaving_a_tail_tells_the_server_and_leaves_no_task():
    async with client_of(respond_then(hang, frames(1, 2))) as (client, servicer):
        num_tasks = len(asyncio.all_tasks())
        async with client.tail("s") as tail:
            async for _ in tail:
                break
        await until(servicer.is_over.is_set)
        await until(lambda: servicer.num_open == 0 and len(asyncio.all_tasks()) <= num_tasks)
        assert await seqs(tail) == []
        await tail.aclose()


async def test_a_tail_that_is_merely_dropped_ends_its_call():
    async with client_of(respond_then(hang, frames(1))) as (client, servicer):
        async for _ in client.tail("s"):
            break
        gc.collect()
        await until(servicer.is_over.is_set)


async def written_before_a_stall(delivery):
    """Count the 16 KiB responses that a server can write to a reader that took one and stopped."""
    num_written = 0

    async def write_until_stalled(context):
        nonlocal num_written
        large = frames(1)
        large.frames[0].event.assistant_text.text = "x" * 16_384
        while True:
            large.frames[0].seq += 1
            write = asyncio.create_task(context.write(large))
            await asyncio.wait({write}, timeout=0.3)
            if not write.done() or num_written > 1_000:
                write.cancel()
                await asyncio.wait({write})
                return
            num_written += 1

    async with client_of(write_until_stalled) as (client, servicer), client.tail("s", delivery=delivery) as tail:
        await anext(tail)
        await until(lambda: servicer.num_open == 0)
    return num_written


async def test_a_live_reader_that_stops_reading_holds_the_server_back_at_once():
    assert await written_before_a_stall("live") < 20


async def test_a_complete_reader_that_stops_reading_holds_the_server_back_in_the_end():
    assert 20 < await written_before_a_stall("complete") < 1_000


async def test_a_tail_through_a_unix_socket(tmp_path):
    address = f"unix:{tmp_path / 'c.sock'}"
    async with running(Tails(respond(frames(1), end(1))), address=address), compass.connect(address) as client:
        assert await seqs(client.tail("s")) == [1]


async def test_a_client_can_be_awaited_and_closed_twice():
    async with running(Tails(respond(end(0)))) as address:
        client = await compass.connect(address)
        assert await seqs(client.tail("s")) == []
        await client.close()
        await client.close()
        with pytest.raises(compass.TailInterrupted):
            await seqs(client.tail("s"))


async def test_the_two_deliveries_of_a_client_use_connections_of_their_own():
    async with client_of(respond(end(0))) as (client, servicer):
        await seqs(client.tail("s", delivery="live"))
        await seqs(client.tail("s", delivery="complete"))
        await seqs(client.tail("t", delivery="live"))
    assert len(set(servicer.peers)) == 2
    assert servicer.peers[0] == servicer.peers[2]


def test_a_client_is_made_without_a_loop():
    assert compass.connect("127.0.0.1:1").target == "127.0.0.1:1"


@pytest.mark.parametrize("option", ["retry_for_s", "silence_s", "timeout_s"])
def test_a_wait_that_is_none_is_refused(option):
    with pytest.raises(ValueError, match=f"{option} must be more than 0, got -1"):
        compass.connect("127.0.0.1:1", **{option: -1})


async def test_no_exception_text_of_grpc_reaches_the_sentence():
    async with client_of(fail("UNAVAILABLE"), retry_for_s=0.001) as (client, _):
        with pytest.raises(compass.TailInterrupted) as caught:
            await seqs(client.tail("s"))
    assert "public text" not in str(caught.value)
    assert isinstance(caught.value.__cause__.__cause__, grpc.aio.AioRpcError)


@pytest.mark.parametrize(("options", "named"), [({"delivery": "eventual"}, "delivery"), ({"last": -1}, "last")])
async def test_an_option_that_is_none_of_its_values_is_refused_by_name(options, named):
    async with compass.connect("127.0.0.1:1") as client:
        with pytest.raises(ValueError, match=named):
            client.tail("s", **options)
