"""Failures that nobody foresaw, injected behind every rpc: a fixed sentence outside, the whole cause in the log."""

import grpc
import pytest
import structlog

from compass.v1 import agent_gateway_pb2 as gw
from compass.v1 import compass_pb2 as pb
from compass_service.doors.compass_door import CompassDoor
from e2e import wire

SECRET = "sk-proj-CanaryCanaryCanaryCanary0123456789"
CAUSE = f"disk /var/lib/private/path said {SECRET}"
SENTENCE = "internal error; quote the correlation id to the operator"

COMPASS = {
    "SubscribeAgentSession": pb.SubscribeAgentSessionRequest(session_id="s"),
    "TailSession": pb.TailSessionRequest(session_id="s"),
    "ListSessions": pb.ListSessionsRequest(),
    "GetSession": pb.GetSessionRequest(session_id="s"),
    "GetTranscript": pb.GetTranscriptRequest(session_id="s"),
    "SubmitPrompt": pb.SubmitPromptRequest(session_id="s", text="hello"),
    "CancelPrompt": pb.CancelPromptRequest(session_id="s", prompt_id="p1"),
    "ListPrompts": pb.ListPromptsRequest(session_id="s"),
    "AbortSession": pb.AbortSessionRequest(session_id="s"),
    "CloseSession": pb.CloseSessionRequest(session_id="s"),
    "WatchSessions": pb.WatchSessionsRequest(),
}
GATEWAY = {
    "PushEvent": gw.PushEventRequest(session_id="s", event=gw.InnerEvent(json="{}")),
    "Control": gw.ControlRequest(session_id="s", producer_id="p", epoch=1),
}


async def explode(*_: object, **__: object) -> None:
    raise RuntimeError("wrapped") from OSError(CAUSE)


def break_everything(server, monkeypatch) -> None:
    for name in ("load", "list", "read"):
        monkeypatch.setattr(server._log, name, explode)


async def outcome(call) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await (call.read() if hasattr(call, "read") else call)
    return failed.value


def check(error: grpc.aio.AioRpcError, logged: list) -> None:
    shown = f"{error.details()} {error.trailing_metadata()} {error.debug_error_string()}"
    assert (error.code(), error.details()) == (grpc.StatusCode.INTERNAL, SENTENCE)
    for hidden in ("private", "Canary", "RuntimeError", "OSError", "wrapped"):
        assert hidden not in shown
    correlation_id = wire.info(error).metadata["correlation_id"]
    [line] = [line for line in logged if line.get("correlation_id") == correlation_id]
    assert "disk /var/lib/private/path" in line["traceback"]
    assert "wrapped" in line["internal_cause"]
    assert SECRET not in repr(line)


@pytest.mark.parametrize("rpc", [*COMPASS, *GATEWAY])
async def test_an_unforeseen_failure_shows_only_a_sentence_and_an_id(serve, doors, monkeypatch, rpc):
    server = await serve()
    compass, gateway = doors(server.addresses[0])
    break_everything(server, monkeypatch)

    with structlog.testing.capture_logs() as logged:
        if rpc in COMPASS:
            error = await outcome(getattr(compass, rpc)(COMPASS[rpc]))
        else:
            error = await outcome(getattr(gateway, rpc)(GATEWAY[rpc]))

    check(error, logged)


async def test_an_unforeseen_failure_of_a_push_stream_shows_only_a_sentence_and_an_id(serve, doors, monkeypatch):
    server = await serve()
    _, gateway = doors(server.addresses[0])
    break_everything(server, monkeypatch)

    with structlog.testing.capture_logs() as logged, pytest.raises(grpc.aio.AioRpcError) as failed:
        await wire.Push(gateway).__aenter__()

    check(failed.value, logged)


async def test_an_unforeseen_failure_of_the_server_report_shows_only_a_sentence_and_an_id(serve, doors, monkeypatch):
    monkeypatch.setattr(CompassDoor, "get_server_info", explode)
    server = await serve()
    compass, _ = doors(server.addresses[0])

    with structlog.testing.capture_logs() as logged:
        error = await outcome(compass.GetServerInfo(pb.GetServerInfoRequest()))

    check(error, logged)
