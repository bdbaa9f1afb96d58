"""One run of an agent: from taking the session to the agent's end and its delivery."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compass import errors
from compass.agent import Agent
from compass.bridge.conversation import Conversation
from compass.bridge.dialects import DIALECTS, Dialect
from compass.bridge.process import AgentProcess, Exit
from compass.bridge.protocol import Protocol, dialect_of, protocol_of
from compass.bridge.running import first_of, running
from compass.bridge.spool import DEFAULT_MAX_BYTES, Spool, default_spool
from compass.client import Client
from compass.publish import Publisher

_log = logging.getLogger("compass.bridge")

_LAST_OUTPUT_S = 2.0
"""How long the output of a process that has ended may be held open by what it has started."""
_SETTLE_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class BridgeOptions:
    """How an agent is run."""

    protocol: Protocol = Protocol.AUTO
    dialect: Callable[[], Dialect] | None = None
    """None = by the command's name."""
    spool: Path = field(default_factory=default_spool)
    spool_bytes: int = DEFAULT_MAX_BYTES
    title: str = ""
    take_over: bool = False
    grace_s: float = 5.0
    """How long the agent may take to end when it is asked to."""
    deliver_s: float = 60.0
    """How long the service may take to acknowledge what is left once the agent has ended by itself."""
    leave_s: float = 10.0
    """The same once the bridge was asked to stop."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended."""

    exit: Exit
    was_asked: bool
    """Whether the bridge was asked to stop."""
    was_told: bool = True
    """Whether the service knows of the end. False when it could not be reached in time."""
    num_undelivered: int = 0
    """Events that it did not acknowledge. They are in the spool, for the next run."""


class _UndeliveredError(Exception):
    """The service did not acknowledge everything in time. Leaves the publisher without waiting for it."""

    def __init__(self, ended: Ended) -> None:
        super().__init__()
        self.ended = ended


class Bridge:
    """Runs one agent process for one session.

    `run` ends when the agent does, or some time after `stop`. The session is then stopped, or errored when the agent
    ended by itself with a failure. What the service has not acknowledged stays in the spool.
    """

    def __init__(self, client: Client, session_id: str, command: Sequence[str], options: BridgeOptions) -> None:
        self._client = client
        self._session_id = session_id
        self._command = tuple(command)
        self._options = options
        self._stop = asyncio.Event()
        self.has_agent = False
        """Whether the agent was started. Before that there is nothing to stop but the run itself."""

    def stop(self) -> None:
        """Ask the agent to end, and close the session. Idempotent."""
        self._stop.set()

    async def run(self) -> Ended:
        """Run the agent to its end.

        Raises SpoolBusyError while another bridge runs this session, OSError when the agent cannot be started, and what
        ends a publisher: SessionStoppedError, ProducerAttachedError, ProducerFencedError.
        """
        spool = Spool(self._options.spool, self._session_id, max_bytes=self._options.spool_bytes)
        try:
            return await self._hold(spool)
        except _UndeliveredError as left:
            return left.ended
        finally:
            spool.close()

    async def _hold(self, spool: Spool) -> Ended:
        """Take the session as the producer of this spool, and run the agent."""
        await self._deliver_rest(spool)
        spool.begin()
        dialect = (self._options.dialect or DIALECTS[dialect_of(self._command)])()
        publisher = self._client.publish(
            self._session_id,
            producer_id=spool.identity.producer_id,
            epoch=spool.identity.epoch,
            agent_name=dialect.name,
            title=self._options.title,
            take_over=self._options.take_over,
            wait=True,
            close_on_exit=False,
        )
        async with self._client.agent_of(publisher) as agent:
            await publisher.attached()
            return await self._run_agent(agent, spool, dialect)

    async def _deliver_rest(self, spool: Spool) -> None:
        """Deliver what a bridge that was killed has left behind, and make sure that its agent is gone."""
        left_behind = spool.identity.process
        if left_behind is not None and left_behind.end():
            _log.warning("ended the agent that an earlier bridge has left behind: pid=%d", left_behind.pid)
        if not spool.num_kept:
            return
        publisher = self._client.publish(
            self._session_id,
            producer_id=spool.identity.producer_id,
            epoch=spool.identity.epoch,
            acked_seq=spool.acked_seq,
            take_over=self._options.take_over,
            wait=True,
            close_on_exit=False,
        )
        try:
            async with publisher:
                while (spooled := spool.take()) is not None:
                    await publisher.push(spooled.event, prompt_id=spooled.prompt_id)
        except (errors.ProducerFencedError, errors.SequenceJumpError) as error:
            _log.warning("what was spooled cannot be delivered any more: events=%d error=%s", spool.num_kept, error)

    async def _run_agent(self, agent: Agent, spool: Spool, dialect: Dialect) -> Ended:
        protocol = self._options.protocol
        if protocol is Protocol.AUTO:
            protocol = protocol_of(self._command)
        process = await AgentProcess.start(self._command, takes_commands=protocol is not Protocol.JSON)
        try:
            self.has_agent = True
            spool.note_process(process.pid)
            conversation = Conversation(process, dialect, protocol, agent=agent, spool=spool)
            return await self._converse(process, conversation, agent, spool)
        except asyncio.CancelledError:
            process.kill()  # who ends the bridge at once does not wait for an agent that takes its time
            raise
        finally:
            await process.terminate(grace_s=self._options.grace_s)
            process.close()

    async def _converse(self, process: AgentProcess, conversation: Conversation, agent: Agent, spool: Spool) -> Ended:
        async with contextlib.AsyncExitStack() as stack:
            stopping, exiting, pumping, reading, *others = [
                await stack.enter_async_context(running(work))
                for work in (
                    self._stop.wait(),
                    process.wait(),
                    _pump(spool, agent),
                    conversation.read(),
                    conversation.control(),
                    conversation.keep_asking(),
                    agent.publisher.ended(),
                    _settle(spool, agent),
                )
            ]
            await first_of({stopping, exiting, reading}, beside={pumping, *others})
            if not (stopping.done() or exiting.done()):
                await self._outlast_silence(stopping, exiting)
            was_asked = stopping.done()
            if was_asked:
                _log.info("the agent is asked to end: session=%s", self._session_id)
            await process.terminate(grace_s=self._options.grace_s)
            exit_ = await process.wait()
            await asyncio.wait([reading], timeout=_LAST_OUTPUT_S)
            reading.cancel()
            return await self._deliver(agent, spool, Ended(exit_, was_asked), pumping)

    async def _outlast_silence(self, *endings: "asyncio.Task[Any]") -> None:
        """Give an agent that has closed its output the time to end: it can show nothing any more, no prompt either."""
        done, _ = await asyncio.wait(endings, timeout=self._options.grace_s, return_when=asyncio.FIRST_COMPLETED)
        if not done:
            _log.warning("the agent has closed its output and lives on: it is ended")

    async def _deliver(self, agent: Agent, spool: Spool, ended: Ended, pumping: "asyncio.Task[Any]") -> Ended:
        """Have the service acknowledge everything, and say how the agent ended."""
        spool.finish()
        try:
            async with asyncio.timeout(self._options.leave_s if ended.was_asked else self._options.deliver_s):
                await asyncio.wait([pumping])
                pumping.result()
                await _say_ended(agent.publisher, ended)
        except TimeoutError:
            spool.settle(agent.publisher.stats.acked_seq)
            raise _UndeliveredError(
                Ended(ended.exit, ended.was_asked, was_told=False, num_undelivered=spool.num_kept)
            ) from None
        spool.settle(agent.publisher.stats.acked_seq)
        return ended


async def _pump(spool: Spool, agent: Agent) -> None:
    """Push what is in the spool, as it comes, until it is finished."""
    while True:
        while (spooled := spool.take()) is not None:
            await agent.push(spooled.event, prompt_id=spooled.prompt_id)
        if spool.is_finished:
            return
        await spool.wait()


async def _settle(spool: Spool, agent: Agent) -> None:
    """Forget what is acknowledged, now and then."""
    while True:
        await asyncio.sleep(_SETTLE_EVERY_S)
        spool.settle(agent.publisher.stats.acked_seq)


async def _say_ended(publisher: Publisher, ended: Ended) -> None:
    if ended.was_asked or ended.exit.is_clean:
        await publisher.close()
    else:
        await publisher.report_exit(
            code=ended.exit.code,
            signal=ended.exit.signal,
            last_stderr=ended.exit.last_stderr,
        )
