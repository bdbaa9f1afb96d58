"""From a gRPC status to the class that says what happened. The only module that knows codes and ErrorInfo reasons."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast

import grpc
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc import StatusCode

from compass import errors

DOMAIN = "compass"
_DETAILS_KEY = "grpc-status-details-bin"

_TRANSPORT_CODES = frozenset(
    # What a cut, a reset or a proxy looks like when no server put a reason beside it.
    {
        StatusCode.UNAVAILABLE,
        StatusCode.CANCELLED,
        StatusCode.INTERNAL,
        StatusCode.UNKNOWN,
        StatusCode.DEADLINE_EXCEEDED,
    },
)


@dataclass(slots=True)
class Refusal:
    """What a server said when it refused."""

    session_id: str
    reason: str = ""
    facts: dict[str, str] = field(default_factory=dict)
    retry_after_s: float | None = None
    violations: tuple[errors.FieldViolation, ...] = ()
    message: str = ""

    def number(self, name: str) -> int | None:
        """Return a fact as a number, None when it was not told or is none."""
        value = self.facts.get(name, "")
        return int(value) if value.isdecimal() else None


_BY_REASON: dict[str, Callable[[Refusal], errors.CompassError]] = {
    "SESSION_NOT_FOUND": lambda said: errors.SessionNotFoundError(said.session_id),
    "SESSION_STOPPED": lambda said: errors.SessionStoppedError(said.session_id),
    "CURSOR_ABOVE_HEAD": lambda said: errors.CursorAboveHeadError(said.session_id, head_seq=said.number("head_seq")),
    "PRODUCER_FENCED": lambda said: errors.ProducerFencedError(
        said.session_id,
        epoch=said.number("epoch"),
        current_epoch=said.number("current_epoch"),
    ),
    "PRODUCER_ATTACHED": lambda said: errors.ProducerAttachedError(said.session_id),
    "PRODUCER_REPLACED": lambda said: errors.ProducerReplacedError(said.session_id),
    "PRODUCER_NOT_ATTACHED": lambda said: errors.ProducerNotAttachedError(said.session_id),
    "PROMPT_NOT_FOUND": lambda said: errors.PromptNotFoundError(said.session_id, said.facts.get("prompt_id", "")),
    "PROMPT_CLOSED": lambda said: errors.PromptClosedError(
        said.session_id,
        said.facts.get("prompt_id", ""),
        state=said.facts.get("state", ""),
    ),
    "PROMPT_CONFLICT": lambda said: errors.PromptConflictError(said.session_id, said.facts.get("prompt_id", "")),
    "INBOX_FULL": lambda said: errors.InboxFullError(said.session_id),
    "SEQUENCE_JUMP": lambda said: errors.SequenceJumpError(said.session_id, expected_seq=said.number("expected_seq")),
    "INVALID_EVENT": lambda said: errors.InvalidEventError(seq=said.number("seq")),
    "INVALID_REQUEST": lambda said: errors.InvalidRequestError(said.violations, message=said.message),
    "INVALID_SESSION_ID": lambda said: errors.InvalidSessionIdError(said.violations, message=said.message),
    "INVALID_PAGE_TOKEN": lambda said: errors.InvalidPageTokenError(said.violations, message=said.message),
    "UNKNOWN_DIALECT": lambda said: errors.UnknownDialectError(said.violations, message=said.message),
    "LOG_FULL": lambda said: errors.LogFullError(retry_after_s=said.retry_after_s),
    "DRAINING": lambda said: errors.ServerUnavailableError("DRAINING", retry_after_s=said.retry_after_s),
    "INTERNAL": lambda said: errors.ServerFailedError(said.facts.get("correlation_id", "")),
}


@contextmanager
def translated(session_id: str = "") -> Iterator[None]:
    """Turn what a gRPC call raises into the SDK's own errors; let a cancel of the calling task pass.

    grpc.aio raises a plain CancelledError also when the call itself was cancelled: by its channel's close, by a
    watchdog, by a peer's reset. Nobody asked the task to end then, which `cancelling` tells.
    """
    try:
        yield
    except grpc.aio.AioRpcError as error:
        raise from_rpc(error, session_id) from error
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise errors.ServerUnavailableError(StatusCode.CANCELLED.name) from None


def from_rpc(error: grpc.aio.AioRpcError, session_id: str = "") -> errors.CompassError:
    """Rebuild the error that the server meant."""
    said = _refusal(error, session_id)
    if (rebuild := _BY_REASON.get(said.reason)) is not None:
        return rebuild(said)
    code = error.code()
    if code is StatusCode.UNAVAILABLE or (code in _TRANSPORT_CODES and not said.reason):
        return errors.ServerUnavailableError(said.reason or code.name, retry_after_s=said.retry_after_s)
    if code is StatusCode.UNIMPLEMENTED:
        return errors.UnsupportedError()
    if code is StatusCode.RESOURCE_EXHAUSTED and not said.reason:
        return errors.MessageTooLargeError()
    return errors.RefusedError(code.name, said.reason, said.message)


def _refusal(error: grpc.aio.AioRpcError, session_id: str) -> Refusal:
    said = Refusal(session_id, message=error.details() or "")
    trailers = cast("grpc.aio.Metadata", error.trailing_metadata())  # grpc-stubs gives it the type of the other API
    for value in trailers.get_all(_DETAILS_KEY):
        if isinstance(value, bytes):
            for detail in status_pb2.Status.FromString(value).details:
                _add_detail(said, detail)
    return said


def _add_detail(said: Refusal, detail: any_pb2.Any) -> None:
    info = error_details_pb2.ErrorInfo()
    retry = error_details_pb2.RetryInfo()
    bad = error_details_pb2.BadRequest()
    if detail.Unpack(info):
        if info.domain == DOMAIN:
            said.reason, said.facts = info.reason, dict(info.metadata)
    elif detail.Unpack(retry):
        said.retry_after_s = retry.retry_delay.ToTimedelta().total_seconds()
    elif detail.Unpack(bad):
        said.violations = tuple(errors.FieldViolation(item.field, item.description) for item in bad.field_violations)
