"""What a traced stream publishes, read as the frames that a pane sees."""

import json
from typing import Any

import anthropic
import httpx
import pytest

from client.stream.frames import DONE, ERROR_TEXT, choice, named, sse, text
from client.stream.outcome import outcome_of
from client.stream.provider import Provider, Reply, refusal, with_length
from compass.failures import Category, Verdict
from compass.stream import ModelStreamError, open_stream, retrying, traced
from compass.v1 import compass_pb2 as pb
from compass_service.mapper import Mapper


class Pane:
    """A publisher whose events are mapped at once, as the service maps them."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.frames: list[pb.AgentSessionFrame] = []
        self._mapper = Mapper("s")

    async def push(self, event: dict[str, Any]) -> None:
        self.push_nowait(event)

    def push_nowait(self, event: dict[str, Any]) -> bool:
        self.events.append(event)
        drafts = self._mapper.map(json.dumps(event), now_ms=1)
        self.frames += [pb.AgentSessionFrame.FromString(draft.body) for draft in drafts]
        return True

    @property
    def story(self) -> list[str]:
        """The frames in short, activity left out."""
        told = []
        for frame in self.frames:
            kind = frame.event.WhichOneof("event")
            if kind in {"assistant_text", "thinking", "user_message"}:
                told.append(f"{kind} {getattr(frame.event, kind).text}")
            elif kind == "message_end":
                told.append(f"message_end {pb.SessionMessageOutcome.Name(frame.event.message_end.outcome)[24:]}")
            elif kind == "session_error":
                told.append(f"session_error {pb.SessionErrorKind.Name(frame.event.session_error.kind)[19:]}")
            elif kind not in {None, "activity"}:
                told.append(str(kind))
            if frame.state:
                told.append(pb.AgentSessionState.Name(frame.state)[20:])
        return told

    @property
    def errors(self) -> list[pb.SessionError]:
        return [frame.event.session_error for frame in self.frames if frame.event.HasField("session_error")]

    @property
    def ends(self) -> list[pb.SessionMessageEnd]:
        return [frame.event.message_end for frame in self.frames if frame.event.HasField("message_end")]


@pytest.fixture
def pane() -> Pane:
    return Pane()


def messages(*frames: dict[str, Any]) -> Reply:
    return Reply((with_length(named(*frames)),))


START = {
    "type": "message_start",
    "message": {"model": "m-1", "usage": {"input_tokens": 3, "cache_read_input_tokens": 2}},
}
STOP = [
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
    {"type": "message_stop"},
]


def thinking(piece: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": piece}}


def answer(piece: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": piece}}


async def test_a_whole_answer_is_a_run_that_ends_well(served: Provider, client: httpx.AsyncClient, pane: Pane) -> None:
    url = served.url(messages(START, thinking("hm"), answer("So "), answer("it is"), *STOP))
    stream = open_stream("anthropic", url=url, json={"model": "m"}, client=client)
    outcome = await outcome_of(traced(stream, pane, prompt="Why?"))
    assert outcome.is_whole
    assert pane.story == [
        "WORKING", "user_message Why?", "thinking hm", "assistant_text So ", "assistant_text it is",
        "message_end COMPLETE", "READY",
    ]  # fmt: skip
    (end,) = pane.ends
    assert end.stop_reason == pb.SESSION_STOP_REASON_STOP
    assert (end.usage.input_tokens, end.usage.output_tokens, end.usage.cache_read_tokens) == (3, 5, 2)
    content = next(event for event in reversed(pane.events) if event["type"] == "message_end")["message"]["content"]
    assert content == [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "So it is"}]


async def test_a_failure_before_the_first_chunk_is_an_error_and_no_message(
    served: Provider, client: httpx.AsyncClient, pane: Pane
) -> None:
    body = json.dumps({"error": {"code": "rate_limit_exceeded", "message": "slow down"}}).encode()
    url = served.url(refusal(429, body, "retry-after: 4"))
    stream = traced(open_stream("openai-chat", url=url, json={"model": "gpt"}, client=client), pane, prompt="Why?")
    assert not (await outcome_of(stream)).is_whole
    assert pane.story == ["WORKING", "user_message Why?", "session_error ERROR", "ERRORED"]
    (error,) = pane.errors
    assert (error.message, error.status, error.message_id) == ("slow down", 429, "")
    assert (Category(error.category), error.retryable, error.retry_after_ms) == (Category.RATE_LIMITED, True, 4_000)
    assert (error.provider, error.model) == ("openai-chat", "gpt")


async def test_a_failure_after_a_chunk_keeps_the_partial_answer_and_stands_beside_it(
    served: Provider, client: httpx.AsyncClient, pane: Pane
) -> None:
    failed = sse(
        choice({"content": "Half"}), {"error": {"type": "tokens", "code": "rate_limit_exceeded", "message": ERROR_TEXT}}
    )
    stream = open_stream("groq", url=served.url(Reply((with_length(failed),))), client=client)
    with pytest.raises(ModelStreamError):
        async for _ in traced(stream, pane, model="mine", provider="my-groq"):
            pass
    assert pane.story == [
        "WORKING", "assistant_text Half", "message_end INCOMPLETE", "session_error ERROR", "ERRORED",
    ]  # fmt: skip
    (error,) = pane.errors
    assert (Category(error.category), error.retryable) == (Category.RATE_LIMITED, False)
    assert (error.message_id, error.HasField("status")) == (pane.ends[0].message_id, False)
    assert (error.provider, error.model) == ("my-groq", "mine")


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        (sse(choice({"content": ""})), Verdict(Category.MALFORMED_RESPONSE, retryable=True)),
        (sse(DONE), Verdict(Category.MALFORMED_RESPONSE, retryable=True)),
        (sse("nonsense"), Verdict(Category.MALFORMED_RESPONSE, retryable=False)),
        (
            sse({"error": {"code": "model_not_found", "message": "whatever"}}),
            Verdict(Category.MODEL_NOT_FOUND, retryable=False),
        ),
    ],
)
async def test_the_verdict_of_the_stream_is_the_one_that_the_pane_sees(
    body: bytes, verdict: Verdict, served: Provider, client: httpx.AsyncClient, pane: Pane
) -> None:
    await outcome_of(
        traced(open_stream("openai-chat", url=served.url(Reply((with_length(body),))), client=client), pane)
    )
    (error,) = pane.errors
    assert Verdict(Category(error.category), error.retryable) == verdict


async def test_the_call_of_an_sdk_is_guarded_before_it_is_traced(served: Provider, pane: Pane) -> None:
    url = served.url(messages(START, answer("So")), path="/v1/messages").removesuffix("/v1/messages")
    async with anthropic.AsyncAnthropic(api_key="k", base_url=url, max_retries=0) as sdk:
        call = sdk.messages.create(model="m", max_tokens=9, messages=[], stream=True)
        with pytest.raises(ModelStreamError):
            async for _ in traced(call, pane):
                pass
    assert pane.story == ["WORKING", "assistant_text So", "message_end INCOMPLETE", "session_error ERROR", "ERRORED"]


async def test_a_tool_call_alone_is_a_message(served: Provider, client: httpx.AsyncClient, pane: Pane) -> None:
    part = {"index": 0, "id": "c1", "function": {"name": "w", "arguments": '{"city":"Ulm"}'}}
    body = sse(choice({"tool_calls": [part]}), choice({}, "tool_calls"), DONE)
    await outcome_of(
        traced(open_stream("openai-chat", url=served.url(Reply((with_length(body),))), client=client), pane)
    )
    (end,) = pane.ends
    assert end.stop_reason == pb.SESSION_STOP_REASON_TOOL_USE
    content = next(event for event in reversed(pane.events) if event["type"] == "message_end")["message"]["content"]
    assert content == [
        {"type": "toolCall", "id": "c1", "name": "w", "partialArgs": '{"city":"Ulm"}', "arguments": {"city": "Ulm"}}
    ]


async def test_our_own_limit_is_a_normal_end(served: Provider, client: httpx.AsyncClient, pane: Pane) -> None:
    body = sse(choice({"content": "ok"}, "length"), DONE)
    await outcome_of(
        traced(open_stream("openai-chat", url=served.url(Reply((with_length(body),))), client=client), pane)
    )
    assert pane.story[-2:] == ["message_end COMPLETE", "READY"]
    assert pane.ends[0].stop_reason == pb.SESSION_STOP_REASON_LENGTH


async def test_an_aborted_run_leaves_a_partial_message_and_no_error(
    served: Provider, client: httpx.AsyncClient, pane: Pane
) -> None:
    url = served.url(Reply((with_length(sse(choice({"content": "Half"}), choice({"content": "more"}), DONE)),)))
    async with traced(open_stream("openai-chat", url=url, client=client), pane) as chunks:
        await anext(chunks)
    assert pane.story == ["WORKING", "assistant_text Half", "message_end INCOMPLETE", "session_error ABORTED"]
    assert pane.errors[0].abort_origin == pb.SESSION_ABORT_ORIGIN_UNSPECIFIED


async def test_retries_show_each_failed_attempt_and_what_takes_it_back(
    served: Provider, client: httpx.AsyncClient, pane: Pane
) -> None:
    url = served.url(
        refusal(503, b""), refusal(503, b""), Reply((with_length(sse(choice({"content": "ok"}, "stop"), DONE)),))
    )
    stream = retrying(lambda: open_stream("openai-chat", url=url, client=client), first_wait_s=0.01)
    assert (await outcome_of(traced(stream, pane, prompt="Why?"))).chunks == text("ok")
    assert pane.story == [
        "WORKING", "user_message Why?",
        "session_error ERROR", "ERRORED", "WORKING", "session_error ERROR", "ERRORED", "WORKING",
        "assistant_text ok", "message_end COMPLETE", "READY",
    ]  # fmt: skip
    retries = [frame.event.activity for frame in pane.frames if frame.event.activity.phase == pb.SESSION_PHASE_RETRYING]
    failed = [frame.event.event_id for frame in pane.frames if frame.event.HasField("session_error")]
    assert [retry.supersedes_event_id for retry in retries] == failed
    assert [(retry.attempt, retry.max_attempts) for retry in retries] == [(1, 3), (2, 3)]


async def test_retries_that_do_not_help_end_in_one_error_that_nothing_takes_back(
    served: Provider, client: httpx.AsyncClient, pane: Pane
) -> None:
    url = served.url(refusal(503, b""))
    stream = retrying(lambda: open_stream("openai-chat", url=url, client=client), max_attempts=2, first_wait_s=0.01)
    assert not (await outcome_of(traced(stream, pane))).is_whole
    assert pane.story == ["WORKING", "session_error ERROR", "ERRORED", "WORKING", "session_error ERROR", "ERRORED"]
    assert [event["type"] for event in pane.events][-2:] == ["agent_end", "auto_retry_end"]


async def test_what_ends_the_publisher_is_raised_and_the_provider_is_let_go_of(
    served: Provider, client: httpx.AsyncClient
) -> None:
    class Gone:
        async def push(self, event: dict[str, Any]) -> None:
            if event["type"] == "message_update":
                raise OSError("gone")

        def push_nowait(self, event: dict[str, Any]) -> bool:
            return False

    url = served.url(Reply((with_length(sse(choice({"content": "Half"}), DONE)),), end="hang"))
    with pytest.raises(OSError, match="gone"):
        async for _ in traced(open_stream("openai-chat", url=url, client=client), Gone()):
            pass
    await served.was_left.wait()
