"""Binding the doors to a gRPC server. Tails answer in bytes, since their frames are serialized already."""

from collections.abc import Callable
from typing import Any, NamedTuple

import grpc
from google.protobuf.message import Message

from compass.v1 import agent_gateway_pb2 as gateway
from compass.v1 import compass_pb2 as pb
from compass_service.doors.agent_door import AgentDoor
from compass_service.doors.compass_door import CompassDoor
from compass_service.doors.guard import Calls

COMPASS_SERVICE = pb.DESCRIPTOR.services_by_name["CompassService"].full_name
AGENT_GATEWAY = gateway.DESCRIPTOR.services_by_name["AgentGateway"].full_name


class _Rpc(NamedTuple):
    name: str
    request: type[Message]
    handler: Callable[..., Any]


def add_doors(server: grpc.aio.Server, calls: Calls, compass: CompassDoor, agent: AgentDoor) -> None:
    """Register every rpc of both doors."""
    unary = (
        _Rpc("ListSessions", pb.ListSessionsRequest, compass.list_sessions),
        _Rpc("GetSession", pb.GetSessionRequest, compass.get_session),
        _Rpc("GetTranscript", pb.GetTranscriptRequest, compass.get_transcript),
        _Rpc("SubmitPrompt", pb.SubmitPromptRequest, compass.submit_prompt),
        _Rpc("CancelPrompt", pb.CancelPromptRequest, compass.cancel_prompt),
        _Rpc("ListPrompts", pb.ListPromptsRequest, compass.list_prompts),
        _Rpc("AbortSession", pb.AbortSessionRequest, compass.abort_session),
        _Rpc("CloseSession", pb.CloseSessionRequest, compass.close_session),
        _Rpc("GetServerInfo", pb.GetServerInfoRequest, compass.get_server_info),
    )
    streams = (
        _Rpc("SubscribeAgentSession", pb.SubscribeAgentSessionRequest, compass.subscribe_agent_session),
        _Rpc("TailSession", pb.TailSessionRequest, compass.tail_session),
        _Rpc("WatchSessions", pb.WatchSessionsRequest, compass.watch_sessions),
    )
    ui_door = {rpc.name: _unary(calls, rpc) for rpc in unary} | {rpc.name: _bytes_stream(calls, rpc) for rpc in streams}
    server.add_registered_method_handlers(COMPASS_SERVICE, ui_door)  # type: ignore[attr-defined]
    push_events = grpc.stream_stream_rpc_method_handler(
        calls.guard(agent.push_events),
        request_deserializer=gateway.PushEventsRequest.FromString,
        response_serializer=gateway.PushEventsResponse.SerializeToString,
    )
    agent_door = {
        "PushEvents": push_events,
        "PushEvent": _unary(calls, _Rpc("PushEvent", gateway.PushEventRequest, agent.push_event)),
        "Control": _bytes_stream(calls, _Rpc("Control", gateway.ControlRequest, agent.control)),
    }
    server.add_registered_method_handlers(AGENT_GATEWAY, agent_door)  # type: ignore[attr-defined]


def _unary(calls: Calls, rpc: _Rpc) -> "grpc.RpcMethodHandler[Any, Any]":
    return grpc.unary_unary_rpc_method_handler(
        calls.guard(rpc.handler),
        request_deserializer=rpc.request.FromString,
        response_serializer=_serialize,
    )


def _bytes_stream(calls: Calls, rpc: _Rpc) -> "grpc.RpcMethodHandler[Any, Any]":
    return grpc.unary_stream_rpc_method_handler(
        calls.guard(rpc.handler),
        request_deserializer=rpc.request.FromString,
    )


def _serialize(message: Message) -> bytes:
    return message.SerializeToString()
