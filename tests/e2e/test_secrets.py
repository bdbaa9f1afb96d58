"""Canaries: secrets in everything an agent can send, looked for in everything that comes out."""

import json

import grpc
import pytest

from compass.v1 import agent_gateway_pb2 as gw
from compass.v1 import compass_pb2 as pb
from e2e import wire

CANARIES = (
    "sk-proj-CanaryCanaryCanaryCanary0123456789",
    "CanaryBearerTokenAbcdefghij0123456789",
    "CanaryQueryKey0123456789abcdef",
    "CanaryJsonKey0123456789abcdef",
    "CanaryHeader0123456789abcdefghij",
    "CanaryPassw0rd",
)
KEY, BEARER, QUERY, JSON_KEY, HEADER, PASSWORD = CANARIES
SECRETS = (
    f"401 model gpt-4o-mini refused key {KEY}",
    f"503 upstream said: Authorization: Bearer {BEARER}",
    f"GET https://api.example.com/v1/models?key={QUERY} returned 404",
    json.dumps({"error": {"message": "bad request", "api_key": JSON_KEY}}),
    f'echoed {{"headers": {{"Authorization": "Basic {HEADER}"}}}}',
    f"cannot reach postgres://admin:{PASSWORD}@db.internal:5432/app",
)
PLAIN = ("401", "gpt-4o-mini", "503", "returned 404", "db.internal")


def everything(secret: str, number: int) -> list[str]:
    """Put one secret into every place of failure text and tool text that an agent writes."""
    tool = f"call_{number}"
    failed = {"role": "assistant", "content": [], "stopReason": "error", "errorMessage": secret}
    return [
        json.dumps(event)
        for event in (
            {"type": "agent_start"},
            {"type": "message_start", "message": {"role": "assistant", "content": []}},
            {
                "type": "tool_execution_start",
                "toolCallId": tool,
                "toolName": "bash",
                "args": {"_i": secret, "x": secret},
            },
            {"type": "tool_execution_update", "toolCallId": tool, "partialResult": {"content": [{"text": secret}]}},
            {
                "type": "tool_execution_end",
                "toolCallId": tool,
                "result": {"content": [{"type": "text", "text": secret}]},
                "isError": True,
            },
            {"type": "message_end", "message": failed},
            {"type": "compaction_start", "reason": "threshold"},
            {"type": "compaction_end", "errorMessage": secret, "aborted": False},
            {"type": "auto_retry_start", "attempt": 1, "maxAttempts": 2, "delayMs": 1, "errorMessage": secret},
            {"type": "auto_retry_end", "success": False, "attempt": 1, "finalError": secret},
            {"type": "agent_end"},
        )
    ]


@pytest.mark.timeout(30)
async def test_no_canary_comes_out_anywhere_and_plain_text_survives(serve_process, doors, tmp_path, capfd):
    server = await serve_process("--log-level", "debug")
    compass, gateway = doors(server.address)
    async with wire.Push(gateway) as push:
        for number, secret in enumerate(SECRETS):
            await push.push(*everything(secret, number))
        await push.push('{"type":"notice","message":"the last one"}')
        await push.bye(code=1, last_stderr="\n".join(SECRETS))
    refusals = [await refuse(gateway, compass, secret) for secret in SECRETS]
    frames = await wire.frames_of(compass)
    rows = await compass.GetTranscript(pb.GetTranscriptRequest(session_id="s"))
    listed = await compass.ListSessions(pb.ListSessionsRequest())
    await server.terminate()

    seen = {
        "frames": "".join(str(frame) for frame in frames),
        "transcript": str(rows),
        "list": str(listed),
        "refusals": "".join(refusals),
        "log": "".join(capfd.readouterr()),
        "files": "".join(path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()),
    }
    for place, text in seen.items():
        assert not [canary for canary in CANARIES if canary in text], place
    for plain in PLAIN:
        assert plain in seen["frames"]


async def test_what_names_an_agent_and_a_session_is_shown_without_secrets(serve_process, doors, tmp_path):
    server = await serve_process()
    compass, gateway = doors(server.address)
    hello = {"agent_name": f"bot {KEY}", "agent_version": f"1.2 Bearer {BEARER}", "title": f"why is {SECRETS[2]}?"}
    async with wire.Push(gateway, **hello) as push:
        await push.push('{"type":"agent_start"}')
    (summary,) = (await compass.ListSessions(pb.ListSessionsRequest())).sessions
    await server.terminate()
    assert (summary.agent_name, summary.title) == (
        "bot [redacted]",
        "why is GET https://api.example.com/v1/models?key=[redacted] returned 404?",
    )
    files = "".join(path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file())
    assert not [canary for canary in CANARIES if canary in files]


@pytest.mark.parametrize("field", ["session_id", "dialect", "producer_id"])
async def test_a_refusal_shows_no_half_of_a_secret_that_it_cuts(doors, serve_process, field):
    server = await serve_process()
    _, gateway = doors(server.address)
    value = f"the database is postgres://admin:{PASSWORD * 9}@db.internal:5432/app"
    request = gw.PushEventRequest(
        **{"session_id": "s", "epoch": 1, "seq": 1, field: value}, event=gw.InnerEvent(json="{}")
    )
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await gateway.PushEvent(request)
    shown = f"{refused.value.details()} {refused.value.trailing_metadata()}"
    assert "postgres://admin:" in shown
    assert PASSWORD not in shown


async def refuse(gateway, compass, secret: str) -> str:
    """Have requests refused that hold a secret; return all that the refusals show."""
    shown = []
    for call in (
        gateway.PushEvent(gw.PushEventRequest(session_id="s2", event=gw.InnerEvent(json=secret + " is no object"))),
        gateway.PushEvent(gw.PushEventRequest(session_id=secret[:100], event=gw.InnerEvent(json="{}"))),
        gateway.PushEvent(gw.PushEventRequest(session_id="s2", dialect=secret, event=gw.InnerEvent(json="{}"))),
        compass.GetSession(pb.GetSessionRequest(session_id=KEY)),
        compass.ListSessions(pb.ListSessionsRequest(page_token=secret)),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call
        shown.append(f"{refused.value.details()} {refused.value.trailing_metadata()}")
    return "".join(shown)
