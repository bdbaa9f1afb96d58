"""How one answer is read by a dialect's table: what is a chunk, what is not, and when a tool call is whole."""

import json
from typing import Any

import pytest

from client.stream.frames import ERROR_TEXT, call, choice, reasoning, text
from compass.failures import Category
from compass.stream import DIALECTS, Answer, Chunk, ModelStreamError, Usage
from compass.stream.framing import MAX_EVENT_BYTES, RawEvent
from compass.stream.reader import AnswerReader

DONE = "[DONE]"


def read(dialect: str, *frames: Any, lenient_end: bool = False, answer: Answer | None = None) -> list[Chunk]:
    reader = AnswerReader(DIALECTS[dialect], answer or Answer(), lenient_end=lenient_end)
    chunks: list[Chunk] = []
    for frame in frames:
        chunks += reader.read_event(RawEvent(frame if isinstance(frame, str) else json.dumps(frame)))
    reader.close()
    return chunks


def pieces(*calls: dict[str, Any]) -> dict[str, Any]:
    return choice({"tool_calls": list(calls)})


def piece(
    index: int | None = None, call_id: str | None = None, name: str | None = None, arguments: str = ""
) -> dict[str, Any]:
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return {"function": function} | ({"id": call_id} if call_id else {}) | ({} if index is None else {"index": index})


def test_parallel_tool_calls_come_whole_and_in_their_order_however_their_pieces_interleave() -> None:
    chunks = read(
        "openai-chat",
        pieces(piece(0, "a", "one"), piece(1, "b", "two")),
        pieces(piece(1, arguments='{"x"')),
        pieces(piece(0, arguments='{"y":1}'), piece(1, arguments=":2}")),
        choice({}, "tool_calls"),
        DONE,
    )
    assert [*call("a", "one", '{"y":1}'), *call("b", "two", '{"x":2}')] == chunks


@pytest.mark.parametrize(
    "parts",
    [
        (piece(0, "a", "one", '{"y":1}'), piece(0, "b", "two", '{"x":2}')),  # every index is 0
        (piece(None, "a", "one", '{"y":1}'), piece(None, "b", "two", '{"x":2}')),  # no index at all
    ],
)
def test_tool_calls_with_ids_of_their_own_are_calls_of_their_own(parts: tuple[dict[str, Any], ...]) -> None:
    expected = [*call("a", "one", '{"y":1}'), *call("b", "two", '{"x":2}')]
    assert expected == read("openai-compatible", *[pieces(part) for part in parts], choice({}, "stop"), DONE)
    assert expected == read("openai-compatible", pieces(*parts), choice({}, "stop"), DONE)


def test_pieces_without_index_go_to_the_call_that_is_open() -> None:
    chunks = read(
        "openai-compatible",
        pieces(piece(None, "a", "one", '{"y"')),
        pieces(piece(None, None, None, ":1}")),
        pieces(piece(None, None, "two", "{}")),
        choice({}, "stop"),
        DONE,
    )
    assert [*call("a", "one", '{"y":1}'), *call(None, "two", "{}")] == chunks


def test_a_tool_call_without_a_stop_reason_is_whole_with_the_end_mark() -> None:
    assert call("a", "one", "{}") == read("copilot", pieces(piece(0, "a", "one")), DONE)


def test_a_tool_call_that_our_limit_cut_is_none_and_a_whole_one_before_it_is_kept() -> None:
    cut = [pieces(piece(0, "a", "one", '{"y":1}')), pieces(piece(1, "b", "two", '{"x": "lo'))]
    assert call("a", "one", '{"y":1}') == read("openai-chat", *cut, choice({}, "length"), DONE)
    with pytest.raises(ModelStreamError, match="empty completion"):
        read("openai-chat", cut[1], choice({}, "length"), DONE)


def tool_use(partial_json: str, stop: str) -> list[dict[str, Any]]:
    block = {"type": "tool_use", "id": "t", "name": "one", "input": {}}
    return [
        {"type": "content_block_start", "index": 0, "content_block": block},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": partial_json},
        },
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop}},
        {"type": "message_stop"},
    ]


def test_a_tool_call_is_not_whole_because_its_block_ended_when_the_limit_ended_both() -> None:
    with pytest.raises(ModelStreamError, match="empty completion"):
        read("anthropic", *tool_use('{"x": "lo', "max_tokens"))
    assert call("t", "one", '{"x":1}') == read("anthropic", *tool_use('{"x":1}', "max_tokens"))
    assert call("t", "one", '{"x":') == read("anthropic", *tool_use('{"x":', "tool_use"))


@pytest.mark.parametrize("kind", ["function_call", "custom_tool_call"])
def test_a_call_of_a_response_that_calls_itself_incomplete_is_none(kind: str) -> None:
    item = {"type": kind, "call_id": "c", "name": "f", "arguments": '{"x', "input": "x", "status": "incomplete"}
    frames = [
        {"type": "response.output_text.delta", "delta": "A"},
        {"type": "response.output_item.done", "item": item},
        {"type": "response.incomplete", "response": {"incomplete_details": {"reason": "max_output_tokens"}}},
    ]
    assert text("A") == read("openai-responses", *frames)


def test_an_error_event_may_say_its_words_as_a_json_text() -> None:
    reader = AnswerReader(DIALECTS["openai-chat"], Answer())
    with pytest.raises(ModelStreamError, match="server overloaded") as raised:
        reader.read_event(RawEvent('"server overloaded"', name="error"))
    assert raised.value.category is Category.OVERLOADED


def test_arguments_that_the_model_got_wrong_are_passed_on_as_it_wrote_them() -> None:
    assert call("a", "one", '{"y":') == read(
        "openai-chat", pieces(piece(0, "a", "one", '{"y":')), choice({}, "tool_calls"), DONE
    )


def test_the_input_of_a_tool_that_the_provider_runs_is_no_call_of_ours() -> None:
    frames = [
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "server_tool_use", "id": "s", "name": "search"},
        },
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "found"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]
    assert text("found") == read("anthropic", *frames)


def test_a_block_that_starts_with_its_input_or_its_text_is_read_whole() -> None:
    frames = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "So"}},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "a", "name": "one", "input": {"y": 1}},
        },
        {"type": "content_block_stop", "index": 1},
        {"type": "message_stop"},
    ]
    assert [*text("So"), *call("a", "one", '{"y": 1}')] == read("anthropic", *frames)


def test_of_several_answers_the_first_is_read() -> None:
    second = {"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": "content_filter"}]}
    assert text("one") == read("openai-chat", choice({"content": "one"}), second, choice({}, "stop"), DONE)


def test_padding_moderation_and_null_errors_are_nothing() -> None:
    frames = [
        {**choice({"content": "ok"}), "obfuscation": ERROR_TEXT, "p": ERROR_TEXT, "error": None},
        {"choices": [], "moderation": {"type": "error", "error": {"message": ERROR_TEXT}}, "error": None},
        choice({"content": '{"error": {"message": "a text about errors"}}'}, "stop"),
    ]
    assert text("ok", '{"error": {"message": "a text about errors"}}') == read("openai-chat", *frames, DONE)


def test_anthropic_stop_reasons_that_are_like_length_are_normal_ends() -> None:
    for stop in ("end_turn", "max_tokens", "stop_sequence", "model_context_window_exceeded", "pause_turn"):
        answer = Answer()
        delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "So"}}
        frames = [delta, {"type": "message_delta", "delta": {"stop_reason": stop}}, {"type": "message_stop"}]
        assert text("So") == read("anthropic", *frames, answer=answer)
        assert stop == answer.stop_reason


def test_a_custom_tool_call_of_a_response_has_its_input_as_arguments() -> None:
    item = {"type": "custom_tool_call", "call_id": "a", "name": "run", "input": "print(1)"}
    frames = [{"type": "response.output_item.done", "item": item}, {"type": "response.completed", "response": {}}]
    assert call("a", "run", "print(1)") == read("openai-responses", *frames)


def test_an_incomplete_response_at_our_limit_is_whole_and_a_done_mark_after_it_is_nothing() -> None:
    reason = {"incomplete_details": {"reason": "max_output_tokens"}}
    frames = [
        {"type": "response.output_text.delta", "delta": "Hi"},
        {"type": "response.incomplete", "response": reason},
    ]
    assert text("Hi") == read("openai-responses", *frames)
    assert text("Hi") == read("openai-responses", DONE, *frames, DONE)


def test_gemini_at_our_limit_is_whole() -> None:
    frame = {"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "MAX_TOKENS"}]}
    assert text("a") == read("gemini", frame)


def test_reasoning_alone_is_an_answer() -> None:
    assert reasoning("r") == read("deepseek", choice({"reasoning_content": "r"}, "stop"), DONE)


@pytest.mark.parametrize(
    ("dialect", "frames", "expected"),
    [
        ("anthropic", [
            {"type": "message_start", "message": {"usage": {
                "input_tokens": 5, "output_tokens": 1, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 3,
            }}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "So"}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
            {"type": "message_stop"},
        ], Usage(5, 9, 7, 3)),
        ("openai-responses", [
            {"type": "response.output_text.delta", "delta": "Hi"},
            {"type": "response.completed", "response": {"usage": {
                "input_tokens": 12, "output_tokens": 3, "input_tokens_details": {"cached_tokens": 10},
            }}},
        ], Usage(2, 3, 10, 0)),
        ("gemini", [
            {"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}], "usageMetadata": {
                "promptTokenCount": 8, "candidatesTokenCount": 2, "thoughtsTokenCount": 4, "cachedContentTokenCount": 3,
            }},
        ], Usage(5, 6, 3, 0)),
        ("deepseek", [
            choice({"content": "ok"}, "stop"),
            {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 4}},
            DONE,
        ], Usage(5, 2, 4, 0)),
        ("cohere", [
            {"type": "content-delta", "delta": {"message": {"content": {"text": "a"}}}},
            {"type": "message-end", "delta": {
                "finish_reason": "COMPLETE", "usage": {"tokens": {"input_tokens": 4, "output_tokens": 1}},
            }},
        ], Usage(4, 1, 0, 0)),
        ("ollama", [
            {"message": {"content": "a"}, "done": True, "done_reason": "stop", "prompt_eval_count": 4, "eval_count": 1},
        ], Usage(4, 1, 0, 0)),
    ],
)  # fmt: skip
def test_tokens_are_counted_in_one_meaning(dialect: str, frames: list[Any], expected: Usage) -> None:
    answer = Answer()
    read(dialect, *frames, answer=answer)
    assert expected == answer.usage


def test_a_character_that_was_cut_between_deltas_comes_whole() -> None:
    halves = ['{"choices":[{"delta":{"content":"a\\ud83d"}}]}', '{"choices":[{"delta":{"content":"\\ude00b"}}]}']
    assert read("openai-chat", *halves, choice({}, "stop"), DONE) == text("a", "\U0001f600b")
    assert read("openai-chat", halves[0], halves[0], choice({}, "stop"), DONE) == text("a", "\ufffda", "\ufffd")
    assert read("openai-chat", halves[1], halves[0], DONE) == text("\ufffdb", "a", "\ufffd")
    assert read("openai-chat", '{"choices":[{"delta":{"content":"\\ud83d\\ude00"}}]}', DONE) == text("\U0001f600")


@pytest.mark.parametrize("data", ["[[" * 50_000, "1" * 5_000, "[]", "null", '"text"', "{", "nonsense"])
def test_what_is_no_json_object_is_malformed(data: str) -> None:
    with pytest.raises(ModelStreamError) as caught:
        read("openai-chat", data, DONE)
    assert (caught.value.category, caught.value.retryable) == (Category.MALFORMED_RESPONSE, False)


def test_values_of_the_wrong_type_are_nothing() -> None:
    odd: list[Any] = [{}, [], 7, "x", None, True]
    frames = [{"choices": value} for value in odd] + [{"choices": [value]} for value in odd]
    frames += [{"choices": [{"delta": value, "finish_reason": value if value != "x" else None}]} for value in odd]
    frames += [choice({"content": value if value != "x" else 1, "tool_calls": value}) for value in odd]
    frames += [choice({"tool_calls": [value, {"function": value}]}) for value in odd]
    frames += [{"usage": value} for value in odd] + [{"usage": {"prompt_tokens": value}} for value in odd]
    assert text("ok") == read("openai-chat", *frames, choice({"content": "ok"}, "stop"), DONE)


def test_arguments_without_end_are_refused_at_their_bound() -> None:
    half = "x" * (MAX_EVENT_BYTES // 2 + 1)
    with pytest.raises(ModelStreamError) as caught:
        read("openai-chat", pieces(piece(0, "a", "one", half)), pieces(piece(0, arguments=half)), DONE)
    assert Category.MALFORMED_RESPONSE is caught.value.category
