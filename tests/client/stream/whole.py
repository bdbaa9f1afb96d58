"""Answers that are whole: at least one of every dialect, with the chunks that must come of it."""

from client.stream.frames import ARGUMENTS, DONE, ERROR_TEXT, Sample, call, choice, named, ndjson, reasoning, sse, text

WHOLE = [
    Sample(
        "T1: usage-only chunk, padding, length",
        "openai-chat",
        sse(
            {**choice({"content": "Hi"}), "obfuscation": "zQ9"},
            choice({"content": " there"}, "length"),
            {"choices": [], "usage": {"total_tokens": 9}},
            DONE,
        ),
        text("Hi", " there"),
        end_mark=b"[DONE]",
    ),
    Sample(
        "a tool call in pieces",
        "openai-chat",
        sse(
            choice(
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"index": 0, "id": "c1", "type": "function", "function": {"name": "w", "arguments": ""}},
                    ],
                }
            ),
            choice({"tool_calls": [{"index": 0, "function": {"arguments": '{"city":'}}]}),
            choice({"tool_calls": [{"index": 0, "function": {"arguments": ' "Ulm"}'}}]}),
            choice({}, "tool_calls"),
            DONE,
        ),
        call("c1", "w", ARGUMENTS),
        end_mark=b"[DONE]",
    ),
    Sample(
        "text, reasoning, refusal and a tool call",
        "openai-responses",
        named(
            {"type": "response.created", "response": {"model": "m", "error": None}},
            {"type": "response.reasoning_summary_text.delta", "delta": "hm"},
            {"type": "response.output_text.delta", "delta": "Hi"},
            {"type": "response.refusal.delta", "delta": "no"},
            {"type": "response.output_text.done", "text": "Hi"},
            {
                "type": "response.output_item.done",
                "item": {
                    "type": "function_call",
                    "id": "fc",
                    "call_id": "c1",
                    "name": "w",
                    "arguments": ARGUMENTS,
                },
            },
            {"type": "response.completed", "response": {"error": None, "usage": {"input_tokens": 3}}},
        ),
        [*reasoning("hm"), *text("Hi", "no"), *call("c1", "w", ARGUMENTS)],
        end_mark=b"}}}",
    ),
    Sample(
        "thinking, text, a tool call, pings",
        "anthropic",
        named(
            {
                "type": "message_start",
                "message": {
                    "id": "m1",
                    "model": "m",
                    "content": [],
                    "usage": {"input_tokens": 3, "output_tokens": 0},
                },
            },
            {"type": "ping"},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "x"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "So"}},
            {"type": "content_block_stop", "index": 1},
            {
                "type": "content_block_start",
                "index": 2,
                "content_block": {
                    "type": "tool_use",
                    "id": "c1",
                    "name": "w",
                    "input": {},
                },
            },
            {
                "type": "content_block_delta",
                "index": 2,
                "delta": {"type": "input_json_delta", "partial_json": ARGUMENTS},
            },
            {"type": "content_block_stop", "index": 2},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}},
            {"type": "message_stop"},
        ),
        [*reasoning("hm"), *text("So"), *call("c1", "w", ARGUMENTS)],
        end_mark=b'message_stop"}',
    ),
    Sample(
        "T6: STOP on an early frame, no space after the colon, a last frame without parts",
        "gemini",
        b'data: {"candidates":[{"content":{"parts":[{"text":"hm","thought":true}]},"finishReason":"STOP"}]}\r\n\r\n'
        b'data: {"candidates":[{"content":{"parts":[{"text":"a"}]}}]}\r\n\r\n'
        b'data:{"candidates":[{"content":{"parts":[{"text":"b"}]}}]}\r\n\r\n'
        b'data: {"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"totalTokenCount":7}}\r\n\r\n',
        [*reasoning("hm"), *text("a", "b")],
        end_mark=b"",
    ),
    Sample(
        "a function call",
        "gemini",
        sse(
            {
                "candidates": [
                    {"content": {"parts": [{"text": "é"}, {"functionCall": {"name": "w", "args": {"city": "Ulm"}}}]}}
                ]
            },
            {"candidates": [{"finishReason": "STOP"}]},
        ),
        [*text("é"), *call(None, "w", ARGUMENTS)],
    ),
    Sample(
        "parsed reasoning",
        "groq",
        sse(
            choice({"reasoning": "hm"}), choice({"content": "ok"}), {**choice({}, "stop"), "x_groq": {"id": "r"}}, DONE
        ),
        [*reasoning("hm"), *text("ok")],
        end_mark=b"[DONE]",
    ),
    Sample(
        "content as a list of parts, padding",
        "mistral",
        sse(
            {**choice({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}), "p": "abc"},
            choice({"content": [{"type": "text", "text": "o"}]}),
            choice({"content": "k"}, "stop"),
            DONE,
        ),
        [*reasoning("hm"), *text("o", "k")],
        end_mark=b"[DONE]",
    ),
    Sample(
        "a tool plan, a tool call, thinking, text",
        "cohere",
        named(
            {"type": "message-start", "id": "m"},
            {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "look"}}},
            {
                "type": "tool-call-start",
                "index": 0,
                "delta": {
                    "message": {
                        "tool_calls": {
                            "id": "c1",
                            "type": "function",
                            "function": {"name": "w", "arguments": ""},
                        }
                    }
                },
            },
            {
                "type": "tool-call-delta",
                "index": 0,
                "delta": {
                    "message": {
                        "tool_calls": {
                            "function": {"arguments": ARGUMENTS},
                        }
                    }
                },
            },
            {"type": "tool-call-end", "index": 0},
            {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"thinking": "hm"}}}},
            {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": "ok"}}}},
            {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}},
        ),
        [*reasoning("look"), *call("c1", "w", ARGUMENTS), *reasoning("hm"), *text("ok")],
        end_mark=b'COMPLETE"}}',
    ),
    Sample(
        "T8: keep-alive comments, then reasoning and text",
        "deepseek",
        b": keep-alive\n\n" * 3 + sse(choice({"reasoning_content": "r"}), choice({"content": "ok"}, "stop"), DONE),
        [*reasoning("r"), *text("ok")],
        end_mark=b"[DONE]",
    ),
    Sample(
        "reasoning told twice",
        "openrouter",
        b": OPENROUTER PROCESSING\n\n"
        + sse(
            choice({"content": "", "reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}),
            {**choice({"content": "ok"}, "stop"), "error": None},
            DONE,
        ),
        [*reasoning("hm"), *text("ok")],
        end_mark=b"[DONE]",
    ),
    Sample(
        "row 99: finish reason eos, warnings",
        "together",
        sse({**choice({"content": "ok"}, "eos"), "warnings": [{"message": ERROR_TEXT}]}, DONE),
        text("ok"),
        end_mark=b"[DONE]",
    ),
    Sample(
        "row 106: frames without choices, no finish reason",
        "copilot",
        sse(
            {"choices": [], "prompt_filter_results": [{"error": {"message": ERROR_TEXT}}]},
            {"choices": None, "copilot_references": [{"id": "r"}]},
            choice({"reasoning_text": "hm"}),
            choice({"content": "ok"}),
            DONE,
        ),
        [*reasoning("hm"), *text("ok")],
        end_mark=b"[DONE]",
    ),
    Sample(
        "an empty role, CR as line end, a named event, an id, a retry hint",
        "openai-compatible",
        b"id: 1\revent: message\rretry: 10\r"
        + sse(
            {"choices": [{"delta": {"role": "", "reasoning_content": "hm"}}]},
            choice({"content": "ok"}, "stop"),
            DONE,
            end="\r",
        ),
        [*reasoning("hm"), *text("ok")],
        end_mark=b"[DONE]",
    ),
    Sample(
        "one object a line",
        "ollama",
        ndjson(
            {"message": {"role": "assistant", "content": "", "thinking": "hm"}, "done": False},
            {"message": {"role": "assistant", "content": "ok"}, "done": False},
            {
                "message": {"content": "", "tool_calls": [{"function": {"name": "w", "arguments": {"city": "Ulm"}}}]},
                "done": False,
            },
            {"message": {"content": ""}, "done": True, "done_reason": "stop", "eval_count": 2},
        ),
        [*reasoning("hm"), *text("ok"), *call(None, "w", ARGUMENTS)],
        end_mark=b'"eval_count":2}',
    ),
]
