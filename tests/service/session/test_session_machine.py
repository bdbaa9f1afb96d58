"""A session on a real log against a list-based model: attach, push, resend, cut, fence, restart, judge, close."""

import json

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from compass.v1 import compass_pb2 as pb
from compass_service.problems import (
    ProducerAttachedError,
    ProducerFencedError,
    ProducerReplacedError,
    SequenceJumpError,
    SessionStoppedError,
)
from compass_service.session.events import Event
from compass_service.session.holds import Attachment
from compass_service.session.producers import Hello
from service.session.session_machine import WINDOW_MS, OnARealLog

PRODUCERS = st.sampled_from(["a", "b"])


def user_message(text: str) -> Event:
    message = {"role": "user", "content": [{"type": "text", "text": text}]}
    return Event(json.dumps({"type": "message_start", "message": message}))


class SessionMachine(OnARealLog):
    """The model: which texts must be in the log, how far each producer has come, and who holds the session."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: list[str] = []
        self.cursors: dict[str, tuple[int, int]] = {}
        self.holder: str | None = None
        self.attachment: Attachment | None = None
        self.lost_attachments: list[Attachment] = []
        self.stopped = False

    @rule(producer=PRODUCERS, newer=st.integers(0, 2), older=st.booleans(), take_over=st.booleans())
    def attach(self, producer, newer, older, take_over):
        epoch, seq = self.cursors.get(producer, (1, 0))
        asked = epoch - 1 if older and epoch > 1 else epoch + newer
        hello = Hello("s", producer, asked, take_over=take_over)
        refusal = None
        if self.stopped:
            refusal = SessionStoppedError
        elif asked < epoch:
            refusal = ProducerFencedError
        elif self.holder not in {None, producer} and not take_over:
            refusal = ProducerAttachedError
        self.run(self.attach_now(hello, refusal, epoch, seq))

    async def attach_now(self, hello: Hello, refusal, epoch: int, seq: int) -> None:
        session = await self.session()
        if refusal is not None:
            with pytest.raises(refusal):
                session.attach(hello)
            return
        attachment = session.attach(hello)
        await attachment.commit
        expected = seq if hello.epoch == epoch and hello.producer_id in self.cursors else 0
        assert attachment.acked_seq == expected
        self.cursors[hello.producer_id] = hello.epoch, expected
        if self.attachment is not None:
            self.lost_attachments.append(self.attachment)
        self.attachment, self.holder = attachment, hello.producer_id

    @precondition(lambda self: self.attachment is not None)
    @rule(num_known=st.integers(0, 3), num_new=st.integers(0, 3), hole=st.booleans())
    def push(self, num_known, num_new, hole):
        epoch, seq = self.cursors[self.holder]
        known = min(num_known, seq)
        first_seq = seq + 2 if hole else seq + 1 - known
        texts = [f"{self.holder}/{epoch}/{first_seq + position}" for position in range(known + num_new)]
        self.run(self.push_now(first_seq, texts, hole=hole, new=texts[known:]))

    async def push_now(self, first_seq: int, texts: list[str], *, hole: bool, new: list[str]) -> None:
        session = await self.session()
        events = [user_message(text) for text in texts]
        if hole:
            with pytest.raises(SequenceJumpError):
                session.push(self.attachment, first_seq, events, 0)
            return
        await session.push(self.attachment, first_seq, events, 0)
        epoch, seq = self.cursors[self.holder]
        self.cursors[self.holder] = epoch, seq + len(new)
        self.stored += new

    @precondition(lambda self: self.lost_attachments)
    @rule()
    def push_through_a_lost_attachment(self):
        attachment = self.lost_attachments[-1]

        async def push() -> None:
            session = await self.session()
            with pytest.raises((ProducerFencedError, ProducerReplacedError, SessionStoppedError)):
                session.push(attachment, 1, [user_message("never")], 0)

        self.run(push())

    @precondition(lambda self: self.attachment is not None)
    @rule()
    def cut(self):
        async def detach() -> None:
            session = await self.session()
            session.detach(self.attachment)
            await session.settled()

        self.run(detach())
        self.lost_attachments.append(self.attachment)
        self.attachment = self.holder = None

    @rule()
    def restart(self):
        self.restart_service()
        self.attachment = self.holder = None
        self.lost_attachments.clear()

    @rule(passed_ms=st.sampled_from([1, 50, WINDOW_MS + 1]))
    def pass_time(self, passed_ms):
        self.let_time_pass(passed_ms)

    @precondition(lambda self: self.stored)
    @rule()
    def close(self):
        async def close() -> None:
            await (await self.session()).close()

        self.run(close())
        if self.attachment is not None:
            self.lost_attachments.append(self.attachment)
        self.stopped, self.attachment, self.holder = True, None, None

    @invariant()
    def every_event_is_in_the_log_once_in_order_and_seqs_are_dense(self):
        logged = self.run(self.logged())
        assert [frame.seq for frame in logged] == list(range(1, len(logged) + 1))
        texts = [frame.event.user_message.text for frame in logged if frame.event.HasField("user_message")]
        assert texts == self.stored
        assert len({frame.event.event_id for frame in logged if frame.HasField("event")}) == sum(
            frame.HasField("event") for frame in logged
        )
        stops = [frame.seq for frame in logged if frame.state == pb.AGENT_SESSION_STATE_STOPPED]
        assert stops == ([len(logged)] if self.stopped else [])


TestSessionMachine = pytest.mark.slow(pytest.mark.timeout(120)(SessionMachine.TestCase))
TestSessionMachine.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
