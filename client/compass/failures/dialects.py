"""What each provider means by its own words and statuses, where that differs from the generic rules.

One small table a dialect. Names that agents use for the same provider lead to the same table.
"""

import re
from collections.abc import Mapping

from compass.failures.rules import (
    AUTH,
    CONTEXT,
    CUT_OFF,
    DENIED,
    FILTERED,
    INVALID,
    MODEL,
    OVERLOADED,
    QUOTA,
    RATE,
    SERVER,
    Rules,
    word_table,
    wording,
)

_NONE = Rules()

_OPENAI = Rules(wordings=(wording(QUOTA, r"exceeded your current quota", refines=(None, 429)),))
_ANTHROPIC = Rules(
    words=word_table({DENIED: "oauth_org_not_allowed"}),
    wordings=(
        wording(
            QUOTA,
            r"credit balance is too low",
            r"(?:usage|spend) limits?\b.{0,80}regain access",
            r"reached your specified api usage limits",
            refines=(None, 400, 403),
        ),
        wording(MODEL, r"^model: ", refines=(None, 404)),
    ),
)
_GEMINI = Rules(
    words=word_table({
        QUOTA: "quota:perday 402+resource_exhausted",
        RATE: "quota:perminute",
        DENIED: "failed_precondition",
        AUTH: "access_token_type_unsupported access_token_scope_insufficient",
    }),
    wordings=(
        wording(CONTEXT, r"exceeds the maximum number of tokens", refines=(None, 400)),
        wording(DENIED, r"user location is not supported", refines=(None, 400)),
        wording(RATE, r"exceeded your current quota"),  # its prose says so for a minute's limit too
    ),
)  # fmt: skip
_GROQ = Rules(
    words=word_table({
        INVALID: "413+rate_limit_exceeded",  # one request larger than a minute's allowance
        CUT_OFF: "tool_use_failed",
        OVERLOADED: "498+capacity_exceeded over_capacity",
    }),
    statuses={498: OVERLOADED},
)  # fmt: skip
_MISTRAL = Rules(
    words=word_table({RATE: "1300", OVERLOADED: "3505", MODEL: "1500"}),
    wordings=(wording(OVERLOADED, r"service tier capacity exceeded", refines=(None, 400, 422, 429, 503)),),
)
_COHERE = Rules(
    statuses={498: INVALID, 499: SERVER},
    wordings=(wording(CONTEXT, r"^\W*too many tokens", refines=(None, 400)),),
)
_DEEPSEEK = Rules(
    wordings=(
        wording(FILTERED, r"content exists risk", refines=(None, 400)),
        wording(MODEL, r"model not exist", refines=(None, 400)),
    ),
)
_OPENROUTER = Rules(
    words=word_table({
        RATE: "402+header:retryafter limit_source:upstream_provider_shared_pool",  # the one 402 that waiting helps
        FILTERED: "403+reasons:any",
        QUOTA: "limit_source:openrouter_credits",
    }),
    wordings=(
        wording(QUOTA, r"(?:key|spend|credit|budget) ?limit", r"budget", refines=(403,)),
        wording(FILTERED, r"moderation", r"guardrail", r"flagged", refines=(403,)),
    ),
)  # fmt: skip
_TOGETHER = Rules(statuses={403: CONTEXT})
_COPILOT = Rules(
    words=word_table({QUOTA: "402+rate_limited"}),
    statuses={403: AUTH, 422: FILTERED, 424: SERVER, 466: INVALID, 499: SERVER, 503: RATE},
    wordings=(wording(CONTEXT, r"prompt token count.{0,40}exceeds", r"exceeds the limit of \d", refines=(None, 400)),),
)
_VLLM = Rules(words=word_table({CONTEXT: "400+param:input_tokens"}))
_OLLAMA = Rules(
    statuses={404: MODEL, 429: QUOTA},
    wordings=(
        wording(DENIED, r"requires a subscription"),
        wording(QUOTA, r"usage limit"),
        wording(OVERLOADED, r"server busy"),
    ),
    hopeless=re.compile(r"requires more system memory"),
    in_band=SERVER,
)

DIALECTS: Mapping[str, Rules] = {
    "openai-chat": _OPENAI,
    "openai-responses": _OPENAI,
    "anthropic": _ANTHROPIC,
    "gemini": _GEMINI,
    "groq": _GROQ,
    "mistral": _MISTRAL,
    "cohere": _COHERE,
    "deepseek": _DEEPSEEK,
    "openrouter": _OPENROUTER,
    "together": _TOGETHER,
    "copilot": _COPILOT,
    "openai-compatible": _VLLM,
    "ollama": _OLLAMA,
    "vllm": _VLLM,
    "llama.cpp": _NONE,
    "lmstudio": _NONE,
}
_ALIASES = {
    "openai": "openai-chat",
    "openai-codex": "openai-responses",
    "azure-openai": "openai-chat",
    "azure-openai-responses": "openai-responses",
    "google": "gemini",
    "google-genai": "gemini",
    "google-gemini-cli": "gemini",
    "google-vertex": "gemini",
    "mistralai": "mistral",
    "togetherai": "together",
    "github-copilot": "copilot",
    "llamacpp": "llama.cpp",
    "lm-studio": "lmstudio",
}


def dialect_rules(provider: object) -> Rules:
    """Find a provider's own rules; an unknown provider has none."""
    name = provider.strip().casefold().replace("_", "-") if isinstance(provider, str) else ""
    return DIALECTS.get(_ALIASES.get(name, name), _NONE)
