"""What the agent is doing: marked when it is silent for too long, unmarked when it is not, never after its turn."""

from compass.v1 import compass_pb2 as pb
from e2e import wire

QUICK = {"thinking_s": 0.05, "responding_s": 0.05, "running_tool_s": 0, "compacting_s": 0.05}


async def stalled_frame(compass, push: wire.Push) -> pb.AgentSessionFrame:
    """Tail until an activity frame says that the phase is stalled."""
    async for response in wire.tail(compass, follow=True):
        for frame in response.frames:
            if frame.event.activity.stalled:
                return frame
    raise AssertionError("no stalled activity")


async def activities(compass) -> list[tuple[str, bool]]:
    return [
        (
            pb.SessionPhase.Name(frame.event.activity.phase).removeprefix("SESSION_PHASE_"),
            frame.event.activity.stalled,
        )
        for frame in await wire.frames_of(compass)
        if frame.event.HasField("activity")
    ]


async def test_a_silent_phase_is_marked_and_the_next_event_takes_the_mark_away(serve, doors):
    server = await serve(watchdog=QUICK, reattach_window_s=0.2)
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await push.push('{"type":"agent_start"}', wire.message_start(), wire.delta("a"))
        marked = await stalled_frame(compass, push)
        await push.push(wire.delta("b"))
        seen = await activities(compass)

    assert marked.event.activity.phase == pb.SESSION_PHASE_RESPONDING
    assert seen == [("THINKING", False), ("RESPONDING", False), ("RESPONDING", True), ("RESPONDING", False)]


async def test_a_turn_that_ends_leaves_the_mark_behind(serve, doors):
    server = await serve(watchdog=QUICK, reattach_window_s=0.2)
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await push.push('{"type":"compaction_start"}')
        await stalled_frame(compass, push)
        await push.push('{"type":"compaction_end"}')
        info = (await compass.GetSession(pb.GetSessionRequest(session_id="s"))).session
        await push.bye()

    assert (info.activity.phase, info.activity.stalled) == (pb.SESSION_PHASE_IDLE, False)
    assert (await activities(compass))[-1] == ("IDLE", False)


async def test_a_phase_without_a_limit_and_a_resting_agent_are_never_marked(serve, doors):
    server = await serve(watchdog=QUICK, reattach_window_s=0.2)
    compass, gateway = doors(server.addresses[0])
    tool = '{"type":"tool_execution_start","toolCallId":"t","toolName":"bash","args":{}}'
    async with wire.Push(gateway, "working") as working, wire.Push(gateway) as silent:
        await working.push('{"type":"agent_start"}', tool)
        await silent.push('{"type":"agent_start"}', wire.message_start(), wire.delta("a"))
        await stalled_frame(compass, silent)

        info = (await compass.GetSession(pb.GetSessionRequest(session_id="working"))).session

    assert (info.activity.phase, info.activity.stalled) == (pb.SESSION_PHASE_RUNNING_TOOL, False)


async def test_a_late_joiner_gets_the_activity_first_marked_as_it_is(serve, doors):
    server = await serve(watchdog=QUICK, reattach_window_s=0.2)
    compass, gateway = doors(server.addresses[0])
    async with wire.Push(gateway) as push:
        await push.push('{"type":"agent_start"}', wire.message_start())
        await stalled_frame(compass, push)
        first = await anext(aiter(wire.tail(compass, start=pb.SESSION_START_LIVE, follow=True)))

    assert wire.kinds(first.frames) == ["WORKING", "activity"]
    assert first.frames[1].event.activity.stalled
