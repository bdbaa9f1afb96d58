"""The inbox laws on a real log: submit, claim, record, return, abort, die, restart, cancel, in any order.

The model is what a person could write down: every prompt that was acknowledged, and what the agent's process has seen.
"""

import json
from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from compass.v1 import compass_pb2 as pb
from compass_service.problems import PromptClosedError, PromptConflictError
from compass_service.session.events import Event
from compass_service.session.holds import Attachment, Controller
from compass_service.session.inbox import Submission
from compass_service.session.producers import Hello
from service.session.session_machine import WINDOW_MS, OnARealLog

TURN = ('{"type":"agent_start"}', '{"type":"agent_end"}')
COMPACTION = ('{"type":"compaction_start"}', '{"type":"compaction_end","aborted":true}')


def user_message(text: str) -> str:
    return json.dumps(
        {"type": "message_start", "message": {"role": "user", "content": [{"type": "text", "text": text}]}}
    )


class InboxMachine(OnARealLog):
    """One session, one agent process at a time, prompts from people."""

    def __init__(self) -> None:
        super().__init__()
        self.epoch = 0
        self.next_seq = 1
        self.attachment: Attachment | None = None
        self.controller: Controller | None = None
        self.applied_seq = 0
        self.texts: dict[str, str] = {}
        self.handed: list[str] = []
        """What the live process was handed and has not shown or refused."""
        self.handed_ever: Counter[tuple[int, str]] = Counter()
        self.recorded: list[str] = []
        self.cancelled: set[str] = set()
        self.abort_is_asked = False
        """Whether somebody asked for an abort since the live process began."""

    @initialize()
    def start(self):
        self.spawn()

    async def attach(self) -> None:
        session = await self.session()
        self.attachment = session.attach(Hello("s", "agent", self.epoch))
        await self.attachment.commit
        self.next_seq = self.attachment.acked_seq + 1
        self.controller = session.open_control("agent", self.epoch, applied_seq=self.applied_seq)
        await self.controller.commit

    async def push(self, *events: Event) -> None:
        session = await self.session()
        await session.push(self.attachment, self.next_seq, list(events), 0)
        self.next_seq += len(events)

    async def receive(self) -> None:
        """Take what the control stream has, as the process would."""
        session = await self.session()
        for control in await session.controls_after(self.applied_seq):
            self.applied_seq = control.control_seq
            if control.is_abort:
                assert self.abort_is_asked, "an abort for a process that is dead"
            elif (handed := session.prompts.action(control)) is not None:
                prompt, text = handed
                assert text == self.texts[prompt.prompt_id]
                self.handed.append(prompt.prompt_id)
                self.handed_ever[self.epoch, prompt.prompt_id] += 1

    # -- people -----------------------------------------------------------------------------------------------------

    @rule(steer=st.booleans(), request_id=st.sampled_from(["", "a", "b"]))
    def submit(self, steer, request_id):
        text = f"prompt {len(self.texts)}"

        async def submit() -> None:
            session = await self.session()
            submission = Submission(text, request_id=request_id, steer=steer)
            try:
                prompt = await session.submit(submission)
            except PromptConflictError:
                assert request_id
                return
            self.texts[prompt.prompt_id] = text

        self.run(submit())

    @precondition(lambda self: self.texts)
    @rule(data=st.data())
    def cancel(self, data):
        prompt_id = data.draw(st.sampled_from(sorted(self.texts)))

        async def cancel() -> None:
            session = await self.session()
            listed = {prompt.prompt_id: prompt.state for prompt in session.prompts.listed()}
            if prompt_id not in listed:
                return
            if listed[prompt_id] == pb.SESSION_PROMPT_STATE_CLAIMED:
                with pytest.raises(PromptClosedError):
                    await session.cancel(prompt_id)
                return
            await session.cancel(prompt_id)
            self.cancelled.add(prompt_id)

        self.run(cancel())

    @rule()
    def abort(self):
        async def abort() -> None:
            await (await self.session()).abort()

        self.run(abort())
        self.abort_is_asked = True

    # -- the agent --------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.attachment is not None)
    @rule()
    def look(self):
        self.run(self.receive())

    @precondition(lambda self: self.attachment is not None and self.handed)
    @rule()
    def record(self):
        prompt_id = self.handed.pop(0)
        event = Event(user_message(f"expanded {self.texts[prompt_id]}"), prompt_id)
        self.run(self.push(Event(TURN[0]), event, Event(TURN[1])))
        self.recorded.append(prompt_id)

    @precondition(lambda self: self.attachment is not None and self.handed)
    @rule()
    def refuse(self):
        prompt_id = self.handed.pop(0)
        self.handed_ever[self.epoch, prompt_id] -= 1

        async def refuse() -> None:
            await (await self.session()).return_prompt(self.attachment, prompt_id)

        self.run(refuse())

    @precondition(lambda self: self.attachment is not None)
    @rule(events=st.sampled_from([TURN, COMPACTION, TURN[:1], COMPACTION[:1], TURN[1:], COMPACTION[1:]]))
    def work(self, events):
        self.run(self.push(*map(Event, events)))

    @precondition(lambda self: self.attachment is not None)
    @rule()
    def cut(self):
        async def detach() -> None:
            session = await self.session()
            session.detach(self.attachment)
            await session.settled()

        self.run(detach())
        self.attachment = self.controller = None

    @precondition(lambda self: self.attachment is None and self.epoch)
    @rule()
    def reconnect(self):
        self.run(self.attach())

    @precondition(lambda self: self.attachment is not None)
    @rule()
    def come_back_after_having_been_given_up(self):
        """The same process was away for longer than the window, with all that it was handed."""
        self.run(self.receive())
        self.cut()
        self.pass_time(WINDOW_MS + 1)
        self.reconnect()
        self.run(self.receive())

    @rule()
    def spawn(self):
        """A new process takes the place of the one before, which is dead."""
        self.epoch += 1
        self.applied_seq = 0
        self.handed.clear()
        self.abort_is_asked = False
        self.run(self.attach())

    # -- the service ------------------------------------------------------------------------------------------------

    @rule()
    def restart(self):
        self.restart_service()
        self.attachment = self.controller = None

    @rule(passed_ms=st.sampled_from([1, WINDOW_MS + 1]))
    def pass_time(self, passed_ms):
        self.let_time_pass(passed_ms)

    # -- the laws ---------------------------------------------------------------------------------------------------

    async def listed(self) -> list[pb.SessionPrompt]:
        session = await self.session()
        await session.settled()
        return session.prompts.listed()

    @invariant()
    def every_acknowledged_prompt_is_recorded_once_cancelled_or_visible_with_its_text(self):
        if not self.epoch:
            return
        listed = {prompt.prompt_id: prompt.text for prompt in self.run(self.listed())}
        gone = set(self.recorded) | self.cancelled
        assert len(self.recorded) == len(set(self.recorded))
        assert set(listed) == set(self.texts) - gone
        assert all(text == self.texts[prompt_id] for prompt_id, text in listed.items())

    @invariant()
    def no_prompt_is_handed_twice_to_one_live_process(self):
        assert not [key for key, count in self.handed_ever.items() if count > 1]

    @invariant()
    def the_queue_keeps_the_order_of_submission(self):
        if self.epoch:
            numbers = [int(prompt.prompt_id[1:]) for prompt in self.run(self.listed())]
            assert numbers == sorted(numbers)

    @invariant()
    def the_frames_tell_the_same_story(self):
        if not self.epoch:
            return
        last: dict[str, int] = {}
        for frame in self.run(self.logged()):
            if frame.event.HasField("prompt"):
                last[frame.event.prompt.prompt_id] = frame.event.prompt.state
        assert {key for key, state in last.items() if state == pb.SESSION_PROMPT_STATE_RECORDED} == set(self.recorded)
        assert {key for key, state in last.items() if state == pb.SESSION_PROMPT_STATE_CANCELLED} == self.cancelled
        states = {prompt.prompt_id: prompt.state for prompt in self.run(self.listed())}
        assert states == {key: state for key, state in last.items() if key in states}


TestInboxMachine = pytest.mark.slow(pytest.mark.timeout(180)(InboxMachine.TestCase))
TestInboxMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
