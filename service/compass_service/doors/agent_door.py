"""The door for agents: `compass.v1.AgentGateway`."""

import asyncio

from compass.v1 import agent_gateway_pb2 as gateway
from compass_service.doors import requests
from compass_service.doors.push_stream import PushStream
from compass_service.doors.status import ServicerContext
from compass_service.hub.hub import Hub
from compass_service.problems import DrainingError, InvalidRequestError
from compass_service.session.control import Control
from compass_service.session.holds import Controller
from compass_service.session.registry import Registry
from compass_service.session.session import Session


class AgentDoor:
    """Reads requests, calls the sessions, writes acknowledgements."""

    def __init__(self, registry: Registry, hub: Hub, *, window_events: int, window_bytes: int) -> None:
        self._registry = registry
        self._hub = hub
        self._window_events = window_events
        self._window_bytes = window_bytes

    async def push_events(self, _: object, context: ServicerContext) -> None:
        """Serve PushEvents."""
        if self._hub.is_draining:
            raise DrainingError
        await context.send_initial_metadata(())
        stream = PushStream(context, window_events=self._window_events, window_bytes=self._window_bytes)
        if (first := await stream.read()) is None:
            return
        if first.WhichOneof("item") != "hello":
            raise InvalidRequestError("item", "must be hello in the first message")
        hello = requests.hello(first.hello)
        session = await self._registry.open(hello.session_id, create=True)
        attachment = session.attach(hello)
        try:
            await stream.run(session, attachment)
        finally:
            session.detach(attachment)

    async def push_event(self, request: gateway.PushEventRequest, _: ServicerContext) -> gateway.PushEventResponse:
        """Serve PushEvent."""
        if self._hub.is_draining:
            raise DrainingError
        requests.dialect(request.dialect)
        producer = requests.producer(request)
        event = requests.event(request.event, producer[2] if producer else None)
        session = await self._registry.open(requests.session_id(request.session_id), create=True)
        head_seq, is_duplicate = await session.push_one(event, producer=producer)
        return gateway.PushEventResponse(head_seq=head_seq, duplicate=is_duplicate)

    async def control(self, request: gateway.ControlRequest, context: ServicerContext) -> None:
        """Serve Control."""
        if self._hub.is_draining:
            raise DrainingError
        producer_id, epoch = requests.process(request)
        session = await self._registry.open(requests.session_id(request.session_id), create=False)
        controller = session.open_control(producer_id, epoch, applied_seq=request.applied_control_seq)
        try:
            await asyncio.shield(controller.commit)
            await context.send_initial_metadata(())
            await _write_controls(session, controller, request.applied_control_seq, context)
        finally:
            session.close_control(controller)


async def _write_controls(session: Session, controller: Controller, cursor: int, context: ServicerContext) -> None:
    """Write what the agent must do, as it comes, until the stream loses its hold."""
    while True:
        for control in await session.controls_after(cursor):
            cursor = control.control_seq
            if (response := _response(session, control)) is not None:
                await context.write(response.SerializeToString())
        await controller.wait()


def _response(session: Session, control: Control) -> gateway.ControlResponse | None:
    """Build one item. None for a prompt that is settled meanwhile."""
    if control.is_abort:
        return gateway.ControlResponse(control_seq=control.control_seq, abort=gateway.ControlAbort())
    if (handed := session.prompts.action(control)) is None:
        return None
    prompt, text = handed
    action = gateway.ControlPrompt(prompt_id=prompt.prompt_id, text=text, steer=prompt.steer)
    return gateway.ControlResponse(control_seq=control.control_seq, prompt=action)
