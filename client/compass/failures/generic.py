"""The rules that hold for every provider: what a machine word, a status and, last, a wording mean.

Data, read by the classifier. A dialect's own table (`dialects`) comes before these.
"""

import re

from compass.failures.evidence import squash
from compass.failures.rules import (
    AUTH,
    CONTEXT,
    CUT_OFF,
    DENIED,
    FILTERED,
    INVALID,
    MALFORMED,
    MODEL,
    NETWORK,
    OVERLOADED,
    QUOTA,
    RATE,
    SERVER,
    TIMEOUT,
    Rules,
    word_table,
    wording,
)

WORDS = word_table({
    AUTH: """invalid_api_key incorrect_api_key api_key_invalid authentication_error authentication_failed
        invalid_authentication unauthenticated unauthorized token_expired access_token_expired invalid_token_error
        missing_api_key expired_token_exception
        unrecognized_client_exception""",
    DENIED: """permission_error permission_denied unsupported_country_region_territory access_denied
        access_denied_exception insufficient_permissions forbidden service_disabled api_key_service_blocked""",
    QUOTA: """insufficient_quota credit_balance_exhausted organization_spend_limit_exceeded
        project_spend_limit_exceeded organization_usage_limit_exceeded billing_error billing_not_active
        billing_hard_limit_reached billing_not_configured enforced_spend_limit_reached contract_spend_limit_reached
        quota_exceeded free_quota_exceeded overage_limit_reached insufficient_balance insufficient_credits
        usage_limit_reached quota_exhausted usage_not_included""",
    RATE: """rate_limit_exceeded rate_limit_error rate_limited rate_limit too_many_requests slow_down
        user_model_rate_limited user_global_rate_limited throttling_exception throttling_error throttled""",
    OVERLOADED: """overloaded_error overloaded server_is_overloaded server_overloaded model_overloaded
        capacity_exceeded service_unavailable_error service_unavailable service_unavailable_exception
        engine_overloaded engine_overloaded_error insufficient_system_resource unavailable unavailable_error""",
    SERVER: """server_error internal_server_error internal_error internal""",
    TIMEOUT: """timeout_error gateway_timeout deadline_exceeded request_timeout""",
    MODEL: """model_not_found model_not_available deployment_not_found model_decommissioned model_deprecated
        invalid_model unknown_model model_not_supported unsupported_model""",
    CONTEXT: """context_length_exceeded context_window_exceeded exceed_context_size_error
        model_max_prompt_tokens_exceeded prompt_too_long model_context_window_exceeded context_too_long
        max_prompt_tokens_exceeded""",
    FILTERED: """content_filter content_policy_violation content_filtered moderation_blocked invalid_prompt bio_policy
        cyber_policy misalignment_policy_violation responsible_ai_policy_violation content_moderation""",
    INVALID: """unsupported_parameter unsupported_value invalid_value missing_required_parameter not_supported_error
        request_too_large unimplemented invalid_type""",
})  # fmt: skip

COARSE = {
    squash(word): status
    for status, words in {
        400: """invalid_request_error invalid_request bad_request bad_request_error invalid_argument out_of_range
            validation_error validation_exception failed_precondition""",
        404: "not_found not_found_error resource_not_found",
        429: "resource_exhausted tokens requests",
        500: "api_error",
    }.items()
    for word in words.split()
}
"""Words that say no more than a status would. They stand in for one, when there is none."""

ENDINGS = word_table({
    FILTERED: """finish_reason:content_filter reason:content_filter stop_reason:refusal stop_reason:content_filter
        stop_reason:sensitive finish_reason:safety finish_reason:recitation finish_reason:blocklist
        finish_reason:prohibited_content finish_reason:spii finish_reason:model_armor finish_reason:language
        finish_reason:image_safety finish_reason:error_toxic block_reason:safety block_reason:other
        block_reason:blocklist block_reason:prohibited_content block_reason:image_safety block_reason:model_armor
        block_reason:jailbreak""",
    SERVER: "finish_reason:error",
    OVERLOADED: "finish_reason:insufficient_system_resource",
    TIMEOUT: "finish_reason:timeout",
    MALFORMED: """finish_reason:malformed_function_call finish_reason:unexpected_tool_call
        finish_reason:error_limit""",
})  # fmt: skip
"""Reasons of a stream's end that mean failure."""

STATUSES = {
    400: INVALID, 401: AUTH, 402: QUOTA, 403: DENIED, 404: INVALID, 408: TIMEOUT, 413: INVALID, 422: INVALID, 429: RATE,
    500: SERVER, 501: INVALID, 502: SERVER, 503: OVERLOADED, 504: TIMEOUT, 520: SERVER, 521: SERVER, 522: SERVER,
    523: SERVER, 524: TIMEOUT, 529: OVERLOADED,
}  # fmt: skip

_REQUEST = (None, 400, 413, 422)
_MODEL = r"\bmodels?\b"

WORDINGS = (
    wording(
        RATE,
        r"rate.?limit(?!s)", r"too many requests", r"throttl", r"tokens? per (?:minute|min|hour|day)\b",
        r"requests? per (?:second|minute|min|hour|day)\b", r"please wait before trying again",
        r"resource has been exhausted",
    ),
    wording(
        QUOTA,
        r"monthly (?:\w{1,16} ){0,2}(?:quota|limit|cap|allowance|budget)",
        r"(?:quota|limit|cap|allowance|budget) for (?:this|the) month", r"hard limit",
        refines=(None, 400, 403, 429),
    ),
    wording(
        QUOTA,
        r"credit balance is too low", r"insufficient (?:account )?(?:balance|credits?|quota|funds)", r"out of credits",
        r"spend(?:ing)? (?:limit|cap)", r"billing (?:hard )?limit", r"payment required", r"requires more credits",
        refines=(None, 400, 403),
    ),
    wording(QUOTA, r"exceeded your (?:current )?quota", r"quota (?:has been |is )?(?:exceeded|exhausted)",
            r"usage limit (?:has been )?reached", r"reached your (?:\w{1,16} )?usage limit",
            r"budget (?:has been )?exceeded"),
    wording(
        CONTEXT,
        r"prompt is too long", r"prompt too long", r"input is too long", r"maximum context length",
        r"context[ _](?:length|window|size)[ _](?:is )?exceed", r"input token count.{0,40}exceeds",
        r"exceed(?:s|ed)? (?:the |this |your )?(?:model'?s? )?(?:available |maximum |max )?context",
        r"greater than the context length", r"longer than the (?:model'?s )?context", r"maximum prompt length is \d",
        r"reduce the length of the messages", r"prompt token count.{0,40}exceeds", r"exceeded model token limit",
        refines=_REQUEST,
    ),
    wording(
        AUTH,
        r"(?:incorrect|invalid|bad|missing|expired) (?:x-)?api[ -]?key",
        r"api[ -]?key (?:is )?(?:not valid|invalid|expired)",
        r"invalid (?:api|access|auth) token", r"no api key", r"provide an api key", r"resolve authentication",
        refines=(None, 400),
    ),
    wording(AUTH, r"\bunauthori[sz]ed\b", r"authentication (?:failed|error|required)", r"not authenticated"),
    wording(
        MODEL,
        r"models?\b.{0,80}(?:not found|does not exist|doesn't exist|not exist\b|is not supported|decommissioned)",
        r"(?:unknown|no such|invalid) model\b", r"no endpoints found",
        refines=(None, 400),
    ),
    wording(DENIED, r"(?:permission|access) denied", r"\bforbidden\b", r"(?:not|n't) have (?:access|permission)"),
    wording(
        FILTERED,
        r"content management policy", r"content[ _]filter", r"blocked by (?:our |the )?(?:content|safety)",
        refines=(None, 400, 403, 422),
    ),
    wording(MODEL, _MODEL, r"no endpoints found", refines=(404,)),
    wording(
        OVERLOADED,
        r"overloaded", r"(?:server|service|system|engine) (?:is )?(?:currently )?busy", r"(?:at|over) capacity",
        r"service (?:is )?(?:temporarily )?unavailable", r"high demand", r"no healthy upstream",
    ),
    wording(TIMEOUT, r"gateway time-?out", r"deadline exceeded", r"upstream (?:request )?time"),
    wording(
        NETWORK,
        r"socket hang up", r"\bfetch failed", r"\beconn(?:reset|refused|aborted)", r"\benotfound\b", r"\betimedout\b",
        r"\beai_again\b", r"\bepipe\b",
        r"connection (?:was |is )?(?:error|refused|reset|closed|lost|aborted|timed out)",
        r"network (?:error|is unreachable|connection)", r"name or service not known", r"getaddrinfo", r"dns ",
        r"(?:request|read|connect|connection) time(?:d ?)?-?out", r"other side closed", r"remote end closed",
        r"server disconnected", r"peer closed connection", r"broken pipe", r"incomplete chunked read",
        r"socket disconnected", r"connection termination", r"certificate", r"^\W*terminated\W*$", r"\btimed out\b",
    ),
    wording(
        CUT_OFF,
        r"empty (?:completion|response|stream)", r"stream (?:was )?(?:ended|closed|cut|finished|stopped)",
        r"without (?:a )?(?:finish|stop)[ _]reason", r"before (?:message_stop|completion|\[done\])",
        r"unexpected end of stream",
    ),
    wording(
        MALFORMED,
        r"unexpected (?:end of (?:json|data|input)|eof)", r"unexpected token .{1,40} json", r"unterminated string",
        r"(?:invalid|malformed|truncated|not valid) (?:json|response|chunk)", r"jsondecodeerror",
        r"malformed_?response",
    ),
    wording(SERVER, r"internal (?:server )?error", r"bad gateway", r"\bserver error\b", r"server had an error",
            r"error occurred while processing your request"),
    wording(INVALID, r"unsupported (?:parameter|value)", r"invalid (?:request|parameter|argument)"),
)  # fmt: skip

GENERIC = Rules(
    words=WORDS,
    statuses=STATUSES,
    wordings=WORDINGS,
    hopeless=re.compile(r"request too large"),  # one request above a minute's allowance
)
