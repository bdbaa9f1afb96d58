"""The client: one server and what can be asked of it. Reading a session is `tail`, writing one is `publish`."""

import time
import uuid
from collections.abc import AsyncIterator, Generator
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from compass import calls
from compass.agent import Agent, ControlCall
from compass.channels import Channels
from compass.errors import ServerUnavailableError
from compass.outbox import OUTBOX_BOUNDS
from compass.publish import Publisher
from compass.push_stream import PushCall
from compass.retry import Patience
from compass.slimming import Event, slim
from compass.status import translated
from compass.tail import Tail, TailCall
from compass.target import resolve
from compass.v1 import agent_gateway_pb2 as agent_pb
from compass.v1 import compass_pb2 as pb
from compass.v1.agent_gateway_pb2_grpc import AgentGatewayStub
from compass.v1.compass_pb2_grpc import CompassServiceStub

if TYPE_CHECKING:
    from compass.v1.agent_gateway_pb2_grpc import AgentGatewayAsyncStub
    from compass.v1.compass_pb2_grpc import CompassServiceAsyncStub

_DELIVERIES = {"complete": pb.TAIL_DELIVERY_COMPLETE, "live": pb.TAIL_DELIVERY_LIVE}


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """How patient a client is."""

    retry_for_s: float | None = 60.0
    """How long a stream is tried again without any success before it raises. None = for ever."""
    silence_s: float = 30.0
    """How long a tail may be silent before it reconnects: three heartbeats of a server."""
    timeout_s: float = 10.0
    """How long a single call may take."""

    def __post_init__(self) -> None:
        """Refuse what cannot be waited."""
        for name in self.__slots__:
            seconds = getattr(self, name)
            if seconds is not None and not seconds > 0:
                raise ValueError(f"{name} must be more than 0, got {seconds}")


def connect(
    target: str | None = None,
    *,
    retry_for_s: float | None = 60.0,
    silence_s: float = 30.0,
    timeout_s: float = 10.0,
) -> "Client":
    """Make a client of the server at HOST:PORT or unix:/PATH; by default at COMPASS_SERVER, else 127.0.0.1:7420.

    Nothing is dialled before the first use. Use it as `async with compass.connect() as client`, or
    `client = await compass.connect()` and `await client.close()`. Raises ValueError for what is no address.
    """
    return Client(resolve(target), ClientOptions(retry_for_s, silence_s, timeout_s))


class Client:
    """One server. Belongs to the event loop that uses it first.

    Single calls raise the server's refusals as CompassError classes, and ServerUnavailableError when it cannot be
    reached within `timeout_s`.
    """

    def __init__(self, target: str, options: ClientOptions) -> None:
        self.target = target
        self.options = options
        self._channels = Channels(target)
        self._producer_id = f"sdk-{uuid.uuid4().hex[:16]}"

    def __await__(self) -> Generator[None, None, Self]:
        return self._itself().__await__()

    async def _itself(self) -> Self:
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections. Open tails raise TailInterrupted, open publishers ClientClosedError. Idempotent."""
        await self._channels.close()

    async def server_info(self) -> pb.GetServerInfoResponse:
        """Report version and limits of the server."""
        with translated():
            return await self._sessions.GetServerInfo(pb.GetServerInfoRequest(), timeout=self.options.timeout_s)

    async def sessions(self) -> AsyncIterator[pb.SessionInfo]:
        """Yield every session, newest change first."""
        request = pb.ListSessionsRequest()
        while True:
            with translated():
                response = await self._sessions.ListSessions(request, timeout=self.options.timeout_s)
            for session in response.sessions:
                yield session
            if not response.next_page_token:
                return
            request.page_token = response.next_page_token

    async def get_session(self, session: str) -> pb.SessionInfo:
        """Report one session. Raises SessionNotFoundError."""
        with translated(session):
            request = pb.GetSessionRequest(session_id=session)
            return (await self._sessions.GetSession(request, timeout=self.options.timeout_s)).session

    async def transcript(self, session: str) -> AsyncIterator[pb.TranscriptMessage]:
        """Yield the messages of a session, oldest first. Raises SessionNotFoundError."""
        request = pb.GetTranscriptRequest(session_id=session)
        while True:
            with translated(session):
                response = await self._sessions.GetTranscript(request, timeout=self.options.timeout_s)
            for message in response.messages:
                yield message
            if not response.next_page_token:
                return
            request.page_token = response.next_page_token

    async def close_session(self, session: str) -> pb.SessionInfo:
        """Stop a session for good and return it; one that is stopped stays so. Raises SessionNotFoundError."""
        with translated(session):
            request = pb.CloseSessionRequest(session_id=session)
            return (await self._sessions.CloseSession(request, timeout=self.options.timeout_s)).session

    async def push_event(
        self,
        session: str,
        event: Event,
        *,
        dialect: str = "",
        producer_id: str = "",
        epoch: int = 0,
        seq: int = 0,
    ) -> agent_pb.PushEventResponse:
        """Push one inner event; when this returns it is durable. Named producer, epoch and seq make it idempotent."""
        request = agent_pb.PushEventRequest(
            session_id=session,
            event=agent_pb.InnerEvent(json=slim(event).json),
            dialect=dialect,
            producer_id=producer_id,
            epoch=epoch,
            seq=seq,
        )
        with translated(session):
            return await self._gateway.PushEvent(request, timeout=self.options.timeout_s)

    async def submit_prompt(
        self,
        session: str,
        text: str,
        *,
        client_request_id: str | None = None,
        author: str = "",
        steer: bool = False,
    ) -> pb.SubmitPromptResponse:
        """Put a prompt into a session's inbox; when this returns it is durable, and the agent gets it when it rests.

        client_request_id: the same id with the same text is the same prompt; by default a new one, so that only the
        attempts of this call are. steer: hand it to a working agent at once. Raises SessionNotFoundError,
        SessionStoppedError, PromptConflictError, InboxFullError.
        """
        request = pb.SubmitPromptRequest(
            session_id=session,
            text=text,
            client_request_id=uuid.uuid4().hex if client_request_id is None else client_request_id,
            author=author,
            steer=steer,
        )
        with translated(session):
            return await self._sessions.SubmitPrompt(request, timeout=self.options.timeout_s)

    async def prompts(self, session: str) -> list[pb.SessionPrompt]:
        """List the open prompts of a session, next to be offered first. Raises SessionNotFoundError."""
        with translated(session):
            request = pb.ListPromptsRequest(session_id=session)
            return list((await self._sessions.ListPrompts(request, timeout=self.options.timeout_s)).prompts)

    async def cancel_prompt(self, session: str, prompt_id: str) -> pb.CancelPromptResponse:
        """Cancel a prompt that waits; one that is cancelled stays so.

        Raises SessionNotFoundError, PromptNotFoundError, PromptClosedError for one that the agent was handed.
        """
        with translated(session):
            request = pb.CancelPromptRequest(session_id=session, prompt_id=prompt_id)
            return await self._sessions.CancelPrompt(request, timeout=self.options.timeout_s)

    async def abort(self, session: str) -> None:
        """Ask the session's agent to abort the running turn; when this returns the asking is durable.

        Asked of a resting agent it means nothing. Raises SessionNotFoundError, SessionStoppedError.
        """
        with translated(session):
            await self._sessions.AbortSession(
                pb.AbortSessionRequest(session_id=session), timeout=self.options.timeout_s
            )

    async def watch_sessions(self) -> AsyncIterator[pb.WatchSessionsResponse]:
        """Yield the session list as it changes: first all of it, until a response says `current`, then what changes.

        After a reconnect the whole list comes again. Raises ServerUnavailableError once nothing has succeeded for too
        long.
        """
        patience = Patience(self.options.retry_for_s)
        while True:
            call: calls.ReadableCall[pb.WatchSessionsResponse] = self._sessions.WatchSessions(pb.WatchSessionsRequest())
            try:
                while (response := await calls.read(call, silence_s=self.options.silence_s)) is not None:
                    patience.progress()
                    yield response
                lost = ServerUnavailableError("OK")  # this stream never ends by itself
            except ServerUnavailableError as error:
                lost = error
            finally:
                call.cancel()
            await patience.pause(lost)

    def tail(
        self,
        session: str,
        *,
        since: int = 0,
        until: int = 0,
        last: int | None = None,
        live: bool = False,
        delivery: Literal["complete", "live"] = "complete",
        follow: bool = True,
    ) -> Tail:
        """Tail a session: an async iterator of frames and gaps that reconnects and resumes by itself.

        since: begin after this seq; 0 is the start of what is kept. last: begin this many seqs before the head instead.
        live: begin with what happens from now, after at most one state and one activity frame that say how it stands.
        until: end after this seq. follow: go on until the session is stopped, else end at the head.
        delivery: "complete" gets every frame, at the reader's pace; "live" gets trace frames only while it keeps up,
        told as gaps, and every priority frame with little delay. Raises ValueError for a value that is none of these.
        """
        if delivery not in _DELIVERIES:
            raise ValueError(f"delivery must be one of {', '.join(_DELIVERIES)}, got {delivery!r}")
        if last is not None and last < 0:
            raise ValueError(f"last must be at least 0, got {last}")
        request = pb.TailSessionRequest(
            session_id=session,
            since_seq=since,
            until_seq=until,
            start=pb.SESSION_START_LIVE if live else pb.SESSION_START_UNSPECIFIED,
            delivery=_DELIVERIES[delivery],
            follow=follow,
        )

        def subscribe(request: pb.TailSessionRequest) -> TailCall:
            # A live tail has a small window: the default one lets megabytes wait in front of a priority frame.
            channel = self._channels.get(small_window=delivery == "live")
            return CompassServiceStub(channel).TailSession(request)

        async def find_since() -> int:
            return max(0, (await self.get_session(session)).head_seq - (last or 0))

        return Tail(
            subscribe,
            request,
            patience=Patience(self.options.retry_for_s),
            silence_s=self.options.silence_s,
            find_since=None if last is None else find_since,
        )

    def publish(
        self,
        session: str,
        *,
        producer_id: str | None = None,
        epoch: int | None = None,
        dialect: str = "",
        agent_name: str = "",
        agent_version: str = "",
        title: str = "",
        take_over: bool = False,
        wait: bool = False,
        close_on_exit: bool = True,
        acked_seq: int = 0,
        trace_items: int = OUTBOX_BOUNDS.trace_items,
        priority_items: int = OUTBOX_BOUNDS.priority_items,
    ) -> Publisher:
        """Publish a session: `async with client.publish(...) as publisher`, then `await publisher.push(event)`.

        producer_id: by default one of this client's own. epoch: by default a new one. Name both, and push the same
        events with `wait=True`, to go on where an earlier process stopped.
        take_over: detach another producer instead of being refused.
        wait: push waits for room for every event, so that nothing is dropped, as for a file; else it waits only for
        what may not be dropped. close_on_exit: leaving the block stops the session.
        acked_seq: what is pushed begins after this producer seq, up to which an earlier process had it acknowledged.
        trace_items, priority_items: how many events of each lane are held until they are sent; past that, trace drops
        its oldest and the rest waits.
        """
        hello = agent_pb.ProducerHello(
            session_id=session,
            producer_id=producer_id or self._producer_id,
            epoch=epoch or time.time_ns() // 1_000,
            dialect=dialect,
            agent_name=agent_name,
            agent_version=agent_version,
            title=title,
            take_over=take_over,
        )

        def open_stream() -> PushCall:
            return self._gateway.PushEvents()  # type: ignore[call-arg] # grpc-stubs knows only the form with an iterator

        return Publisher(
            open_stream,
            hello,
            bounds=replace(OUTBOX_BOUNDS, trace_items=trace_items, priority_items=priority_items),
            patience=Patience(self.options.retry_for_s),
            wait=wait,
            close_on_exit=close_on_exit,
            acked_seq=acked_seq,
        )

    def agent(
        self,
        session: str,
        *,
        producer_id: str | None = None,
        epoch: int | None = None,
        agent_name: str = "",
        agent_version: str = "",
        title: str = "",
        take_over: bool = False,
        wait: bool = False,
        close_on_exit: bool = True,
    ) -> Agent:
        """Be the agent of a session: `async with client.agent(...) as agent`, then `async for item in agent.control()`.

        The options are those of `publish`.
        """
        publisher = self.publish(
            session,
            producer_id=producer_id,
            epoch=epoch,
            agent_name=agent_name,
            agent_version=agent_version,
            title=title,
            take_over=take_over,
            wait=wait,
            close_on_exit=close_on_exit,
        )
        return self.agent_of(publisher)

    def agent_of(self, publisher: Publisher) -> Agent:
        """Be the agent of a session through a publisher of one's own, made by `publish` and not entered yet."""

        def open_control(request: agent_pb.ControlRequest) -> ControlCall:
            return self._gateway.Control(request)

        return Agent(publisher, open_control, patience=Patience(self.options.retry_for_s))

    @property
    def _sessions(self) -> "CompassServiceAsyncStub":
        return CompassServiceStub(self._channels.get())

    @property
    def _gateway(self) -> "AgentGatewayAsyncStub":
        return AgentGatewayStub(self._channels.get())
