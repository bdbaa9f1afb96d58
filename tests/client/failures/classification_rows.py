"""What providers send when they fail, as far as a classifier can see it. Values are made up, shapes are real."""

import json
from dataclasses import dataclass, field

from compass.failures import Category

C = Category


@dataclass(frozen=True)
class Row:
    """One failure, and what must be said of it."""

    name: str
    provider: str
    status: int | None
    body: object
    category: Category
    retryable: bool
    wait_ms: int | None = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The body as it stands on the wire."""
        return self.body if isinstance(self.body, str) else json.dumps(self.body)

    @property
    def told(self) -> str:
        """The same as an agent reports it: the status at the head of the message, if there was one."""
        return f"{self.status} {self.text}" if self.status else self.text


def _error(**fields: object) -> dict[str, object]:
    return {"error": fields}


def _anthropic(**fields: object) -> dict[str, object]:
    return {"type": "error", "error": fields, "request_id": "req_1"}


def _google(code: int, status: str, *details: dict[str, object], message: str = "no") -> dict[str, object]:
    return _error(code=code, status=status, message=message, details=list(details))


def _reason(reason: str) -> dict[str, object]:
    return {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "googleapis.com"}


def _quota(quota_id: str) -> dict[str, object]:
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": quota_id}]}


def _retry_info(delay: str) -> dict[str, object]:
    return {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}


_CURRENT_QUOTA = "You exceeded your current quota, please check your plan and billing details."

ROWS = (
    Row("1 openai bad key", "openai-chat", 401,
        _error(message="Incorrect API key provided: sk-ab***yz", type="invalid_request_error", code="invalid_api_key"),
        C.AUTH_INVALID, False),
    Row("2 openai country", "openai-chat", 403,
        _error(message="Not here", type="request_forbidden", code="unsupported_country_region_territory"),
        C.PERMISSION_DENIED, False),
    Row("3 openai model", "openai-chat", 404,
        _error(message="The model `x` does not exist", type="invalid_request_error", code="model_not_found"),
        C.MODEL_NOT_FOUND, False),
    Row("4 openai context", "openai-chat", 400,
        _error(message="Too much", type="invalid_request_error", param="messages", code="context_length_exceeded"),
        C.CONTEXT_TOO_LONG, False),
    Row("5 openai quota", "openai-chat", 429,
        _error(message=_CURRENT_QUOTA, type="insufficient_quota", code="insufficient_quota"),
        C.QUOTA_EXHAUSTED, False, 20_000, {"Retry-After": "20"}),
    Row("openai spend limit", "openai-chat", 429,
        _error(message="no", type="insufficient_quota", code="project_spend_limit_exceeded"), C.QUOTA_EXHAUSTED, False),
    Row("7 openai rate", "openai-chat", 429, _error(message="Slow", type="tokens", code="rate_limit_exceeded"),
        C.RATE_LIMITED, True, 1_200, {"retry-after-ms": "1200", "retry-after": "2"}),
    Row("openai ramp", "openai-chat", 429, _error(message="no", code="slow_down"), C.RATE_LIMITED, True),
    Row("openai too large for a minute", "openai-chat", 429,
        _error(message="Request too large for m on tokens per min (TPM): Limit 30000, Requested 35000.", type="tokens",
               code="rate_limit_exceeded"), C.RATE_LIMITED, False),
    Row("11 openai server", "openai-chat", 500, _error(message="Oops", type="server_error", code=None),
        C.SERVER_ERROR, True),
    Row("12 openai overloaded", "openai-chat", 503,
        _error(message="Busy", type="service_unavailable_error", code="server_is_overloaded"), C.OVERLOADED, True),
    Row("13 openai quota in band", "openai-chat", None, _error(message="x", type="insufficient_quota"),
        C.QUOTA_EXHAUSTED, False),
    Row("14 openai filter", "openai-chat", None, {"choices": [{"delta": {}, "finish_reason": "content_filter"}]},
        C.CONTENT_FILTERED, False),
    Row("18 responses flat rate", "openai-responses", None,
        {"type": "error", "code": "rate_limit_exceeded", "message": "slow", "param": None}, C.RATE_LIMITED, True),
    Row("responses rate with inner headers", "openai-responses", None,
        {"type": "error", "error": {"code": "rate_limit_exceeded", "message": "slow",
                                    "headers": {"X-RateLimit-Reset-Tokens": "6m0s"}}}, C.RATE_LIMITED, True, 360_000),
    Row("20 responses balance", "openai-responses", None,
        {"type": "error", "error": {"type": "insufficient_quota", "code": "credit_balance_exhausted", "message": "x"}},
        C.QUOTA_EXHAUSTED, False),
    Row("21 responses failed", "openai-responses", None,
        {"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error"}}},
        C.SERVER_ERROR, True),
    Row("24 responses filter", "openai-responses", None,
        {"type": "response.incomplete", "response": {"incomplete_details": {"reason": "content_filter"}}},
        C.CONTENT_FILTERED, False),
    Row("27 anthropic key", "anthropic", 401, _anthropic(type="authentication_error", message="invalid x-api-key"),
        C.AUTH_INVALID, False),
    Row("28 anthropic permission", "anthropic", 403, _anthropic(type="permission_error", message="no"),
        C.PERMISSION_DENIED, False),
    Row("29 anthropic billing", "anthropic", 402, _anthropic(type="billing_error", message="no"),
        C.QUOTA_EXHAUSTED, False),
    Row("30 anthropic balance", "anthropic", 400,
        _anthropic(type="invalid_request_error", message="Your credit balance is too low to access the API."),
        C.QUOTA_EXHAUSTED, False),
    Row("anthropic spend limit by message", "anthropic", 400,
        _anthropic(type="invalid_request_error",
                   message="You have reached your specified API usage limits. You will regain access on 2027-01-01."),
        C.QUOTA_EXHAUSTED, False),
    Row("33 anthropic rate", "anthropic", 429, _anthropic(type="rate_limit_error", message="no"),
        C.RATE_LIMITED, True, 17_000, {"retry-after": "17"}),
    Row("34 anthropic spend limit", "anthropic", 429,
        _anthropic(type="rate_limit_error", message="no", details={"error_code": "enforced_spend_limit_reached"}),
        C.QUOTA_EXHAUSTED, False),
    Row("36 anthropic context", "anthropic", 400,
        _anthropic(type="invalid_request_error", message="prompt is too long: 210000 tokens > 200000"),
        C.CONTEXT_TOO_LONG, False),
    Row("anthropic bytes", "anthropic", 413, _anthropic(type="request_too_large", message="too many bytes"),
        C.INVALID_REQUEST, False),
    Row("38 anthropic model", "anthropic", 404, _anthropic(type="not_found_error", message="model: claude-x"),
        C.MODEL_NOT_FOUND, False),
    Row("anthropic api error", "anthropic", 500, _anthropic(type="api_error", message="Oops"), C.SERVER_ERROR, True),
    Row("40 anthropic timeout", "anthropic", 504, _anthropic(type="timeout_error", message="no"), C.TIMEOUT, True),
    Row("41 anthropic overloaded", "anthropic", 529, _anthropic(type="overloaded_error", message="no"),
        C.OVERLOADED, True),
    Row("42 anthropic overloaded in band", "anthropic", None, _anthropic(type="overloaded_error", message="no"),
        C.OVERLOADED, True),
    Row("44 anthropic refusal", "anthropic", None, {"type": "message_delta", "delta": {"stop_reason": "refusal"}},
        C.CONTENT_FILTERED, False),
    Row("46 gemini key", "gemini", 400, _google(400, "INVALID_ARGUMENT", _reason("API_KEY_INVALID")),
        C.AUTH_INVALID, False),
    Row("47 gemini permission in a list", "gemini", 403, [_google(403, "PERMISSION_DENIED")],
        C.PERMISSION_DENIED, False),
    Row("49 gemini context", "gemini", 400,
        _google(400, "INVALID_ARGUMENT", message="The input token count (12000) exceeds the maximum number of tokens"),
        C.CONTEXT_TOO_LONG, False),
    Row("50 gemini model", "gemini", 404, _google(404, "NOT_FOUND", message="models/x is not found for v1beta"),
        C.MODEL_NOT_FOUND, False),
    Row("51 gemini credit", "gemini", 402, _google(402, "RESOURCE_EXHAUSTED"), C.QUOTA_EXHAUSTED, False),
    Row("52 gemini minute", "gemini", 429,
        _google(429, "RESOURCE_EXHAUSTED", _quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier"),
                _retry_info("38s"), message=_CURRENT_QUOTA), C.RATE_LIMITED, True, 38_000),
    Row("53 gemini day", "gemini", 429,
        _google(429, "RESOURCE_EXHAUSTED", _quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"),
                message=_CURRENT_QUOTA), C.QUOTA_EXHAUSTED, False),
    Row("gemini day with a short delay", "gemini", 429,
        _google(429, "RESOURCE_EXHAUSTED", _quota("GenerateRequestsPerMinutePerProject"),
                _quota("GenerateRequestsPerDayPerProject"), _retry_info("36s")), C.QUOTA_EXHAUSTED, False, 36_000),
    Row("55 gemini bare", "gemini", 429, _google(429, "RESOURCE_EXHAUSTED", message=_CURRENT_QUOTA),
        C.RATE_LIMITED, True),
    Row("56 gemini unavailable", "gemini", 503, _google(503, "UNAVAILABLE"), C.OVERLOADED, True),
    Row("57 gemini in band", "gemini", None, _google(503, "UNAVAILABLE"), C.OVERLOADED, True),
    Row("59 gemini blocked", "gemini", None, {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}},
        C.CONTENT_FILTERED, False),
    Row("60 gemini safety", "gemini", None, {"candidates": [{"finishReason": "SAFETY"}]}, C.CONTENT_FILTERED, False),
    Row("64 groq rate", "groq", 429, _error(message="slow", type="tokens", code="rate_limit_exceeded"),
        C.RATE_LIMITED, True, 5_000, {"retry-after": "5"}),
    Row("65 groq flex", "groq", 498, _error(message="no", code="capacity_exceeded"), C.OVERLOADED, True),
    Row("groq request larger than a minute", "groq", 413,
        _error(message="Request too large for model x", type="tokens", code="rate_limit_exceeded"),
        C.INVALID_REQUEST, False),
    Row("67 groq tool", "groq", 400, _error(message="no", code="tool_use_failed", failed_generation="<f>"),
        C.MALFORMED_RESPONSE, True),
    Row("groq decommissioned", "groq", 400, _error(message="gone", code="model_decommissioned"),
        C.MODEL_NOT_FOUND, False),
    Row("groq in a chunk", "groq", None, {"choices": [], "x_groq": {"error": "over the edge"}}, C.SERVER_ERROR, True),
    Row("69 groq gateway page", "groq", 502,
        "<!DOCTYPE html><html><title>502</title><body>rate limit, 401</body></html>", C.SERVER_ERROR, True),
    Row("70 mistral key", "mistral", 401, {"message": "Unauthorized", "request_id": "r"}, C.AUTH_INVALID, False),
    Row("71 mistral model", "mistral", 400,
        {"object": "error", "message": "Invalid model: x", "type": "invalid_model", "param": None, "code": "1500"},
        C.MODEL_NOT_FOUND, False),
    Row("72 mistral validation", "mistral", 422,
        {"detail": [{"loc": ["body", "messages"], "msg": "Field required", "type": "missing",
                     "input": "429 rate limit, prompt is too long, insufficient_quota"}]}, C.INVALID_REQUEST, False),
    Row("73 mistral rate", "mistral", 429,
        {"object": "error", "message": "Rate limit exceeded", "type": "rate_limited", "code": "1300"},
        C.RATE_LIMITED, True),
    Row("mistral full", "mistral", 429,
        {"object": "error", "message": "Service tier capacity exceeded for it.", "type": "invalid_request_error",
         "code": "3505"}, C.OVERLOADED, True),
    Row("76 mistral in band", "mistral", None, {"choices": [{"delta": {}, "finish_reason": "error"}]},
        C.SERVER_ERROR, True),
    Row("77 cohere key", "cohere", 401, {"message": "invalid api token"}, C.AUTH_INVALID, False),
    Row("78 cohere context", "cohere", 400, {"message": "too many tokens: size limit exceeded by 100 tokens"},
        C.CONTEXT_TOO_LONG, False),
    Row("79 cohere billing", "cohere", 402, {"message": "pay"}, C.QUOTA_EXHAUSTED, False),
    Row("cohere streaming fault", "cohere", 499, {"message": "request cancelled"}, C.SERVER_ERROR, True),
    Row("81 cohere in band", "cohere", None,
        {"type": "message-end", "delta": {"finish_reason": "ERROR", "error": "it broke"}}, C.SERVER_ERROR, True),
    Row("83 deepseek balance", "deepseek", 402,
        _error(message="Insufficient Balance", type="unknown_error", code="invalid_request_error"),
        C.QUOTA_EXHAUSTED, False),
    Row("deepseek filter", "deepseek", 400,
        _error(message="Content Exists Risk", type="invalid_request_error", code="invalid_request_error"),
        C.CONTENT_FILTERED, False),
    Row("85 deepseek context", "deepseek", 400,
        _error(message="This model's maximum context length is 131072 tokens.", type="invalid_request_error",
               code="invalid_request_error"), C.CONTEXT_TOO_LONG, False),
    Row("deepseek cut", "deepseek", None,
        {"choices": [{"delta": {}, "finish_reason": "insufficient_system_resource"}]}, C.OVERLOADED, True),
    Row("87 openrouter credits", "openrouter", 402,
        _error(code=402, message="no", metadata={"limit_source": "openrouter_credits"}), C.QUOTA_EXHAUSTED, False),
    Row("openrouter in-flight budget", "openrouter", 402,
        _error(code=402, message="no", metadata={"limit_source": "in_flight"}), C.RATE_LIMITED, True, 4_000,
        {"retry-after": "4"}),
    Row("89 openrouter moderation", "openrouter", 403,
        _error(code=403, message="no", metadata={"reasons": ["violence"], "provider_name": "x"}),
        C.CONTENT_FILTERED, False),
    Row("openrouter key limit", "openrouter", 403, _error(code=403, message="Key limit exceeded (total limit)."),
        C.QUOTA_EXHAUSTED, False),
    Row("91 openrouter model", "openrouter", 404, _error(code=404, message="No endpoints found for x."),
        C.MODEL_NOT_FOUND, False),
    Row("92 openrouter shared pool", "openrouter", 429,
        _error(code=429, message="no", metadata={"limit_source": "upstream_provider_shared_pool"}),
        C.RATE_LIMITED, True),
    Row("openrouter upstream's own words", "openrouter", 400,
        _error(code=400, message="Provider returned error",
               metadata={"provider_name": "x", "raw": '{"error":{"code":"context_length_exceeded","message":"no"}}'}),
        C.CONTEXT_TOO_LONG, False),
    Row("93 openrouter in band", "openrouter", None,
        {"error": {"code": 502, "message": "Provider gone"},
         "choices": [{"delta": {"content": ""}, "finish_reason": "error"}]}, C.SERVER_ERROR, True),
    Row("openrouter in band, code as text", "openrouter", None, _error(code="429", message="no"), C.RATE_LIMITED, True),
    Row("together context", "together", 403, _error(message="no", type="invalid_request_error"),
        C.CONTEXT_TOO_LONG, False),
    Row("97 together busy", "together", 503, _error(message="no"), C.OVERLOADED, True),
    Row("100 copilot token", "copilot", 401, "unauthorized: token expired", C.AUTH_INVALID, False),
    Row("101 copilot quota", "copilot", 402, _error(message="no", code="quota_exceeded"), C.QUOTA_EXHAUSTED, False,
        60_000, {"retry-after": "60"}),
    Row("103 copilot rate", "copilot", 429, {"code": "user_global_rate_limited:x", "message": "no"},
        C.RATE_LIMITED, True, 60_000, {"retry-after": "60"}),
    Row("104 copilot context", "copilot", 400, _error(message="no", code="model_max_prompt_tokens_exceeded"),
        C.CONTEXT_TOO_LONG, False),
    Row("104 copilot context without code", "copilot", 400,
        _error(message="prompt token count of 140000 exceeds the limit of 128000", code=""), C.CONTEXT_TOO_LONG, False),
    Row("copilot new token", "copilot", 403, "no", C.AUTH_INVALID, False),
    Row("copilot filter", "copilot", 422, "no", C.CONTENT_FILTERED, False),
    Row("copilot client too old", "copilot", 466, "no", C.INVALID_REQUEST, False),
    Row("copilot upstream rate", "copilot", 503, "no", C.RATE_LIMITED, True),
    Row("107 vllm context", "vllm", 400,
        _error(message="no", type="BadRequestError", param="input_tokens", code=400), C.CONTEXT_TOO_LONG, False),
    Row("109 vllm in band", "vllm", None, _error(message="no", type="InternalServerError", code=500),
        C.SERVER_ERROR, True),
    Row("vllm key", "vllm", 401, {"error": "Unauthorized"}, C.AUTH_INVALID, False),
    Row("111 llama.cpp context", "llama.cpp", 400,
        _error(code=400, message="no", type="exceed_context_size_error", n_prompt_tokens=9000, n_ctx=8192),
        C.CONTEXT_TOO_LONG, False),
    Row("112 llama.cpp loading", "llama.cpp", 503, _error(code=503, message="Loading model", type="unavailable_error"),
        C.OVERLOADED, True),
    Row("llama.cpp unsupported", "llama.cpp", 501, _error(code=501, message="no", type="not_supported_error"),
        C.INVALID_REQUEST, False),
    Row("114 lmstudio context", "lmstudio", None,
        {"error": {"message": "The number of tokens is greater than the context length"}, "message": "x"},
        C.CONTEXT_TOO_LONG, False),
    Row("115 ollama model", "ollama", 404, {"error": "model 'x' not found"}, C.MODEL_NOT_FOUND, False),
    Row("116 ollama busy", "ollama", 503, {"error": "server busy, please try again"}, C.OVERLOADED, True),
    Row("117 ollama subscription", "ollama", 403, {"error": "this model requires a subscription"},
        C.PERMISSION_DENIED, False),
    Row("ollama allowance", "ollama", 429, {"error": "you've reached your weekly usage limit, please upgrade"},
        C.QUOTA_EXHAUSTED, False),
    Row("ollama memory", "ollama", 500, {"error": "model requires more system memory (9 GiB) than is available"},
        C.SERVER_ERROR, False),
    Row("119 ollama in band", "ollama", None, {"error": "it broke"}, C.SERVER_ERROR, True),
    Row("127 anything else", "any", 418, "", C.UNKNOWN, False),
)  # fmt: skip
