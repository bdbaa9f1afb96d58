import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from compass.failures import Category, Verdict, classify

C = Category
RECORDINGS = Path(__file__).parents[2] / "data" / "recordings"

MESSAGES = [
    (
        "429 Rate limit reached for m on tokens per day (TPD): Limit 100000, Used 99000, Requested 2000",
        C.RATE_LIMITED,
        True,
    ),
    ("429 Rate limit reached for m on tokens per min (TPM): Limit 6000, Used 5900", C.RATE_LIMITED, True),
    ("Rate limit reached for requests", C.RATE_LIMITED, True),
    ("Too many tokens per day, please wait before trying again.", C.RATE_LIMITED, True),
    ("ThrottlingException: Too many tokens, please wait before trying again.", C.RATE_LIMITED, True),
    ("429 too many tokens in this request window, prompt is too long", C.RATE_LIMITED, True),
    ("prompt is too long: 285744 tokens > 200000 maximum", C.CONTEXT_TOO_LONG, False),
    ("400 Your input exceeds this model's context window", C.CONTEXT_TOO_LONG, False),
    ("This model's maximum context length is 128000 tokens", C.CONTEXT_TOO_LONG, False),
    ("401 Incorrect API key provided: sk-abc***xyz", C.AUTH_INVALID, False),
    ("403 Forbidden", C.PERMISSION_DENIED, False),
    ("529 overloaded", C.OVERLOADED, True),
    ("Overloaded", C.OVERLOADED, True),
    ("socket hang up", C.NETWORK, True),
    ("read ECONNRESET", C.NETWORK, True),
    ("Connection error.", C.NETWORK, True),
    ("Request timed out.", C.NETWORK, True),
    ("504 Gateway Timeout", C.TIMEOUT, True),
    ("You have exceeded your monthly quota", C.QUOTA_EXHAUSTED, False),
    ("429 Monthly usage limit reached", C.QUOTA_EXHAUSTED, False),
    ("500 Internal Server Error", C.SERVER_ERROR, True),
    ("stream ended before message_stop", C.MALFORMED_RESPONSE, True),
    ("Error Code server_error: no luck", C.SERVER_ERROR, True),
    ("Error Code insufficient_quota: no luck", C.QUOTA_EXHAUSTED, False),
    ("Error Code undefined: no luck", C.UNKNOWN, False),
    ("Unexpected end of JSON input", C.MALFORMED_RESPONSE, False),
    ("the flux capacitor is out of tune", C.UNKNOWN, False),
    ("", C.UNKNOWN, False),
]
messages = pytest.mark.parametrize(("message", "category", "retryable"), MESSAGES, ids=[m[:40] for m, _, _ in MESSAGES])


@messages
@pytest.mark.parametrize(
    "spell",
    [
        lambda text: text,
        str.lower,
        json.dumps,
        lambda text: json.dumps({"error": {"message": text}}),
        lambda text: json.dumps({"message": json.dumps({"error": text})}),
        lambda text: f"Error: {text}",
        lambda text: text.encode(),
        lambda text: {"message": text},
    ],
)
def test_what_an_agent_reports_keeps_its_kind_in_any_spelling(message, category, retryable, spell):
    verdict = classify(message=spell(message))
    assert (verdict.category, verdict.retryable) == (category, retryable)


@pytest.mark.parametrize(
    ("recording", "category"),
    [("omp-err401", C.AUTH_INVALID), ("pi-err429", C.RATE_LIMITED), ("omp-inband", C.RATE_LIMITED)],
)
def test_the_recorded_failures_of_real_agents_are_told_by_their_message_alone(recording, category):
    events = [json.loads(line) for line in (RECORDINGS / f"{recording}.jsonl").read_text().split("\n") if line]
    failed = [m for e in events if (m := e.get("message")) and m.get("stopReason") == "error"]
    assert failed
    for message in failed:
        assert classify(message=message["errorMessage"]).category is category
        assert classify(message=message).category is category


@pytest.mark.parametrize(
    ("status", "category", "retryable"),
    [
        (400, C.INVALID_REQUEST, False), (401, C.AUTH_INVALID, False), (402, C.QUOTA_EXHAUSTED, False),
        (403, C.PERMISSION_DENIED, False), (404, C.INVALID_REQUEST, False), (408, C.TIMEOUT, True),
        (413, C.INVALID_REQUEST, False), (418, C.UNKNOWN, False), (422, C.INVALID_REQUEST, False),
        (429, C.RATE_LIMITED, True), (500, C.SERVER_ERROR, True), (501, C.INVALID_REQUEST, False),
        (502, C.SERVER_ERROR, True), (503, C.OVERLOADED, True), (504, C.TIMEOUT, True), (520, C.SERVER_ERROR, True),
        (523, C.SERVER_ERROR, True), (524, C.TIMEOUT, True), (529, C.OVERLOADED, True), (599, C.UNKNOWN, False),
        (200, C.UNKNOWN, False), (0, C.UNKNOWN, False), (-1, C.UNKNOWN, False), (None, C.UNKNOWN, False),
        (True, C.UNKNOWN, False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("provider", [None, "somebody-new", "openai-compatible", 5])
def test_a_status_alone_means_what_it_means_everywhere(provider, status, category, retryable):
    assert classify(provider=provider, status=status) == Verdict(category, retryable)


def test_no_argument_at_all_is_unknown():
    assert classify() == Verdict(C.UNKNOWN, retryable=False)


@pytest.mark.parametrize(
    ("status", "message", "category"),
    [
        (429, "prompt is too long, invalid api key", C.RATE_LIMITED),
        (401, "rate limit exceeded", C.AUTH_INVALID),
        (500, "429 rate limit", C.SERVER_ERROR),
        (503, "your credit balance is too low", C.OVERLOADED),
    ],
)
def test_wording_never_overrules_a_status_that_says_enough(status, message, category):
    assert classify(status=status, message=message).category is category


def test_wording_never_overrules_a_machine_word():
    body = {"error": {"code": "invalid_api_key", "message": "Rate limit exceeded, the prompt is too long"}}
    assert classify(status=429, body=body).category is C.AUTH_INVALID
    assert classify(body=body, message="429 Too many requests (rate_limit_exceeded)").category is C.AUTH_INVALID


def test_a_number_at_the_head_of_a_message_counts_less_than_a_status_and_more_than_wording():
    assert classify(message="503 rate limit").category is C.OVERLOADED
    assert classify(message="there were 429 rows and 503 columns").category is C.UNKNOWN


@pytest.mark.parametrize(
    "told",
    [
        "Request failed: 402 {}",
        "Turn failed: 402: {}",
        "Request failed (402): {}",
        "The provider answered 402 - {}",
        "[402] {}",
        "402\n{}",
        "402 status code: {}",
        "OpenAI API error 402: {}",
        "AI_APICallError: 402 {}",
        "LLM call failed: HTTP 402 - {}",
        "attempt 3 failed: Error code: 402 - {}",
    ],
)
@pytest.mark.parametrize(
    "body", ['{"message": "no"}', '[{"message": "no"}]', "<!DOCTYPE html><html>no", "{'message': 'no'}"]
)
def test_a_status_before_a_body_counts_wherever_it_stands(told, body):
    message = told.format(body)
    for spelled in (
        message,
        message.lower(),
        json.dumps({"error": {"message": message}}),
        f"agent: {json.dumps(message)}",
    ):
        assert classify(message=spelled).category is C.QUOTA_EXHAUSTED


@pytest.mark.parametrize(
    "prose",
    [
        "I read 404 files and then stopped",
        "wrote 429 lines to {path}",
        "in line 503 of x: {bad}",
        "12402 {}",
        "v1.402 {}",
    ],
)
def test_a_number_in_prose_is_no_status(prose):
    assert classify(message=prose).category is C.UNKNOWN


def test_words_that_a_prompt_echoes_do_not_count():
    echo = "insufficient_quota 429 invalid_api_key rate limit"
    body = {
        "detail": [
            {"loc": ["body"], "msg": "Field required", "type": "missing", "input": {"code": echo, "message": echo}}
        ]
    }
    assert classify(status=422, body=body).category is C.INVALID_REQUEST
    assert classify(body={"choices": [{"delta": {"content": echo}}]}).category is C.UNKNOWN
    assert classify(body={"error": None, "choices": [{"delta": {"content": echo}}]}).category is C.UNKNOWN


@pytest.mark.parametrize(
    "message", [None, 5, 5.5, True, [], {}, object(), b"\xff\xfe", "\ud83d", "{" * 5_000, "[[[[" * 500]
)
def test_a_message_of_any_type_is_read_or_unknown(message):
    assert classify(message=message, body=message).category is C.UNKNOWN


def test_a_message_that_is_a_number_is_read_as_a_status():
    assert classify(message=429).category is C.RATE_LIMITED


def test_a_page_of_html_says_nothing_by_its_words():
    page = "<!DOCTYPE html><html><body>429 rate limit, invalid api key</body></html>"
    assert classify(message=f"502 {page}").category is C.SERVER_ERROR
    assert classify(message=page).category is C.UNKNOWN
    assert classify(status=200, body=page) == Verdict(C.MALFORMED_RESPONSE, retryable=False)


@pytest.mark.parametrize("provider", ["openai", "OpenAI", "openai-chat", "OPENAI_CHAT", "azure-openai-responses"])
def test_a_provider_is_known_by_the_names_that_agents_use(provider):
    quota = "429 You exceeded your current quota, please check your plan and billing details."
    assert classify(provider=provider, message=quota).category is C.QUOTA_EXHAUSTED
    assert classify(provider="google", message=quota).category is C.RATE_LIMITED


@pytest.mark.parametrize(
    ("headers", "wait_ms"),
    [
        ({"Retry-After": "2"}, 2_000),
        ({"retry-after": "1.5"}, 1_500),
        ({"RETRY-AFTER-MS": "1200.4", "retry-after": "9"}, 1_201),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9_000),
        ([("Retry-After", "3")], 3_000),
        ([(b"retry-after", b"4"), (b"retry-after", b"5")], 4_000),
        ({"retry-after": ["6"]}, 6_000),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "1_000"}, None),
        ({"retry-after": "\u0663"}, None),
        ({"retry-after": "1e300"}, None),
        ({"x-ratelimit-reset-requests": "120ms"}, 120),
        ({"x-ratelimit-reset-tokens": "6m0s", "x-ratelimit-reset-requests": "1s"}, 360_000),
        (
            {
                "x-ratelimit-reset-tokens": "6m0s",
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-remaining-requests": "0",
            },
            1_000,
        ),
        ({"x-ratelimit-reset-tokens": "soon"}, None),
        ("retry-after: 5", None),
        (None, None),
        ([5, None, ("a",)], None),
    ],
)  # fmt: skip
def test_a_wait_comes_from_the_best_header(headers, wait_ms):
    assert classify(status=429, headers=headers).retry_after_ms == wait_ms


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("retry-after", lambda at: format_datetime(at, usegmt=True)),
        ("anthropic-ratelimit-tokens-reset", lambda at: at.strftime("%Y-%m-%dT%H:%M:%SZ")),
        ("anthropic-ratelimit-unified-reset", lambda at: str(int(at.timestamp()))),
        ("x-ratelimit-reset", lambda at: str(int(at.timestamp()))),
        ("X-RateLimit-Reset", lambda at: str(int(at.timestamp() * 1_000))),
    ],
)
def test_a_moment_becomes_a_wait(name, value):
    in_a_minute = datetime.now(UTC) + timedelta(seconds=60)
    wait_ms = classify(status=429, headers={name: value(in_a_minute)}).retry_after_ms
    assert wait_ms == pytest.approx(60_000, abs=5_000)
    ago = datetime.now(UTC) - timedelta(seconds=60)
    assert classify(status=429, headers={name: value(ago)}).retry_after_ms is None


def test_the_exhausted_bucket_decides_and_then_the_one_that_the_error_names():
    headers = {"x-ratelimit-reset-tokens": "6m0s", "x-ratelimit-reset-requests": "1s"}
    body = {"error": {"type": "requests", "code": "rate_limit_exceeded"}}
    assert classify(provider="openai-chat", status=429, headers=headers, body=body).retry_after_ms == 1_000


def test_headers_that_stand_on_every_answer_count_for_a_rate_limit_only():
    headers = {"x-ratelimit-reset-tokens": "6m0s", "anthropic-ratelimit-unified-reset": str(int(time.time()) + 60)}
    assert classify(status=500, headers=headers).retry_after_ms is None


@pytest.mark.parametrize(
    ("body", "wait_ms"),
    [
        ({"error": {"details": [{"retryDelay": "34.07s"}]}}, 34_070),
        ({"error": {"details": [{"retryDelay": "900ms"}]}}, 900),
        ({"error": {"details": [{"retryDelay": "soon"}]}}, None),
        ({"error": {"headers": {"Retry-After": "7"}}}, 7_000),
        ({"error": {"metadata": {"headers": {"retry-after-ms": "70"}}}}, 70),
        ({"error": {"retry_after": 5}}, 5_000),
        ({"error": {"message": "Please try again in 6.57s. Visit"}}, 6_570),
        ({"error": {"message": "Please try again in 7m12s."}}, 432_000),
        ({"error": {"message": "Please retry in 38.2s."}}, 38_200),
        ({"error": {"message": "try again in 2 minutes"}}, 120_000),
        ({"error": {"message": "Try again in 250ms"}}, 250),
        ({"error": {"message": "try again later"}}, None),
    ],
)
def test_a_wait_comes_from_the_body_when_no_header_has_it(body, wait_ms):
    assert classify(status=429, body=body).retry_after_ms == wait_ms
    assert classify(status=429, headers={"retry-after": "1"}, body=body).retry_after_ms == 1_000


def test_the_providers_own_word_on_retry_beats_the_status_and_not_a_machine_word():
    assert classify(status=500, headers={"x-should-retry": "false"}).retryable is False
    assert classify(status=409, headers={"X-Should-Retry": "true"}).retryable is True
    quota = {"error": {"code": "insufficient_quota"}}
    assert classify(status=429, headers={"x-should-retry": "true"}, body=quota).retryable is False
    rate = {"error": {"code": "rate_limit_exceeded"}}
    assert classify(status=429, headers={"x-should-retry": "false"}, body=rate).retryable is False


def test_every_category_has_advice():
    assert all(category.advice for category in Category)
    assert classify(status=401).advice == "Check the API key"
