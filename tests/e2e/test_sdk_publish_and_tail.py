"""The SDK against a real server: what is published is tailed, through cuts and kills, once and in order."""

import asyncio

import pytest

import compass
from compass.v1 import compass_pb2 as pb
from e2e.wire import delta, kind, message_end, message_start, recording


async def tailed(client, session="s", **options):
    return [item async for item in client.tail(session, **options)]


async def publish(client, events, session="s", **options):
    async with client.publish(session, wait=True, **options) as publisher:
        for event in events:
            await publisher.push(event)


def texts(items):
    return [item.event.assistant_text.text for item in items if item.event.HasField("assistant_text")]


@pytest.fixture
async def client(serve):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client:
        yield client


async def test_a_recording_that_was_published_is_tailed_to_its_end(client):
    await publish(client, recording("pi-rpc-autocompact"))
    items = await tailed(client)
    assert [item.seq for item in items] == list(range(1, len(items) + 1))
    assert kind(items[-1]) == "STOPPED"
    assert items == await tailed(client, delivery="live")


async def test_a_tail_that_is_open_sees_what_is_published_as_it_comes(client):
    async with client.publish("s") as publisher:
        await publisher.push(message_start())
        await publisher.flush()
        async with client.tail("s", live=True, delivery="live") as tail:
            snapshot = [await anext(tail), await anext(tail)]
            await publisher.push(delta("hello"))
            items = [await asyncio.wait_for(anext(tail), 5) for _ in range(2)]
    assert [item.seq for item in snapshot] == [0, 0]
    assert sorted(kind(item) for item in items) == ["activity", "assistant_text"]
    assert items[1].seq == items[0].seq + 1


async def test_a_tail_of_the_last_few_seqs_and_a_tail_between_two(client):
    await publish(client, [message_start(), *map(delta, "abcdef"), message_end("stop", "abcdef")])
    whole = await tailed(client)
    assert await tailed(client, last=3) == whole[-3:]
    assert await tailed(client, last=0) == []
    assert await tailed(client, last=10_000) == whole
    assert await tailed(client, since=2, until=5) == whole[2:5]
    assert await tailed(client, since=5, until=5) == []


async def test_the_single_calls_report_and_close(client):
    await publish(client, [message_start("user", "hi"), message_end("stop", "x")], "closed", title="A title")
    await publish(client, [message_start("user", "hi"), message_end("stop", "x")], "open", close_on_exit=False)
    assert {info.session_id async for info in client.sessions()} == {"closed", "open"}
    assert (await client.get_session("closed")).title == "A title"
    assert "hi" in [row.text async for row in client.transcript("open")]
    assert (await client.close_session("open")).state == pb.AGENT_SESSION_STATE_STOPPED
    assert (await client.server_info()).contract_version == "compass.v1"
    with pytest.raises(compass.SessionNotFoundError):
        await client.get_session("nowhere")
    with pytest.raises(compass.InvalidSessionIdError):
        await client.get_session("no id")


async def test_every_page_of_a_long_list_is_yielded(client):
    for number in range(120):
        await client.push_event(f"s{number}", message_start())
    assert len({info.session_id async for info in client.sessions()}) == 120


async def test_a_single_event_is_pushed_once_however_often_it_is_sent(client):
    named = {"producer_id": "p", "epoch": 1, "seq": 1}
    first = await client.push_event("s", message_start(), **named)
    again = await client.push_event("s", message_start(), **named)
    assert (first.duplicate, again.duplicate, again.head_seq) == (False, True, first.head_seq)
    with pytest.raises(compass.InvalidEventError):
        await client.push_event("s", "no object")


async def test_the_watch_lists_all_sessions_and_then_what_changes(client):
    await client.push_event("a", message_start())
    watch = client.watch_sessions()
    seen = []
    async for response in watch:
        seen += [info.session_id for info in response.sessions]
        if response.current:
            break
    assert seen == ["a"]
    changing = asyncio.create_task(anext_change(watch))
    await client.push_event("b", message_start())
    assert await asyncio.wait_for(changing, 5) == ["b"]
    await watch.aclose()


async def anext_change(watch):
    async for response in watch:
        if response.sessions:
            return [info.session_id for info in response.sessions]
    return []


async def test_what_the_producer_dropped_is_a_gap_in_the_log(client):
    huge = '{"type":"x","a":"' + "x" * (16 << 20) + '"}'
    await publish(client, [message_start(), huge, delta("after")])
    gaps = [item for item in await tailed(client) if isinstance(item, compass.Gap)]
    assert [(gap.dropped, gap.reason) for gap in gaps] == [(1, pb.SESSION_GAP_REASON_PRODUCER_OVERFLOW)]
    assert gaps[0].seq is not None


async def test_a_second_producer_is_refused_until_it_takes_over(client):
    with pytest.raises(compass.ProducerReplacedError):
        await be_taken_over(client)


async def be_taken_over(client):
    async with client.publish("s", producer_id="first") as first:
        await first.push(message_start())
        await first.flush()
        with pytest.raises(compass.ProducerAttachedError):
            await publish(client, [message_start()], producer_id="second")
        await publish(client, [message_start()], producer_id="second", take_over=True, close_on_exit=False)
        await asyncio.wait([first._task], timeout=5)


async def test_an_older_epoch_is_fenced_off(client):
    async with client.publish("s", producer_id="p", epoch=5, close_on_exit=False) as newer:
        await newer.push(message_start())
    older = client.publish("s", producer_id="p", epoch=4)
    with pytest.raises(compass.ProducerFencedError) as caught:
        async with older:
            await older.push(message_start())
    assert (caught.value.epoch, caught.value.current_epoch, caught.value.num_unacknowledged) == (4, 5, 1)


async def test_a_stopped_session_takes_nothing_more(client):
    await publish(client, [message_start()])
    with pytest.raises(compass.SessionStoppedError):
        await publish(client, [message_start()])


async def test_a_cursor_above_the_head_is_refused_with_the_head(client):
    await publish(client, [message_start()])
    head_seq = (await client.get_session("s")).head_seq
    with pytest.raises(compass.CursorAboveHeadError) as caught:
        await tailed(client, since=10_000)
    assert caught.value.head_seq == head_seq


@pytest.mark.timeout(120)
async def test_kills_of_the_server_lose_and_repeat_nothing(serve_process):
    num_kills, portion = 3, 4_000
    server = await serve_process()
    portions = asyncio.Semaphore(1)
    async with compass.connect(server.address, retry_for_s=None) as client:
        await client.push_event("s", message_start())
        tailing = asyncio.create_task(tailed(client))
        publishing = asyncio.create_task(publish_in_portions(client, portions, num_kills + 1, portion))
        for number in range(num_kills):
            await wait_for_head(client, portion * number + portion // 4)
            await server.kill()
            portions.release()
            server = await serve_process(listen=server.address)
        await publishing
        items = await tailing
    assert [item.seq for item in items] == list(range(1, len(items) + 1))
    assert texts(items) == [f"{number} " for number in range((num_kills + 1) * portion)]
    assert kind(items[-1]) == "STOPPED"


async def publish_in_portions(client, portions, num_portions, portion):
    """Publish deltas, each portion once it is allowed, so that no kill comes after the last."""
    async with client.publish("s", wait=True) as publisher:
        for first in range(0, num_portions * portion, portion):
            await portions.acquire()
            for number in range(first, first + portion):
                await publisher.push(delta(f"{number} "))


async def wait_for_head(client, head_seq):
    async with client.tail("s", live=True) as tail:
        async for _ in tail.batches():
            if (tail.head_seq or 0) >= head_seq or tail.end_reason is not None:
                return


@pytest.mark.timeout(60)
async def test_a_server_that_drains_is_left_and_found_again(serve_process):
    server = await serve_process("--grace-s", "0.2")
    async with compass.connect(server.address) as client, client.publish("s") as publisher:
        await publisher.push(message_start())
        await publisher.flush()
        tailing = asyncio.create_task(tailed(client))
        await server.terminate()
        await publisher.push(delta("after the restart"))
        await serve_process(listen=server.address)
        await publisher.close()
        assert texts(await tailing) == ["after the restart"]
