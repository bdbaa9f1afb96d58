"""What the state machines of a session share: a real log in a folder of its own, a registry, and a clock."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis.stateful import RuleBasedStateMachine

from compass.v1 import compass_pb2 as pb
from compass_service import frames
from compass_service.log import Retention, SqliteLog
from compass_service.session.registry import Registry
from compass_service.session.session import Session

WINDOW_MS = 1_000


class OnARealLog(RuleBasedStateMachine):
    """One session, `s`, whose service can be restarted."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.now_ms = 1_000
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

    async def close_service(self) -> None:
        await self.registry.settled()
        await self.log.close()

    async def session(self) -> Session:
        return await self.registry.open("s", create=True)

    def restart_service(self) -> None:
        async def reopen() -> None:
            await self.close_service()
            await self.open()

        self.run(reopen())

    def let_time_pass(self, passed_ms: int) -> None:
        self.now_ms += passed_ms

        async def sweep() -> None:
            await self.registry.sweep()
            await self.registry.settled()

        self.run(sweep())

    async def logged(self) -> list[pb.AgentSessionFrame]:
        """Read every frame of the session back."""
        stored = await self.log.load("s")
        if stored is None:
            return []
        page = await self.log.read("s", 1, end_seq=stored.head_seq + 1, max_bytes=1 << 30)
        return [
            pb.AgentSessionFrame.FromString(frames.body_of(frame)) for record in page.records for frame in record.frames
        ]

    def teardown(self):
        self.run(self.close_service())
        self.runner.close()
        self.folder.cleanup()
