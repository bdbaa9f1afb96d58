"""What the agent says, and what is said to it: lines in, events into the spool, commands out."""

import asyncio
import contextlib
import json
import logging

from compass.agent import Abort, Agent, Prompt
from compass.bridge.dialects import Answer, Dialect, Dialog, Heard, Inner, OmpDialect, PiDialect, Ready
from compass.bridge.feeding import Feeding
from compass.bridge.process import AgentProcess
from compass.bridge.protocol import Protocol
from compass.bridge.spool import Spool
from compass.errors import InvalidEventError
from compass.outbox import MAX_EVENT_BYTES
from compass.slimming import slim

_log = logging.getLogger("compass.bridge")

_SILENCE_S = 2.0
"""An agent of unknown protocol that has said nothing for so long waits to be spoken to."""
_FIRST_TICK_S = 0.25
_LONGEST_TICK_S = 2.0
_ABORTS = frozenset({"abort", "abort_retry"})
"""Answers that the service reads too: a retry that ends behind one was cancelled."""


class Conversation:
    """One process, spoken to in one dialect.

    `read` and `control` are run side by side, and `keep_asking` beside them.
    """

    def __init__(
        self, process: AgentProcess, dialect: Dialect, protocol: Protocol, *, agent: Agent, spool: Spool
    ) -> None:
        self._process = process
        self._dialect = dialect
        self._protocol = protocol
        self._agent = agent
        self._spool = spool
        self._has_begun = asyncio.Event()
        self._is_ready = asyncio.Event()
        self._settled: list[Prompt] = []
        self._feeding = self._new_feeding()
        self._is_handed = asyncio.Event()

    async def read(self) -> None:
        """Read what the agent says, to the end of its output."""
        if self._protocol is Protocol.RPC:
            self._open()
        async for line in self._process.lines():
            try:
                heard = self._dialect.read(line)
            except ValueError:
                _log.warning("the agent wrote a line that is not of its protocol: %d bytes", len(line))
                continue
            for each in heard:
                await self._hear(each)

    async def control(self) -> None:
        """Hand the agent what the service wants of it, from when it is ready until the publisher ends."""
        if self._protocol is Protocol.AUTO:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_SILENCE_S):
                    await self._has_begun.wait()
            if not self._has_begun.is_set():
                self._open()
        await self._is_ready.wait()
        async for control in self._agent.control():
            match control:
                case Prompt():
                    self._feeding.hand(control)
                    self._is_handed.set()
                case Abort():
                    self._feeding.abort()

    async def keep_asking(self) -> None:
        """Ask the agent how it stands, less and less often, while something depends on it."""
        while True:
            await self._is_handed.wait()
            self._is_handed.clear()
            pause_s = _FIRST_TICK_S
            while self._feeding.is_due:
                await asyncio.sleep(pause_s)
                pause_s = _FIRST_TICK_S if self._is_handed.is_set() else min(_LONGEST_TICK_S, pause_s * 1.25)
                self._is_handed.clear()
                self._feeding.tick()

    def _open(self) -> None:
        self._has_begun.set()
        self._protocol = Protocol.RPC
        for command in self._dialect.opening():
            self._process.write(command)

    def _begin(self, heard: Heard) -> None:
        """Learn from the first line what the command line did not say."""
        self._has_begun.set()
        if isinstance(heard, Ready) and type(self._dialect) is PiDialect:
            # Only oh-my-pi greets, and it takes more care of large messages.
            self._dialect = OmpDialect()
            self._feeding = self._new_feeding()
        if self._protocol is Protocol.AUTO:
            if isinstance(heard, Ready | Answer):
                self._protocol = Protocol.RPC
            else:
                self._protocol = Protocol.JSON
                self._process.end_input()

    async def _hear(self, heard: Heard) -> None:
        if not self._is_ready.is_set():
            if not self._has_begun.is_set() or isinstance(heard, Ready):
                self._begin(heard)
            if self._protocol is Protocol.RPC and self._dialect.is_ready(heard):
                self._is_ready.set()
        for command in self._dialect.reply(heard):
            self._process.write(command)
        match heard:
            case Inner():
                await self._inner(heard)
            case Answer():
                await self._answer(heard)
            case Dialog():
                await self._dialog(heard)

    async def _inner(self, event: Inner) -> None:
        prompt = self._feeding.heard(event)
        if prompt is None:
            await self._keep(event.line)
        else:
            await self._keep(_as_steer(event.line) if prompt.steer else event.line, prompt)

    async def _answer(self, answer: Answer) -> None:
        self._feeding.answered(answer)
        while self._settled:
            prompt = self._settled.pop()
            await self._keep(_user_message(prompt), prompt)
        if answer.command in _ABORTS:
            await self._keep(answer.line)

    async def _dialog(self, dialog: Dialog) -> None:
        """Show that the agent asks, close the dialog, and show that too: nobody is there who could answer."""
        await self._keep(dialog.line)
        self._process.write(self._dialect.cancel_dialog(dialog.dialog_id))
        await self._keep(json.dumps({"type": "extension_ui_response", "id": dialog.dialog_id}).encode())

    async def _keep(self, event: bytes, prompt: Prompt | None = None) -> None:
        try:
            slimmed = slim(event)
        except InvalidEventError:
            _log.warning("the agent wrote a line that is not one JSON object: %d bytes", len(event))
            return
        text = slimmed.json
        if slimmed.num_bytes > MAX_EVENT_BYTES:
            if prompt is not None:
                # The agent has it, whatever it made of it: offered again, it would run twice.
                await self._keep(_user_message(prompt), prompt)
            # It cannot travel; what stands for it keeps the count of events right.
            text = json.dumps({"type": "notice", "message": f"an event of {slimmed.num_bytes:,} bytes was dropped"})
            prompt = None
        await self._spool.append(text, "" if prompt is None else prompt.prompt_id)

    def _new_feeding(self) -> Feeding:
        return Feeding(
            self._dialect,
            write=self._process.write,
            settled=self._settled.append,
            give_back=self._agent.give_back,
        )


def _as_steer(line: bytes) -> bytes:
    """Mark a user message as injected into a running turn, which the agent itself does not."""
    event = json.loads(line.decode(errors="replace"))
    event["message"]["steering"] = True
    return json.dumps(event).encode()


def _user_message(prompt: Prompt) -> bytes:
    """Show a prompt that the agent dealt with by a command of its own, without a message."""
    message = {"role": "user", "content": [{"type": "text", "text": prompt.text}], "attribution": "bridge"}
    return json.dumps({"type": "message_start", "message": message}).encode()
