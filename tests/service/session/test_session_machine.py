"""A session on a real log against a list-based model: attach, push, resend, cut, fence, restart, judge, close."""

import asyncio
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from compass.v1 import compass_pb2 as pb
from compass_service import frames
from compass_service.log import Retention, SqliteLog
from compass_service.problems import (
    ProducerAttachedError,
    ProducerFencedError,
    ProducerReplacedError,
    SequenceJumpError,
    SessionStoppedError,
)
from compass_service.session.holds import Attachment
from compass_service.session.producers import Hello
from compass_service.session.registry import Registry
from compass_service.session.session import Event, Session

WINDOW_MS = 1_000
PRODUCERS = st.sampled_from(["a", "b"])


def user_message(text: str) -> Event:
    message = {"role": "user", "content": [{"type": "text", "text": text}]}
    return Event(json.dumps({"type": "message_start", "message": message}))


class SessionMachine(RuleBasedStateMachine):
    """The model: which texts must be in the log, how far each producer has come, and who holds the session."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.now_ms = 1_000
        self.stored: list[str] = []
        self.cursors: dict[str, tuple[int, int]] = {}
        self.holder: str | None = None
        self.attachment: Attachment | None = None
        self.lost_attachments: list[Attachment] = []
        self.stopped = False

    @initialize()
    def start(self):
        self.run(self.open())

    def run(self, coroutine):
        return self.runner.run(coroutine)

    async def open(self) -> None:
        self.log = SqliteLog.open(Path(self.folder.name), retention=Retention(), reserve_bytes=0)
        self.registry = Registry(
            self.log,
            now_ms=lambda: self.now_ms,
            reattach_window_ms=WINDOW_MS,
            idle_ms=10,
            phase_limits={},
        )
        await self.registry.recover()

    async def session(self) -> Session:
        return await self.registry.open("s", create=True)

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
        async def reopen() -> None:
            await self.registry.settled()
            await self.log.close()
            await self.open()

        self.run(reopen())
        self.attachment = self.holder = None
        self.lost_attachments.clear()

    @rule(passed_ms=st.sampled_from([1, 50, WINDOW_MS + 1]))
    def pass_time(self, passed_ms):
        self.now_ms += passed_ms

        async def sweep() -> None:
            await self.registry.sweep()
            await self.registry.settled()

        self.run(sweep())

    @precondition(lambda self: self.stored)
    @rule()
    def close(self):
        async def close() -> None:
            await (await self.session()).close()

        self.run(close())
        if self.attachment is not None:
            self.lost_attachments.append(self.attachment)
        self.stopped, self.attachment, self.holder = True, None, None

    async def logged(self) -> list[pb.AgentSessionFrame]:
        stored = await self.log.load("s")
        if stored is None:
            return []
        page = await self.log.read("s", 1, end_seq=stored.head_seq + 1, max_bytes=1 << 30)
        return [
            pb.AgentSessionFrame.FromString(frames.body_of(frame)) for record in page.records for frame in record.frames
        ]

    @invariant()
    def every_event_is_in_the_log_once_in_order_and_seqs_are_dense(self):
        if not hasattr(self, "log"):
            return
        logged = self.run(self.logged())
        assert [frame.seq for frame in logged] == list(range(1, len(logged) + 1))
        texts = [frame.event.user_message.text for frame in logged if frame.event.HasField("user_message")]
        assert texts == self.stored
        assert len({frame.event.event_id for frame in logged if frame.HasField("event")}) == sum(
            frame.HasField("event") for frame in logged
        )
        stops = [frame.seq for frame in logged if frame.state == pb.AGENT_SESSION_STATE_STOPPED]
        assert stops == ([len(logged)] if self.stopped else [])

    def teardown(self):
        if hasattr(self, "log"):
            self.run(self.registry.settled())
            self.run(self.log.close())
        self.runner.close()
        self.folder.cleanup()


TestSessionMachine = pytest.mark.slow(pytest.mark.timeout(120)(SessionMachine.TestCase))
TestSessionMachine.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
