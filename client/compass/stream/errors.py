"""The one error of a stream, and how it is made: from what a provider reported, from an exception, from a broken end.

Its message is public text: redacted, bounded, and never a page of HTML.
"""

import re
from collections.abc import Mapping
from typing import Self

from compass.errors import CompassError
from compass.failures import Category, Verdict, classify, classify_exception, public_prose

_HTML = re.compile(r"\A\s*<|<!doctype html|<html|<head|<body", re.IGNORECASE)
_FIRST_ERROR_STATUS = 400
_SDK_DIALECTS = {"openai": "openai-chat", "anthropic": "anthropic"}


class ModelStreamError(CompassError):
    """A provider's stream failed: it was refused, reported an error, broke, or ended without its end mark.

    What had come until then is a partial answer, to be kept and marked as cut off, never to be taken for a whole one.
    Whose problem it is says `category`; a retry helps only if `retryable`, which is never so after the first chunk.
    """

    reason = "MODEL_STREAM_FAILED"

    def __init__(
        self,
        message: str,
        *,
        category: Category,
        retryable: bool,
        retry_after_ms: int | None = None,
        status: int | None = None,
        provider: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        """What went wrong, redacted and at most 2,048 bytes."""
        self.category = category
        self.retryable = retryable
        """Whether the same request may succeed when sent again. False once a chunk was given out."""
        self.retry_after_ms = retry_after_ms
        """How long to wait first, None when the provider did not say."""
        self.status = status
        """The HTTP status of an unsuccessful response, None if the failure came any other way."""
        self.provider = provider
        """The dialect's name, None where it could not be told."""

    @property
    def advice(self) -> str:
        """One reviewed line for a person."""
        return self.category.advice

    @classmethod
    def of(cls, verdict: Verdict, message: str, *, status: int | None = None) -> Self:
        """Make the error that a verdict of the classifier calls for."""
        return cls(
            message,
            category=verdict.category,
            retryable=verdict.retryable,
            retry_after_ms=verdict.retry_after_ms,
            status=status,
        )


def failure(category: Category, message: str, *, retryable: bool | None = None) -> ModelStreamError:
    """Make the error of a failure that the stream itself shows; without a verdict the category's own holds."""
    verdict = Verdict(category, category.retryable if retryable is None else retryable)
    return ModelStreamError.of(verdict, public_prose(message))


def reported(
    provider: str,
    body: object,
    *,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
) -> ModelStreamError:
    """Make the error that a provider reported, in the body of a response or, without a status, in a frame."""
    verdict = classify(provider=provider, status=status, headers=headers, body=body)
    text = _public_text(_words(body)) or (f"HTTP status {status}" if status else "the provider reported an error")
    return ModelStreamError.of(verdict, text, status=status)


def raised(provider: str | None, cause: Exception) -> ModelStreamError:
    """Make the error for an exception of httpx or of an SDK, from its structure."""
    provider = provider or sdk_dialect(cause)
    status = getattr(cause, "status_code", None)
    failed_status = status if isinstance(status, int) and status >= _FIRST_ERROR_STATUS else None
    body = getattr(cause, "body", None)
    text = _public_text(_words(body)) or _public_text(str(cause)) or type(cause).__name__
    error = ModelStreamError.of(classify_exception(cause, provider=provider), text, status=failed_status)
    error.provider = provider
    return error


def sdk_dialect(thing: object) -> str | None:
    """Tell by the module of an SDK's stream or exception what its provider speaks, before anything has come."""
    return _SDK_DIALECTS.get(type(thing).__module__.partition(".")[0])


def _words(body: object) -> object:
    """Find what an error's body says to a person, in any of the shapes that providers give it."""
    match body:
        case [first, *_]:
            return _words(first)
        case {"error": error} if error:
            return _words(error)
        case {"message": text} | {"detail": text} | {"msg": text} if text:
            return _words(text)
    return body


def _public_text(words: object) -> str:
    """Make the words public; nothing is left of a page of HTML, which says nothing to a person."""
    text = public_prose(words)
    return "" if _HTML.search(text) else text
