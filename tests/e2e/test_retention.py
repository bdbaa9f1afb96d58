"""What retention took is a gap with its own reason: not an error, and not silence."""

import asyncio

import pytest

from compass.v1 import compass_pb2 as pb
from e2e import wire

BIG = "x" * 2_000
SMALL_WINDOW = (("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 16_384))


async def trimmed(compass) -> pb.SessionInfo:
    """Wait until retention has taken something."""
    async with asyncio.timeout(8):
        while True:
            info = (await compass.GetSession(pb.GetSessionRequest(session_id="s"))).session
            if info.counts.dropped_retention:
                return info


async def push_turns(push: wire.Push, num_turns: int) -> None:
    for number in range(num_turns):
        await push.push(
            wire.message_start("user", f"question {number}"),
            wire.message_start(),
            *(wire.delta(BIG) for _ in range(20)),
            wire.message_end("stop", BIG * 20),
        )


@pytest.mark.parametrize("delivery", [pb.TAIL_DELIVERY_LIVE, pb.TAIL_DELIVERY_COMPLETE])
async def test_trace_goes_first_and_its_absence_is_told_exactly(serve, doors, delivery):
    server = await serve(retention={"session_bytes": 200_000, "interval_s": 0.05})
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await push_turns(push, 20)
        await push.bye()
    info = await trimmed(compass)

    frames = await wire.frames_of(compass, delivery=delivery, follow=True)

    assert wire.check_account(frames) == info.head_seq
    gaps = [frame.gap for frame in frames if wire.kind(frame) == "gap"]
    assert {gap.reason for gap in gaps} == {pb.SESSION_GAP_REASON_RETENTION}
    assert wire.kinds(frames).count("user_message") == 20
    assert wire.kinds(frames).count("message_end") == 20


async def test_a_cursor_below_what_is_kept_gets_a_gap_first(serve, doors):
    server = await serve(retention={"session_bytes": 200, "interval_s": 0.05})
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await push_turns(push, 5)
        await trimmed(compass)
        async with asyncio.timeout(8):
            while (await compass.GetSession(pb.GetSessionRequest(session_id="s"))).session.first_kept_seq == 1:
                pass
        await push.bye()

    frames = await wire.frames_of(compass, since_seq=1, follow=True)

    assert wire.kind(frames[0]) == "gap"
    assert frames[0].gap.first_seq == 2
    wire.check_account(frames, since_seq=1)


async def test_trimming_while_a_reader_is_stalled_names_what_it_took(serve, doors):
    server = await serve(retention={"session_bytes": 100_000, "interval_s": 0.05})
    compass, gateway = doors(server.addresses[0], *SMALL_WINDOW)
    async with wire.Push(gateway) as push:
        await push_turns(push, 10)
        call = compass.TailSession(
            pb.TailSessionRequest(session_id="s", follow=True, delivery=pb.TAIL_DELIVERY_COMPLETE),
        )
        frames = list((await call.read()).frames)
        await push_turns(push, 60)
        await trimmed(compass)
        await push.bye()
        frames += [frame for response in await wire.read_all(call) for frame in response.frames]

    info = (await compass.GetSession(pb.GetSessionRequest(session_id="s"))).session
    assert wire.check_account(frames) == info.head_seq


async def test_seqs_go_on_after_everything_was_trimmed(serve, doors):
    server = await serve(retention={"session_bytes": 1_000, "interval_s": 0.05})
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await push_turns(push, 3)
        before = (await trimmed(compass)).head_seq
        head_seq = (await push.push(wire.message_start("user", "next"))).head_seq

    assert head_seq == before + 1


async def test_a_transcript_does_not_give_out_as_whole_what_retention_took_in_part(serve, doors):
    server = await serve(retention={"session_bytes": 100_000, "interval_s": 0.05})
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await push_turns(push, 4)
        await trimmed(compass)

    response = await compass.GetTranscript(pb.GetTranscriptRequest(session_id="s"))

    answers = [row for row in response.messages if row.role == pb.TRANSCRIPT_ROLE_ASSISTANT]
    assert [len(row.text) < 20 * len(BIG) for row in answers] == [row.incomplete for row in answers]
    assert [answers[0].incomplete, answers[-1].incomplete] == [True, False]
