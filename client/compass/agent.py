"""An agent written in Python: it publishes what it does, and is handed the prompts and aborts of its session.

Owns the control stream: opening it behind the push stream's hello, reconnecting, taking each item once. What is pushed
goes through a `Publisher`.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, TypeAlias

from compass import calls, errors
from compass.errors import CompassError, ServerUnavailableError
from compass.publish import Publisher
from compass.retry import Patience
from compass.slimming import Event
from compass.v1 import agent_gateway_pb2 as pb

_log = logging.getLogger("compass")

ControlCall: TypeAlias = calls.ReadableCall[pb.ControlResponse]

_FIRST_REST_S = 0.5
_LONGEST_REST_S = 30.0
_HANG_UP_S = 0.1

_RETRYABLE = (
    errors.LogFullError,
    errors.ProducerNotAttachedError,
    errors.ProducerReplacedError,  # by this producer's own reconnect, or the publisher says so
    errors.ServerFailedError,
    errors.ServerUnavailableError,
)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt that the agent is handed: its own until it is recorded or returned."""

    prompt_id: str
    text: str
    steer: bool
    """Whether it belongs into the running turn."""
    control_seq: int
    _agent: "Agent" = field(repr=False, compare=False)

    async def recorded(self, event: Event) -> None:
        """Push the user message that the prompt became: an inner event `message_start` with the role `user`.

        From then on the prompt is out of the queue. Raises as `Publisher.push`.
        """
        await self._agent.push(event, prompt_id=self.prompt_id)

    async def returned(self) -> None:
        """Give the prompt back, to its place in the queue. Only for one that the agent cannot act on any more."""
        self._agent.give_back(self)


@dataclass(frozen=True, slots=True)
class Abort:
    """The running turn is to be aborted."""

    control_seq: int


Control: TypeAlias = Prompt | Abort


class Agent:
    """One agent of one session. Made by `Client.agent`, used as `async with`.

    `control` yields what the agent must do, each item once, over any number of reconnects: a prompt that this agent
    holds is not handed to it again. `push` publishes what it does. Prompts that it is handed and neither records nor
    returns go back to the queue when the next producer process takes its place.
    """

    def __init__(
        self,
        publisher: Publisher,
        open_control: Callable[[pb.ControlRequest], ControlCall],
        *,
        patience: Patience,
    ) -> None:
        self.publisher = publisher
        self._open_control = open_control
        self._patience = patience
        self._applied_seq = 0
        self._held: set[str] = set()
        self._call: ControlCall | None = None
        self._returns_in_a_row = 0
        self._rests_until_s = 0.0

    @property
    def session_id(self) -> str:
        """The session."""
        return self.publisher.session_id

    async def __aenter__(self) -> Self:
        await self.publisher.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._hang_up()
        await self.publisher.__aexit__(exc_type, exc, traceback)

    async def push(self, event: Event, *, prompt_id: str = "") -> None:
        """Publish one inner event. With `prompt_id` it is the user message that the prompt became."""
        await self.publisher.push(event, prompt_id=prompt_id)
        if prompt_id:
            self._held.discard(prompt_id)
            self._returns_in_a_row = 0

    async def flush(self) -> None:
        """Wait until everything pushed so far is durable."""
        await self.publisher.flush()

    def give_back(self, prompt: Prompt) -> None:
        """Return a prompt that the agent cannot act on any more. Nothing happens if it is not held."""
        if prompt.prompt_id not in self._held:
            return
        self._held.discard(prompt.prompt_id)
        self._returns_in_a_row += 1
        if self._returns_in_a_row == 1:
            self.publisher.return_prompt(prompt.prompt_id, control_seq=prompt.control_seq)
            return
        self._rest()
        # The server must see first that nobody listens, or it hands the prompt over again at once.
        asyncio.get_running_loop().call_later(_HANG_UP_S, self._say_returned, prompt)

    async def control(self) -> AsyncIterator[Control]:
        """Yield what the agent must do, in order, until the publisher has ended.

        Asking for the first item says that the agent can take prompts. Raises what ends the publisher, and
        ServerUnavailableError once nothing has succeeded for too long.
        """
        while await self.publisher.attached():
            lost: CompassError = ServerUnavailableError("OK")
            try:
                async for control in self._read():
                    yield control
            except _RETRYABLE as error:
                if self.publisher.is_ending:
                    return
                lost = error
            except errors.SessionStoppedError:
                if self.publisher.is_ending:
                    return
                raise
            finally:
                self._hang_up()
            await self._pause(lost)

    async def _read(self) -> AsyncIterator[Control]:
        publisher = self.publisher
        self._call = self._open_control(
            pb.ControlRequest(
                session_id=publisher.session_id,
                producer_id=publisher.producer_id,
                epoch=publisher.epoch,
                applied_control_seq=self._applied_seq,
            ),
        )
        call = self._call
        while (response := await calls.read(call, silence_s=None, session_id=self.session_id)) is not None:
            self._patience.progress()
            if (control := self._take(response)) is not None:
                yield control

    def _take(self, response: pb.ControlResponse) -> Control | None:
        """Take one item. None for what was taken before, and for a prompt that is held."""
        if response.control_seq <= self._applied_seq:
            return None
        self._applied_seq = response.control_seq
        if response.HasField("abort"):
            return Abort(response.control_seq)
        prompt = response.prompt
        if prompt.prompt_id in self._held:
            return None
        self._held.add(prompt.prompt_id)
        return Prompt(prompt.prompt_id, prompt.text, prompt.steer, response.control_seq, self)

    def _say_returned(self, prompt: Prompt) -> None:
        # A publisher that is over has told so to whoever uses it, and its end returns the prompt too.
        with contextlib.suppress(CompassError):
            self.publisher.return_prompt(prompt.prompt_id, control_seq=prompt.control_seq)

    def _rest(self) -> None:
        """Take no prompts for a while: one that is refused each time would go round and round for ever.

        Hanging up leaves the queue where people see it, and can cancel.
        """
        rest_s = min(_LONGEST_REST_S, _FIRST_REST_S * 2.0 ** (self._returns_in_a_row - 2))
        self._rests_until_s = asyncio.get_running_loop().time() + rest_s
        self._hang_up()

    async def _pause(self, lost: CompassError) -> None:
        rest_s = self._rests_until_s - asyncio.get_running_loop().time()
        if rest_s > 0:
            await asyncio.sleep(rest_s)
            return
        if not self._patience.is_failing:
            _log.info("control stream lost, trying again: session=%s error=%s", self.session_id, lost)
        await self._patience.pause(lost)

    def _hang_up(self) -> None:
        call, self._call = self._call, None
        if call is not None:
            call.cancel()
