import pytest

import compass
from client.scripted import Tails, end, fail, frames, heartbeat, respond, running


async def seqs(tail):
    return [item.seq async for item in tail]


async def test_a_tail_yields_frames_in_order_and_ends_after_the_sentinel():
    servicer = Tails(respond(frames(1, 2), frames(3), end(3)))
    async with running(servicer) as address, compass.connect(address) as client:
        tail = client.tail("s")
        assert await seqs(tail) == [1, 2, 3]
        assert (tail.resume_seq, tail.head_seq) == (3, 3)


async def test_a_cut_tail_resumes_after_the_last_item_and_repeats_nothing():
    servicer = Tails(
        respond_and_cut(frames(1, 2, 3)),
        respond(frames(2, 3, 4), frames(4, 5), end(5)),
    )
    async with running(servicer) as address, compass.connect(address) as client:
        assert await seqs(client.tail("s")) == [1, 2, 3, 4, 5]
    assert [request.since_seq for request in servicer.requests] == [0, 3]


def respond_and_cut(*responses):
    return respond_then_fail(*responses, code="UNAVAILABLE")


def respond_then_fail(*responses, code):
    async def script(context):
        for response in responses:
            await context.write(response)
        await fail(code)(context)

    return script


async def test_a_stream_that_ends_ok_without_the_sentinel_interrupts_the_tail():
    servicer = Tails(respond(frames(1, 2), heartbeat(2)))
    async with running(servicer) as address, compass.connect(address) as client:
        tail = client.tail("s")
        with pytest.raises(compass.TailInterrupted) as caught:
            await seqs(tail)
    assert (caught.value.session_id, caught.value.resume_seq, caught.value.reason) == ("s", 2, "NO_SENTINEL")


async def test_an_unknown_session_raises_at_once():
    servicer = Tails(fail("NOT_FOUND", "SESSION_NOT_FOUND"))
    async with running(servicer) as address, compass.connect(address) as client:
        with pytest.raises(compass.SessionNotFoundError) as caught:
            await seqs(client.tail("nowhere"))
    assert caught.value.session_id == "nowhere"
    assert len(servicer.requests) == 1
