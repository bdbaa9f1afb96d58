"""Errors with two faces: a reviewed public problem, and an internal cause that only the log and the span may see.

The cause is rendered to text and held beside the error, in a table that forgets it with the error; `observe` alone
reads it. Text, not the exception: a traceback would lead from the table back to the error and keep both alive for ever.
"""

import traceback
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from compass.failures.redaction import redact

UNFORESEEN = "The service failed in a way that it did not foresee."
"""What is said of an error that has no reviewed text."""

_MAX_TRACEBACK_CHARS = 32 * 1024


@dataclass(frozen=True, slots=True)
class Cause:
    """What the service knows of why. For the log and the span only; credentials are taken out even there."""

    type_name: str
    text: str
    """The exception's type and message."""
    traceback: str
    """Where it came from; the end of it, when it is very long."""


@dataclass(frozen=True, slots=True)
class Observed:
    """An error seen from both sides."""

    problem: str
    """Reviewed public text."""
    cause: Cause | None
    """What no client may see. None when nothing lies behind the problem."""


_CAUSE = vars(BaseException)["__cause__"]
_CONTEXT = vars(BaseException)["__context__"]
"""Where Python itself keeps the links of a chain."""

_causes: WeakKeyDictionary[BaseException, Cause] = WeakKeyDictionary()


class PublicProblemError(Exception):
    """An error whose text is reviewed public text: it may reach a client, a prompt or a page as it is.

    What lies behind it is given as `cause`, by `raise ... from`, or by raising it inside an `except` block. No
    attribute, chain, argument, repr or pickle of the error leads to it.
    """

    def __init__(self, problem: str, *, cause: BaseException | None = None) -> None:
        super().__init__(problem)
        if cause is not None:
            _causes[self] = _render(cause)

    @property
    def problem(self) -> str:
        """Reviewed public text."""
        return str(self)

    # Python fills both links of the chain by itself when an error is raised. These hide them from everything that walks
    # a chain by attribute, which is every formatter and serializer; `observe` looks below.

    @property
    def __cause__(self) -> BaseException | None:
        """Nothing."""
        return None

    @__cause__.setter
    def __cause__(self, cause: BaseException | None) -> None:
        _CAUSE.__set__(self, cause)

    @property
    def __context__(self) -> BaseException | None:
        """Nothing."""
        return None

    @__context__.setter
    def __context__(self, context: BaseException | None) -> None:
        _CONTEXT.__set__(self, context)


def observe(exc: BaseException) -> Observed:
    """See an error from both sides. One without reviewed text is a cause, and its problem is a fixed sentence."""
    if not isinstance(exc, PublicProblemError):
        return Observed(UNFORESEEN, _render(exc))
    behind = _hidden(exc)
    return Observed(exc.problem, _causes.get(exc) or (_render(behind) if behind else None))


def _hidden(exc: BaseException) -> BaseException | None:
    cause: BaseException | None = _CAUSE.__get__(exc)
    context: BaseException | None = _CONTEXT.__get__(exc)
    return cause or (None if exc.__suppress_context__ else context)


def _render(exc: BaseException) -> Cause:
    type_name = f"{type(exc).__module__}.{type(exc).__qualname__}"
    lines = "".join(traceback.format_exception(exc))
    return Cause(type_name, redact(f"{type_name}: {exc}"), redact(lines)[-_MAX_TRACEBACK_CHARS:])
