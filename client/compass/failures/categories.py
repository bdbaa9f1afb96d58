"""The failure taxonomy: categories, whether a retry may help by default, and one line of advice for a person."""

from dataclasses import dataclass
from enum import Enum

from compass.v1 import failure_pb2 as pb


class Category(Enum):
    """What kind of failure it is. Values are those of `compass.v1.FailureCategory`."""

    AUTH_INVALID = pb.FAILURE_CATEGORY_AUTH_INVALID
    """The credential was missing, malformed or refused."""
    PERMISSION_DENIED = pb.FAILURE_CATEGORY_PERMISSION_DENIED
    """The credential is valid but may not do this."""
    QUOTA_EXHAUSTED = pb.FAILURE_CATEGORY_QUOTA_EXHAUSTED
    """Money or a hard cap is used up: waiting does not help."""
    RATE_LIMITED = pb.FAILURE_CATEGORY_RATE_LIMITED
    """Too much for now: waiting helps."""
    OVERLOADED = pb.FAILURE_CATEGORY_OVERLOADED
    """The provider has no capacity at the moment."""
    SERVER_ERROR = pb.FAILURE_CATEGORY_SERVER_ERROR
    """The provider failed inside."""
    TIMEOUT = pb.FAILURE_CATEGORY_TIMEOUT
    """The provider reported that it took too long."""
    NETWORK = pb.FAILURE_CATEGORY_NETWORK
    """No response, or the transport broke."""
    MODEL_NOT_FOUND = pb.FAILURE_CATEGORY_MODEL_NOT_FOUND
    """The model does not exist or is not served."""
    CONTEXT_TOO_LONG = pb.FAILURE_CATEGORY_CONTEXT_TOO_LONG
    """The input is larger than the model's context."""
    CONTENT_FILTERED = pb.FAILURE_CATEGORY_CONTENT_FILTERED
    """A content filter refused the input or the output."""
    INVALID_REQUEST = pb.FAILURE_CATEGORY_INVALID_REQUEST
    """The request itself is wrong."""
    MALFORMED_RESPONSE = pb.FAILURE_CATEGORY_MALFORMED_RESPONSE
    """The answer could not be read, was cut off, or was empty."""
    UNKNOWN = pb.FAILURE_CATEGORY_UNKNOWN
    """No rule knows this failure."""

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed when sent again, unless a rule says otherwise."""
        return self in _RETRYABLE

    @property
    def advice(self) -> str:
        """One reviewed line for a person."""
        return _ADVICE[self]


_RETRYABLE = frozenset(
    {Category.RATE_LIMITED, Category.OVERLOADED, Category.SERVER_ERROR, Category.TIMEOUT, Category.NETWORK},
)
_ADVICE = {
    Category.AUTH_INVALID: "Check the API key",
    Category.PERMISSION_DENIED: "Ask for access, or use another key or model",
    Category.QUOTA_EXHAUSTED: "Add credit or raise the spending limit",
    Category.RATE_LIMITED: "Wait and try again",
    Category.OVERLOADED: "The provider is busy; try again in a moment",
    Category.SERVER_ERROR: "The provider failed; try again",
    Category.TIMEOUT: "The provider took too long; try again",
    Category.NETWORK: "Check the connection and try again",
    Category.MODEL_NOT_FOUND: "Check the model's name",
    Category.CONTEXT_TOO_LONG: "Shorten the conversation or choose a model with a larger context",
    Category.CONTENT_FILTERED: "Rephrase the request",
    Category.INVALID_REQUEST: "Fix the request; sending it again unchanged will not help",
    Category.MALFORMED_RESPONSE: "The answer was cut off or unreadable; try again if nothing was shown",
    Category.UNKNOWN: "Read the message; the cause is not known",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the classifier says of a failure."""

    category: Category
    retryable: bool
    """Whether the same request may succeed when sent again, while nothing of the answer was shown."""
    retry_after_ms: int | None = None
    """How long to wait first, None when the provider did not say."""

    @property
    def advice(self) -> str:
        """One reviewed line for a person."""
        return self.category.advice
