"""`compass-trace run` with an agent that does what a test wants of it."""

import asyncio
import json
import signal
from pathlib import Path

import compass
from bridge.conftest import (
    frames_of,
    is_recorded,
    prompt_states,
    scripted,
    submit,
    until_frame,
    until_state,
)
from compass.bridge import Bridge, BridgeOptions
from compass.v1 import compass_pb2 as pb


async def test_a_prompt_becomes_a_user_message_with_its_answer_behind_it(serve, bridge):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client:
        run = await bridge(server.addresses[0], "s", scripted())
        prompt_id = await submit(client, "s", "hello")
        await until_frame(client, "s", is_recorded(prompt_id))
        await until_state(client, "s", "READY")
        code = await run.terminate()
        rows = [row async for row in client.transcript("s")]
        frames = await frames_of(client, "s")

    assert [row.text for row in rows] == ["hello", "you said hello"]
    assert prompt_states(frames, prompt_id) == ["QUEUED", "CLAIMED", "RECORDED"]
    assert (code, frames[-1].state) == (0, pb.AGENT_SESSION_STATE_STOPPED)


async def test_a_prompt_is_matched_by_order_whatever_the_agent_makes_of_its_text(serve, bridge):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client:
        await bridge(server.addresses[0], "s", scripted(on={"/fix it": "expand"}))
        prompt_id = await submit(client, "s", "/fix it")
        frames = await until_frame(client, "s", is_recorded(prompt_id))

    assert frames[-2].event.user_message.text == "expanded: /fix it"
    assert frames[-2].event.user_message.prompt_id == prompt_id


async def test_prompts_are_worked_on_one_after_the_other_in_their_order(serve, bridge):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client:
        await bridge(server.addresses[0], "s", scripted())
        ids = [await submit(client, "s", f"prompt {number}") for number in range(5)]
        frames = await until_frame(client, "s", is_recorded(ids[-1]))

    shown = [frame.event.user_message.text for frame in frames if frame.event.HasField("user_message")]
    assert shown == [f"prompt {number}" for number in range(5)]


async def test_a_prompt_that_the_agent_accepts_and_drops_is_returned_and_its_next_offer_recorded(serve, bridge):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client:
        await bridge(server.addresses[0], "s", scripted(on={"lost": "drop once"}))
        prompt_id = await submit(client, "s", "lost")
        frames = await until_frame(client, "s", is_recorded(prompt_id))

    assert prompt_states(frames, prompt_id) == ["QUEUED", "CLAIMED", "RETURNED", "CLAIMED", "RECORDED"]


async def test_a_prompt_that_the_agent_refuses_is_returned_and_offered_again(serve, bridge):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client:
        await bridge(server.addresses[0], "s", scripted(on={"no": "refuse once"}))
        prompt_id = await submit(client, "s", "no")
        frames = await until_frame(client, "s", is_recorded(prompt_id))

    assert prompt_states(frames, prompt_id) == ["QUEUED", "CLAIMED", "RETURNED", "CLAIMED", "RECORDED"]


async def test_a_prompt_that_is_always_refused_does_not_fill_the_log_and_can_be_cancelled(serve, bridge):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client:
        await bridge(server.addresses[0], "s", scripted(on={"never": "refuse"}))
        prompt_id = await submit(client, "s", "never")
        returned = pb.SESSION_PROMPT_STATE_RETURNED
        num_returned = 0

        def is_third_return(frame: compass.Frame) -> bool:
            nonlocal num_returned
            num_returned += frame.event.prompt.state == returned
            return num_returned == 3

        await until_frame(client, "s", is_third_return)
        await client.cancel_prompt("s", prompt_id)
        other = await submit(client, "s", "fine")
        await until_frame(client, "s", is_recorded(other))

    assert num_returned == 3


async def test_a_steer_goes_into_the_running_turn(serve, bridge):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client:
        await bridge(server.addresses[0], "s", scripted(on={"long": "slow"}))
        await submit(client, "s", "long")
        await until_frame(client, "s", lambda frame: frame.event.HasField("assistant_text"))
        later = await submit(client, "s", "later")
        steer = await submit(client, "s", "quick", steer=True)
        frames = await until_frame(client, "s", is_recorded(steer))
        open_prompts = [prompt.prompt_id for prompt in await client.prompts("s")]
        await client.abort("s")
        await until_frame(client, "s", is_recorded(later))

    message = next(frame.event.user_message for frame in frames if frame.event.user_message.prompt_id == steer)
    assert (message.text, message.steering) == ("quick", True)
    assert open_prompts == [later]


async def test_an_abort_keeps_the_partial_answer_and_the_next_prompt_works(serve, bridge):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client:
        await bridge(server.addresses[0], "s", scripted(on={"long": "slow"}))
        await submit(client, "s", "long")
        await until_frame(client, "s", lambda frame: frame.event.HasField("assistant_text"))
        await client.abort("s")
        frames = await until_frame(client, "s", lambda frame: frame.event.HasField("session_error"))
        following = await submit(client, "s", "next")
        await until_frame(client, "s", is_recorded(following))
        rows = [row async for row in client.transcript("s")]

    error = frames[-1].event.session_error
    assert (error.kind, error.abort_origin) == (pb.SESSION_ERROR_KIND_ABORTED, pb.SESSION_ABORT_ORIGIN_USER)
    assert (rows[1].text, rows[1].incomplete) == ("half an ans", True)


async def test_prompts_are_held_during_a_compaction_and_each_is_recorded_once(serve, bridge, tmp_path: Path):
    server = await serve()
    go_on = tmp_path / "go on"
    async with compass.connect(server.addresses[0]) as client:
        script = scripted(on={"first": "compact"}, **{"continue": str(go_on)})
        await bridge(server.addresses[0], "s", script)
        first = await submit(client, "s", "first")
        compacting = pb.SESSION_PHASE_COMPACTING
        await until_frame(client, "s", lambda frame: frame.event.activity.phase == compacting)
        second = await submit(client, "s", "second")
        third = await submit(client, "s", "third")
        held = [pb.SessionPromptState.Name(prompt.state)[21:] for prompt in await client.prompts("s")]
        go_on.touch()
        frames = await until_frame(client, "s", is_recorded(third))

    assert held == ["CLAIMED", "QUEUED", "QUEUED"]
    for prompt_id in (first, second, third):
        assert prompt_states(frames, prompt_id) == ["QUEUED", "CLAIMED", "RECORDED"]


async def test_an_agents_own_dialog_is_shown_and_closed(serve, bridge):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client:
        await bridge(server.addresses[0], "s", scripted(on={"ask": "dialog"}))
        await submit(client, "s", "ask")
        frames = await until_frame(client, "s", lambda frame: frame.event.HasField("message_end"))

    phases = [frame.event.activity.phase for frame in frames if frame.event.HasField("activity")]
    assert pb.SESSION_PHASE_AWAITING_INPUT in phases
    assert phases.index(pb.SESSION_PHASE_AWAITING_INPUT) < len(phases) - 1


async def test_a_command_that_the_agent_settles_without_a_message_is_recorded_once(serve, bridge):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client:
        await bridge(server.addresses[0], "s", scripted(on={"/compact": "settle"}))
        prompt_id = await submit(client, "s", "/compact")
        frames = await until_frame(client, "s", is_recorded(prompt_id))

    assert prompt_states(frames, prompt_id) == ["QUEUED", "CLAIMED", "RECORDED"]


async def test_lines_of_any_size_and_lines_that_are_no_json_harm_nothing(serve, bridge):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client:
        await bridge(server.addresses[0], "s", scripted(on={"huge": "huge", "odd": "odd"}))
        await submit(client, "s", "huge")
        odd = await submit(client, "s", "odd")
        await until_frame(client, "s", is_recorded(odd))
        await until_state(client, "s", "READY")
        rows = [row async for row in client.transcript("s")]

    assert sum(len(row.text) for row in rows if row.message_id == rows[0].message_id) == 3_000_000
    assert [row.text for row in rows[-2:]] == ["odd", "you said odd"]


async def test_an_agent_whose_answer_is_lost_is_asked_again(serve, bridge):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client:
        await bridge(server.addresses[0], "s", scripted(garbles=2))
        prompt_id = await submit(client, "s", "hello")
        frames = await until_frame(client, "s", is_recorded(prompt_id))

    assert prompt_states(frames, prompt_id) == ["QUEUED", "CLAIMED", "RECORDED"]


async def test_a_user_message_that_no_message_can_carry_records_its_prompt_all_the_same(serve, bridge):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client:
        await bridge(server.addresses[0], "s", scripted(on={"vast": "vast"}))
        prompt_id = await submit(client, "s", "vast")
        await until_frame(client, "s", is_recorded(prompt_id))
        await until_state(client, "s", "READY")
        rows = [row async for row in client.transcript("s")]

    assert [row.text for row in rows if row.text] == ["vast", "you said vast"]


async def test_an_agent_that_closes_its_output_and_lives_on_is_ended(serve, tmp_path: Path):
    server = await serve()
    options = BridgeOptions(spool=tmp_path / "spool", grace_s=0.2)
    async with compass.connect(server.addresses[0]) as client:
        running = asyncio.create_task(Bridge(client, "s", scripted(on={"mute": "mute"}), options).run())
        prompt_id = await submit(client, "s", "mute")
        ended = await running
        frames = await frames_of(client, "s")

    assert (ended.was_asked, ended.exit.is_clean) == (False, False)
    assert prompt_states(frames, prompt_id) == ["QUEUED", "CLAIMED", "RETURNED"]


async def test_a_second_signal_ends_an_agent_that_ignores_the_first_one_at_once(serve, bridge):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client:
        run = await bridge(server.addresses[0], "s", scripted(ignores_sigterm=True))
        await until_state(client, "s", "READY")
        run.process.send_signal(signal.SIGINT)
        assert "asked to end" in (await run.process.stderr.readline()).decode()
        run.process.send_signal(signal.SIGINT)
        code = await asyncio.wait_for(run.process.wait(), 3)

    assert code == 130


async def test_an_agent_has_ended_though_what_it_started_holds_its_output_open(serve, bridge):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client:
        run = await bridge(server.addresses[0], "s", scripted(on={"leave": "leave"}))
        await submit(client, "s", "leave")
        code = await asyncio.wait_for(run.process.wait(), 8)
        err = (await run.process.stderr.read()).decode()
        info = await client.get_session("s")

    assert (code, info.state) == (0, pb.AGENT_SESSION_STATE_STOPPED)
    assert "Traceback" not in err
    assert "trying again" not in err


async def test_an_agent_that_dies_ends_the_session_errored_with_its_last_words_and_returns_its_prompt(serve, bridge):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client:
        run = await bridge(server.addresses[0], "s", scripted(on={"die": "die"}))
        prompt_id = await submit(client, "s", "die")
        code, err = await run.ended()
        frames = await frames_of(client, "s")

    error = next(frame.event.session_error for frame in frames if frame.event.HasField("session_error"))
    assert "no more memory" in error.message
    assert "sk-proj" not in error.message + err
    assert prompt_states(frames, prompt_id) == ["QUEUED", "CLAIMED", "RETURNED"]
    assert code == 13


async def test_an_agent_that_is_killed_names_the_signal_and_the_next_run_goes_on(serve, bridge):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client:
        run = await bridge(server.addresses[0], "s", scripted(on={"kill": "dead"}))
        prompt_id = await submit(client, "s", "kill")
        code, err = await run.ended()
        info = await client.get_session("s")
        await bridge(server.addresses[0], "s", scripted())
        frames = await until_frame(client, "s", is_recorded(prompt_id))

    assert (code, info.state) == (13, pb.AGENT_SESSION_STATE_ERRORED)
    assert "SIGKILL" in err
    assert prompt_states(frames, prompt_id) == ["QUEUED", "CLAIMED", "RETURNED", "CLAIMED", "RECORDED"]


async def test_an_agent_that_is_ended_by_a_signal_without_a_name_is_told_by_its_number(serve, bridge):
    server = await serve()
    async with compass.connect(server.addresses[0]) as client:
        run = await bridge(server.addresses[0], "s", ["sh", "-c", "kill -35 $$"])
        code, err = await run.ended()
        info = await client.get_session("s")

    assert (code, info.state) == (13, pb.AGENT_SESSION_STATE_ERRORED)
    assert "signal 35" in err


async def test_a_spool_that_cannot_be_read_is_told_in_one_line_and_left_as_it_is(serve, bridge, tmp_path: Path):
    server = await serve()
    producer = tmp_path / "spool" / "s" / "producer.json"
    producer.parent.mkdir(parents=True)
    producer.write_text("{")
    run = await bridge(server.addresses[0], "s", scripted())
    code, err = await run.ended()

    assert (code, err.count("\n"), producer.read_text()) == (1, 1, "{")
    assert str(producer) in err


async def test_a_greeting_agent_is_known_without_being_told_of(serve, bridge):
    server = await serve()
    command = [part for part in scripted(greets=True) if part not in {"--mode", "rpc"}]
    async with compass.connect(server.addresses[0]) as client:
        await bridge(server.addresses[0], "s", command)
        prompt_id = await submit(client, "s", "hello")
        await until_frame(client, "s", is_recorded(prompt_id))


async def test_a_silent_agent_is_asked_how_it_stands(serve, bridge):
    server = await serve()
    command = [part for part in scripted() if part not in {"--mode", "rpc"}]
    async with compass.connect(server.addresses[0]) as client:
        await bridge(server.addresses[0], "s", command)
        prompt_id = await submit(client, "s", "hello")
        await until_frame(client, "s", is_recorded(prompt_id))


async def test_a_json_agent_only_reports_and_its_end_stops_the_session(serve, bridge):
    server = await serve()
    events = Path(__file__).parents[1] / "data" / "recordings" / "pi-ok.jsonl"
    async with compass.connect(server.addresses[0]) as client:
        run = await bridge(server.addresses[0], "s", ["cat", str(events)], "--protocol", "json", "--json")
        out, _ = await run.process.communicate()
        frames = await frames_of(client, "s")

    assert run.process.returncode == 0
    assert json.loads(out) == {"sessionId": "s", "exit": {"code": 0}, "stopped": True}
    assert frames[-1].state == pb.AGENT_SESSION_STATE_STOPPED
    assert any(frame.event.HasField("assistant_text") for frame in frames)
