"""The door for panes: `compass.v1.CompassService`."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from google.protobuf.message import Message

from compass.limits import MAX_RESPONSE_BYTES
from compass.v1 import compass_pb2 as pb
from compass_service.doors import requests, tailing
from compass_service.doors.status import ServicerContext
from compass_service.hub.hub import Hub
from compass_service.hub.transcript import Transcripts
from compass_service.log.protocol import SessionLog, StoredSession
from compass_service.problems import DrainingError
from compass_service.session.registry import Registry
from compass_service.session.report import session_info

_WATCH_PACE_S = 0.05
_Message = TypeVar("_Message", bound=Message)


class CompassDoor:
    """Reads requests, calls the floors below, writes responses."""

    def __init__(
        self,
        log: SessionLog,
        registry: Registry,
        hub: Hub,
        *,
        server_info: pb.GetServerInfoResponse,
        heartbeat_s: float,
    ) -> None:
        self._log = log
        self._registry = registry
        self._hub = hub
        self._transcripts = Transcripts(log)
        self._server_info = server_info
        self._heartbeat_s = heartbeat_s

    async def subscribe_agent_session(
        self,
        request: pb.SubscribeAgentSessionRequest,
        context: ServicerContext,
    ) -> None:
        """Serve SubscribeAgentSession."""
        async with self._hub.subscribe(requests.subscribe_wants(request)) as subscription:
            await context.send_initial_metadata(())
            await tailing.write_frames(subscription, context)

    async def tail_session(self, request: pb.TailSessionRequest, context: ServicerContext) -> None:
        """Serve TailSession."""
        async with self._hub.subscribe(requests.tail_wants(request)) as subscription:
            await context.send_initial_metadata(())
            await tailing.write_parts(subscription, context)

    async def list_sessions(self, request: pb.ListSessionsRequest, _: ServicerContext) -> pb.ListSessionsResponse:
        """Serve ListSessions."""
        limit = requests.page_size(request.page_size)
        before: tuple[int, str] | None = None
        if request.page_token:
            updated_unix_ms, session_id = requests.page_parts(request.page_token, 2)
            before = int(updated_unix_ms), session_id
        page = await self._log.list(limit=limit, before=before)
        infos = _bounded(map(self._info, page))
        response = pb.ListSessionsResponse(sessions=infos)
        if infos and (len(infos) < len(page) or len(page) == limit):
            last = infos[-1]
            response.next_page_token = requests.page_token(last.updated_at_unix_ms, last.session_id)
        return response

    async def get_session(self, request: pb.GetSessionRequest, _: ServicerContext) -> pb.GetSessionResponse:
        """Serve GetSession."""
        stored = await self._registry.find(requests.session_id(request.session_id))
        return pb.GetSessionResponse(session=self._info(stored))

    async def get_transcript(self, request: pb.GetTranscriptRequest, _: ServicerContext) -> pb.GetTranscriptResponse:
        """Serve GetTranscript."""
        limit = requests.page_size(request.page_size)
        first = int(requests.page_parts(request.page_token, 1)[0]) if request.page_token else 0
        rows, head_seq = await self._transcripts.rows(requests.session_id(request.session_id))
        response = pb.GetTranscriptResponse(messages=_bounded(rows[first : first + limit]), head_seq=head_seq)
        if first + len(response.messages) < len(rows):
            response.next_page_token = requests.page_token(first + len(response.messages))
        return response

    async def close_session(self, request: pb.CloseSessionRequest, _: ServicerContext) -> pb.CloseSessionResponse:
        """Serve CloseSession."""
        session = await self._registry.open(requests.session_id(request.session_id), create=False)
        await session.close()
        return pb.CloseSessionResponse(session=self._info(await self._registry.find(session.session_id)))

    async def watch_sessions(self, _: pb.WatchSessionsRequest, context: ServicerContext) -> None:
        """Serve WatchSessions."""
        watch = self._registry.watch()
        try:
            await context.send_initial_metadata(())
            before: tuple[int, str] | None = None
            while page := await self._log.list(limit=requests.MAX_PAGE_SIZE, before=before):
                await self._write_list(context, page)
                before = (page[-1].updated_unix_ms, page[-1].session_id)
            await context.write(pb.WatchSessionsResponse(current=True).SerializeToString())
            while True:
                await watch.wait(self._heartbeat_s, pace_s=_WATCH_PACE_S)
                if self._hub.is_draining:
                    raise DrainingError
                await self._write_changes(context, watch.take())
        finally:
            watch.close()

    async def get_server_info(self, _: pb.GetServerInfoRequest, __: ServicerContext) -> pb.GetServerInfoResponse:
        """Serve GetServerInfo."""
        return self._server_info

    async def submit_prompt(self, request: pb.SubmitPromptRequest, _: ServicerContext) -> pb.SubmitPromptResponse:
        """Serve SubmitPrompt."""
        submission = requests.submission(request)
        session = await self._registry.open(requests.session_id(request.session_id), create=False)
        prompt = await session.submit(submission)
        return pb.SubmitPromptResponse(prompt_id=prompt.prompt_id, state=pb.SessionPromptState.ValueType(prompt.state))

    async def cancel_prompt(self, request: pb.CancelPromptRequest, _: ServicerContext) -> pb.CancelPromptResponse:
        """Serve CancelPrompt."""
        session = await self._registry.open(requests.session_id(request.session_id), create=False)
        await session.cancel(request.prompt_id)
        return pb.CancelPromptResponse(state=pb.SESSION_PROMPT_STATE_CANCELLED)

    async def list_prompts(self, request: pb.ListPromptsRequest, _: ServicerContext) -> pb.ListPromptsResponse:
        """Serve ListPrompts."""
        session = await self._registry.open(requests.session_id(request.session_id), create=False)
        await session.settled()
        return pb.ListPromptsResponse(prompts=session.prompts.listed())

    async def abort_session(self, request: pb.AbortSessionRequest, _: ServicerContext) -> pb.AbortSessionResponse:
        """Serve AbortSession."""
        session = await self._registry.open(requests.session_id(request.session_id), create=False)
        await session.abort()
        return pb.AbortSessionResponse()

    def _info(self, stored: StoredSession) -> pb.SessionInfo:
        return session_info(stored, lag_dropped=self._hub.lag_dropped(stored.session_id))

    async def _write_changes(self, context: ServicerContext, changed: list[str]) -> None:
        found = [(session_id, await self._log.load(session_id)) for session_id in changed]
        gone = [session_id for session_id, stored in found if stored is None]
        await self._write_list(context, [stored for _, stored in found if stored is not None], gone)

    async def _write_list(
        self,
        context: ServicerContext,
        listed: Sequence[StoredSession],
        gone: Sequence[str] = (),
    ) -> None:
        """Write reports in responses of bounded size; one without any is the heartbeat."""
        waiting = list(map(self._info, listed))
        while True:
            infos = _bounded(waiting)
            response = pb.WatchSessionsResponse(sessions=infos, removed_session_ids=gone)
            await context.write(response.SerializeToString())
            if not (waiting := waiting[len(infos) :]):
                return
            gone = ()


def _bounded(messages: Iterable[_Message]) -> list[_Message]:
    """Take messages from the front, at least one if there is one, as far as one response may hold them."""
    taken: list[_Message] = []
    num_bytes = 0
    for message in messages:
        num_bytes += message.ByteSize()
        if taken and num_bytes > MAX_RESPONSE_BYTES // 2:
            break
        taken.append(message)
    return taken
