"""Classifies exceptions of httpx and of the official SDKs by their structure: attributes, and class names in the MRO.

It imports none of them: an exception is looked at for a status, a response, headers, a body and a code, under the names
that the SDKs give these; what has none of them is known by the names of its classes.
"""

from collections.abc import Iterator, Mapping

from compass.failures.categories import Category, Verdict
from compass.failures.classifier import classify
from compass.failures.evidence import error_status
from compass.failures.rules import CUT_OFF, FILTERED, INVALID, MALFORMED, NETWORK, Rule

_MAX_CHAIN = 8
_CANCELLATIONS = frozenset({"CancelledError", "Cancelled", "GeneratorExit", "KeyboardInterrupt"})

_BY_CLASS: Mapping[str, Rule] = {
    name: rule
    for rule, names in {
        # Failures of the transport. A timeout here is our own, not one that the provider reports.
        NETWORK: """TransportError ConnectError ConnectTimeout ReadError ReadTimeout WriteError WriteTimeout PoolTimeout
            CloseError NetworkError ProtocolError RemoteProtocolError LocalProtocolError ProxyError TimeoutException
            APIConnectionError APITimeoutError APIConnectionTimeoutError NoResponseError ConnectionError TimeoutError
            gaierror SSLError ClientConnectionError ClientPayloadError ServerTimeoutError ServerDisconnectedError
            IncompleteReadError IncompleteRead ChunkedEncodingError URLError MaxRetryError""",
        MALFORMED: """DecodingError JSONDecodeError UnicodeDecodeError DecodeError ValidationError
            APIResponseValidationError ResponseValidationError UnknownApiResponseError""",
        FILTERED: "ContentFilterFinishReasonError",
        INVALID: "UnsupportedProtocol InvalidURL LengthFinishReasonError",
        CUT_OFF: "EmptyStreamError",
    }.items()
    for name in names.split()
}
_PROVIDERS = {
    "openai": "openai-chat",
    "anthropic": "anthropic",
    "google": "gemini",
    "cohere": "cohere",
    "mistralai": "mistral",
    "groq": "groq",
    "together": "together",
    "ollama": "ollama",
}
"""By the package that an exception's class comes from."""


def classify_exception(exc: BaseException, *, provider: object = None) -> Verdict:
    """Classify an exception, or else what caused it.

    Raises TypeError for a cancellation: an abort is not a failure and has no category.
    """
    if _is_cancellation(exc):
        raise TypeError("a cancellation is an abort, not a failure: it is never classified")
    verdicts = [_verdict(link, provider) for link in _chain(exc)]
    return next((verdict for verdict in verdicts if verdict.category is not Category.UNKNOWN), verdicts[0])


def _is_cancellation(exc: BaseException) -> bool:
    return not _CANCELLATIONS.isdisjoint(cls.__name__ for cls in type(exc).__mro__)


def _chain(exc: BaseException) -> Iterator[BaseException]:
    """Walk an exception and what it says caused it; of a group, its members."""
    queue, seen = [exc], 0
    while queue and seen < _MAX_CHAIN:
        link = queue.pop(0)
        seen += 1
        if _is_cancellation(link):
            continue
        yield link
        if isinstance(link, BaseExceptionGroup):
            queue.extend(link.exceptions)
        cause = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
        if cause is not None:
            queue.append(cause)


def _verdict(exc: BaseException, provider: object) -> Verdict:
    if isinstance(category := getattr(exc, "category", None), Category):
        retryable = getattr(exc, "retryable", category.retryable)
        wait = getattr(exc, "retry_after_ms", None)
        return Verdict(category, bool(retryable), wait if isinstance(wait, int) else None)
    response = getattr(exc, "response", None) or getattr(exc, "raw_response", None)
    reported = classify(
        provider=provider or _PROVIDERS.get(type(exc).__module__.partition(".")[0]),
        status=_status(exc, response),
        headers=getattr(exc, "headers", None) or getattr(response, "headers", None),
        body=_body(exc, response),
        message=str(exc),
    )
    rule = _by_class(exc)
    if rule is None or (_has_answer(exc, response) and (rule is NETWORK or reported.category is not Category.UNKNOWN)):
        return reported
    return Verdict(rule.category, rule.retryable)


def _by_class(exc: BaseException) -> Rule | None:
    return next((_BY_CLASS[cls.__name__] for cls in type(exc).__mro__ if cls.__name__ in _BY_CLASS), None)


def _has_answer(exc: BaseException, response: object) -> bool:
    """Whether the provider has answered at all: without an answer, the class alone says what happened."""
    return response is not None or _status(exc, None) is not None or bool(getattr(exc, "body", None))


def _status(exc: BaseException, response: object) -> int | None:
    candidates = (
        getattr(exc, "status_code", None),
        getattr(response, "status_code", None),
        getattr(exc, "http_status", None),
        getattr(exc, "code", None),
        getattr(exc, "status", None),
    )
    return next((status for value in candidates if (status := error_status(value)) is not None), None)


def _body(exc: BaseException, response: object) -> object:
    named = {name: getattr(exc, name, None) for name in ("code", "type", "param", "status", "error")}
    words = {name: value for name, value in named.items() if isinstance(value, str) and value}
    bodies = [getattr(exc, name, None) for name in ("body", "details")]
    body = next((body for body in bodies if isinstance(body, dict | list | str | bytes) and body), None)
    return [words, body if body is not None else _content(response)]


def _content(response: object) -> object:
    """Read what is at hand of a response; one that was never read has nothing."""
    try:
        content = getattr(response, "content", None)
    except RuntimeError:  # httpx.ResponseNotRead
        return None
    return content if isinstance(content, str | bytes) else None
