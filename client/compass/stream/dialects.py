"""The thirteen provider dialects, each one small table: framing, end mark, deltas, tool calls, stop reasons, errors.

Data, not classes: `reader` knows how to follow a table and nothing of any provider. Paths are those of `paths`; what a
path is relative to, the frame or the one answer in it, stands at the field.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from compass.failures import Category
from compass.stream.chunks import ChunkKind
from compass.stream.framing import Framing


@dataclass(frozen=True, slots=True)
class Delta:
    """Where pieces of text or reasoning are, relative to the answer."""

    kind: ChunkKind
    paths: tuple[str, ...]
    """The first that holds text wins: several that say the same thing are read once."""
    when: str | None = None
    """The `type` of the frames that carry it; None for all."""


@dataclass(frozen=True, slots=True)
class CallPart:
    """Where pieces of tool calls are, relative to the answer, and where a piece has what, relative to itself."""

    path: str
    id: str = "id"
    name: str = "name"
    arguments: str = "arguments"
    when: str | None = None
    """The `type` of the frames that carry it; None for all."""
    is_whole: bool = False
    """Whether each piece is a whole call."""


@dataclass(frozen=True, slots=True)
class UsagePaths:
    """Where tokens are counted, relative to the frame. What several paths of one frame find is added."""

    input: tuple[str, ...]
    output: tuple[str, ...]
    cache_read: tuple[str, ...] = ()
    cache_write: tuple[str, ...] = ()
    input_has_cached: bool = True
    """Whether the provider's input count contains what the cache gave."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One provider's stream, as a table."""

    name: str
    deltas: tuple[Delta, ...]
    calls: tuple[CallPart, ...]
    call_ends: tuple[str, ...]
    """Paths in the frame that find something when the tool call of that frame's index is whole."""
    ends: tuple[str, ...]
    """Paths in the frame that find something in the end mark. Empty: a stop reason and a clean end of the body."""
    stop: str
    """Where the stop reason is, relative to the answer."""
    failing_stops: Mapping[str, Category]
    """Stop reasons that mean failure."""
    usage: UsagePaths
    model: str
    """Where the provider names the model, relative to the frame."""
    normal_stops: frozenset[str] | None = None
    """Where set, every other stop reason is a failure too; None: every other one is a normal end."""
    stop_detail: str = ""
    """Where a failing stop is explained, relative to the answer."""
    errors: tuple[str, ...] = ("error",)
    """Where an error is, relative to the frame. Null is none."""
    blocked: str = ""
    """Where the reason is, relative to the frame, for which the request was refused unanswered. Empty: nowhere."""
    answer: str = ""
    """Where the answers are, relative to the frame; of several that of index 0 is read. Empty: the frame is it."""
    framing: Framing = Framing.SSE


DONE_MARK = "type=[DONE]"
DONE = MappingProxyType({"type": "[DONE]"})
"""The frame that stands for the data `[DONE]`, which is no JSON. A dialect whose end mark it is not skips it."""

LENGTH_STOPS = frozenset(
    {"length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_length", "model_context_window_exceeded"},
)
"""Our own limit on tokens was reached, or the model's: a normal end, but a tool call may be cut."""

_FILTERED = Category.CONTENT_FILTERED

_OPENAI_CHAT = Dialect(
    name="openai-chat",
    ends=(DONE_MARK,),
    answer="choices/*",
    deltas=(
        Delta(
            ChunkKind.REASONING,
            ("delta/reasoning_content", "delta/reasoning", "delta/reasoning_details/*/text"),
        ),
        Delta(ChunkKind.TEXT, ("delta/content", "delta/content/*/text")),
        Delta(ChunkKind.TEXT, ("delta/refusal",)),
    ),
    calls=(CallPart("delta/tool_calls/*", name="function/name", arguments="function/arguments"),),
    call_ends=(),
    stop="finish_reason",
    failing_stops={"content_filter": _FILTERED, "error": Category.SERVER_ERROR},
    usage=UsagePaths(
        input=("usage/prompt_tokens",),
        output=("usage/completion_tokens",),
        cache_read=("usage/prompt_tokens_details/cached_tokens",),
    ),
    model="model",
)

_OPENAI_RESPONSES = Dialect(
    name="openai-responses",
    ends=("type=response.completed", "type=response.incomplete"),
    deltas=(
        Delta(ChunkKind.REASONING, ("delta",), when="response.reasoning_text.delta"),
        Delta(ChunkKind.REASONING, ("delta",), when="response.reasoning_summary_text.delta"),
        Delta(ChunkKind.TEXT, ("delta",), when="response.output_text.delta"),
        Delta(ChunkKind.TEXT, ("delta",), when="response.refusal.delta"),
    ),
    calls=(
        CallPart(
            "item/type=function_call/status!=incomplete",
            id="call_id",
            when="response.output_item.done",
            is_whole=True,
        ),
        CallPart(
            "item/type=custom_tool_call/status!=incomplete",
            id="call_id",
            arguments="input",
            when="response.output_item.done",
            is_whole=True,
        ),
    ),
    call_ends=(),
    stop="response/incomplete_details/reason",
    failing_stops={"content_filter": _FILTERED},
    errors=("error", "type=response.failed/response/error"),
    usage=UsagePaths(
        input=("response/usage/input_tokens",),
        output=("response/usage/output_tokens",),
        cache_read=("response/usage/input_tokens_details/cached_tokens",),
    ),
    model="response/model",
)

_ANTHROPIC = Dialect(
    name="anthropic",
    ends=("type=message_stop",),
    deltas=(
        Delta(ChunkKind.REASONING, ("content_block/thinking",), when="content_block_start"),
        Delta(ChunkKind.TEXT, ("content_block/text",), when="content_block_start"),
        Delta(ChunkKind.REASONING, ("delta/thinking",), when="content_block_delta"),
        Delta(ChunkKind.TEXT, ("delta/text",), when="content_block_delta"),
    ),
    calls=(
        CallPart("content_block/type=tool_use", arguments="input", when="content_block_start"),
        CallPart("delta/type=input_json_delta", arguments="partial_json", when="content_block_delta"),
    ),
    call_ends=("type=content_block_stop",),
    stop="delta/stop_reason",
    failing_stops={"refusal": _FILTERED},
    usage=UsagePaths(
        input=("message/usage/input_tokens", "usage/input_tokens"),
        output=("message/usage/output_tokens", "usage/output_tokens"),
        cache_read=("message/usage/cache_read_input_tokens", "usage/cache_read_input_tokens"),
        cache_write=("message/usage/cache_creation_input_tokens", "usage/cache_creation_input_tokens"),
        input_has_cached=False,
    ),
    model="message/model",
)

_GEMINI = Dialect(
    name="gemini",
    ends=(),
    answer="candidates/*",
    deltas=(
        Delta(ChunkKind.REASONING, ("content/parts/*/?thought/text",)),
        Delta(ChunkKind.TEXT, ("content/parts/*/!thought/text",)),
    ),
    calls=(CallPart("content/parts/*/functionCall", arguments="args", is_whole=True),),
    call_ends=(),
    stop="finishReason",
    stop_detail="finishMessage",
    blocked="promptFeedback/blockReason",
    normal_stops=frozenset({"STOP", "MAX_TOKENS"}),
    failing_stops={
        "SAFETY": _FILTERED,
        "RECITATION": _FILTERED,
        "BLOCKLIST": _FILTERED,
        "PROHIBITED_CONTENT": _FILTERED,
        "SPII": _FILTERED,
        "MODEL_ARMOR": _FILTERED,
        "LANGUAGE": _FILTERED,
        "IMAGE_SAFETY": _FILTERED,
        "IMAGE_PROHIBITED_CONTENT": _FILTERED,
        "IMAGE_RECITATION": _FILTERED,
        "MALFORMED_FUNCTION_CALL": Category.MALFORMED_RESPONSE,
    },
    usage=UsagePaths(
        input=("usageMetadata/promptTokenCount",),
        output=("usageMetadata/candidatesTokenCount", "usageMetadata/thoughtsTokenCount"),
        cache_read=("usageMetadata/cachedContentTokenCount",),
    ),
    model="modelVersion",
)

_COHERE = Dialect(
    name="cohere",
    ends=("type=message-end",),
    deltas=(
        Delta(ChunkKind.REASONING, ("delta/message/tool_plan",), when="tool-plan-delta"),
        Delta(ChunkKind.REASONING, ("delta/message/content/thinking",), when="content-start"),
        Delta(ChunkKind.TEXT, ("delta/message/content/text",), when="content-start"),
        Delta(ChunkKind.REASONING, ("delta/message/content/thinking",), when="content-delta"),
        Delta(ChunkKind.TEXT, ("delta/message/content/text",), when="content-delta"),
    ),
    calls=tuple(
        CallPart("delta/message/tool_calls", name="function/name", arguments="function/arguments", when=when)
        for when in ("tool-call-start", "tool-call-delta")
    ),
    call_ends=("type=tool-call-end",),
    stop="type=message-end/delta/finish_reason",
    stop_detail="delta/error",
    failing_stops={
        "ERROR": Category.SERVER_ERROR,
        "TIMEOUT": Category.TIMEOUT,
        "ERROR_TOXIC": _FILTERED,
        "ERROR_LIMIT": Category.CONTEXT_TOO_LONG,
    },
    usage=UsagePaths(input=("delta/usage/tokens/input_tokens",), output=("delta/usage/tokens/output_tokens",)),
    model="model",
)

_OLLAMA = Dialect(
    name="ollama",
    framing=Framing.NDJSON,
    ends=("?done",),
    deltas=(
        Delta(ChunkKind.REASONING, ("message/thinking",)),
        Delta(ChunkKind.TEXT, ("message/content",)),
    ),
    calls=(CallPart("message/tool_calls/*", name="function/name", arguments="function/arguments", is_whole=True),),
    call_ends=(),
    stop="done_reason",
    failing_stops={},
    usage=UsagePaths(input=("prompt_eval_count",), output=("eval_count",)),
    model="model",
)


def _like_openai(name: str, **changes: object) -> Dialect:
    return replace(_OPENAI_CHAT, name=name, **changes)  # type: ignore[arg-type]


_TABLES = (
    _OPENAI_CHAT,
    _OPENAI_RESPONSES,
    _ANTHROPIC,
    _GEMINI,
    _like_openai("groq", errors=("error", "x_groq/error")),
    _like_openai(
        "mistral",
        deltas=(
            Delta(ChunkKind.REASONING, ("delta/content/*/thinking/*/text",)),
            Delta(ChunkKind.TEXT, ("delta/content", "delta/content/*/text")),
        ),
    ),
    _COHERE,
    _like_openai(
        "deepseek",
        failing_stops={**_OPENAI_CHAT.failing_stops, "insufficient_system_resource": Category.OVERLOADED},
        usage=replace(_OPENAI_CHAT.usage, cache_read=("usage/prompt_cache_hit_tokens",)),
    ),
    _like_openai(
        "openrouter",
        deltas=(
            Delta(
                ChunkKind.REASONING,
                ("delta/reasoning", "delta/reasoning_details/*/text", "delta/reasoning_details/*/summary"),
            ),
            *_OPENAI_CHAT.deltas[1:],
        ),
    ),
    _like_openai("together"),
    _like_openai(
        "copilot",
        deltas=(
            Delta(
                ChunkKind.REASONING,
                tuple(
                    f"{part}/{field}"
                    for part in ("delta", "message")
                    for field in ("cot_summary", "reasoning_text", "thinking")
                ),
            ),
            *_OPENAI_CHAT.deltas[1:],
        ),
    ),
    _like_openai("openai-compatible"),
    _OLLAMA,
)

DIALECTS: Mapping[str, Dialect] = MappingProxyType({table.name: table for table in _TABLES})
"""The dialects by name."""


def dialect_named(name: str) -> Dialect:
    """Find a dialect; ValueError lists those there are."""
    if (dialect := DIALECTS.get(name)) is None:
        raise ValueError(f"unknown dialect {name!r}; there are {', '.join(sorted(DIALECTS))}")
    return dialect
