"""Listing, reporting and watching sessions; transcripts by the page."""

import asyncio

from compass.v1 import compass_pb2 as pb
from e2e import wire


async def test_a_report_says_what_a_session_is_and_did(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    await wire.push_all(
        gateway,
        "s",
        [*wire.recording("omp-inband"), '{"type":"strange"}', '{"type":"strange"}'],
        title="A title",
        agent_name="omp",
        agent_version="18",
    )

    info = (await compass.GetSession(pb.GetSessionRequest(session_id="s"))).session

    assert (info.title, info.agent_name, info.agent_version) == ("A title", "omp", "18")
    assert info.state == pb.AGENT_SESSION_STATE_STOPPED
    assert (info.counts.errors, info.counts.aborts) == (1, 0)
    assert info.counts.unmapped == {"strange": 2}
    assert info.counts.frames == info.head_seq
    assert info.first_kept_seq == 1
    assert not info.producer_attached


async def test_usage_adds_up_over_messages(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    usage = {"input": 10, "output": 5, "cacheRead": 3, "cacheWrite": 2, "cost": {"total": 0.25}}
    turn = [wire.message_start(), wire.message_end("stop", "hi", usage=usage)]
    await wire.push_all(gateway, "s", turn + turn)

    total = (await compass.GetSession(pb.GetSessionRequest(session_id="s"))).session.usage

    assert (total.input_tokens, total.output_tokens) == (20, 10)
    assert (total.cache_read_tokens, total.cache_write_tokens) == (6, 4)
    assert total.cost_microdollars == 500_000


async def test_a_list_comes_by_the_page_newest_first_and_whole(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    names = [f"s{number}" for number in range(7)]
    for name in names:
        await wire.push_all(gateway, name, [wire.message_start("user", name)])

    listed: list[str] = []
    token = ""
    while True:
        page = await compass.ListSessions(pb.ListSessionsRequest(page_size=3, page_token=token))
        listed += [session.session_id for session in page.sessions]
        if not (token := page.next_page_token):
            break

    assert listed == names[::-1]


async def test_a_watch_gives_every_session_then_what_changes(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    await wire.push_all(gateway, "old", [wire.message_start("user", "x")])
    call = compass.WatchSessions(pb.WatchSessionsRequest())
    first = await call.read()
    current = await call.read()

    await wire.push_all(gateway, "new", wire.recording("omp-err401"))
    seen: list[int] = []
    while pb.AGENT_SESSION_STATE_STOPPED not in seen:
        response = await call.read()
        seen += [session.state for session in response.sessions if session.session_id == "new"]
    call.cancel()

    assert [session.session_id for session in first.sessions] == ["old"]
    assert current.current
    assert not current.sessions


async def test_a_transcript_comes_by_the_page_and_follows_the_log(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        for number in range(5):
            await push.push(
                wire.message_start("user", f"question {number}"),
                wire.message_start(),
                wire.delta(f"answer {number}"),
                wire.message_end("stop", f"answer {number}"),
            )
        texts: list[str] = []
        token = ""
        while True:
            request = pb.GetTranscriptRequest(session_id="s", page_size=3, page_token=token)
            page = await compass.GetTranscript(request)
            texts += [message.text for message in page.messages]
            if not (token := page.next_page_token):
                break
        await push.push(wire.message_start("user", "last"))
        whole = await compass.GetTranscript(pb.GetTranscriptRequest(session_id="s"))

    assert texts == [f"{kind} {number}" for number in range(5) for kind in ("question", "answer")]
    assert [message.text for message in whole.messages] == [*texts, "last"]


async def test_a_transcript_keeps_error_text_out_of_the_message_it_cut(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    await wire.push_all(gateway, "s", wire.recording("omp-inband"))

    rows = (await compass.GetTranscript(pb.GetTranscriptRequest(session_id="s"))).messages

    assert [row.role for row in rows] == [pb.TRANSCRIPT_ROLE_USER, pb.TRANSCRIPT_ROLE_ASSISTANT]
    assert rows[1].text == "The answer is forty "
    assert rows[1].incomplete
    assert [error.status for error in rows[1].errors] == [429]


async def test_cancelled_tails_leave_nothing_behind(serve, doors):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    await wire.push_all(gateway, "s", wire.recording("pi-ok"), close=False)
    tasks_before = len(asyncio.all_tasks())

    for _ in range(200):
        call = compass.TailSession(pb.TailSessionRequest(session_id="s", follow=True))
        await call.read()
        call.cancel()
    async with asyncio.timeout(5):
        while server._hub.num_subscriptions or server._calls.num_open > 1:
            await compass.GetServerInfo(pb.GetServerInfoRequest())

    assert not server._hub._feeds
    assert len(asyncio.all_tasks()) <= tasks_before + 5
