"""How each refusal looks on the wire: a canonical code, a stable reason, and typed details. Alone knows gRPC codes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, NoReturn, TypeAlias

from google.protobuf import any_pb2, duration_pb2
from google.protobuf.message import Message
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from compass.failures import redact
from compass_service import problems
from compass_service.log.protocol import HeadMovedError, LogClosedError, LogError, LogFullError

if TYPE_CHECKING:
    import grpc

DOMAIN = "compass"
_LOG_FULL_RETRY_S = 1
_INTERNAL_MESSAGE = "internal error; quote the correlation id to the operator"

ServicerContext: TypeAlias = "grpc.aio.ServicerContext[object, object]"


class _Row(NamedTuple):
    code: int
    reason: str


_ROWS: Mapping[type[Exception], _Row] = {
    problems.SessionNotFoundError: _Row(code_pb2.NOT_FOUND, "SESSION_NOT_FOUND"),
    problems.SessionStoppedError: _Row(code_pb2.FAILED_PRECONDITION, "SESSION_STOPPED"),
    problems.ProducerFencedError: _Row(code_pb2.FAILED_PRECONDITION, "PRODUCER_FENCED"),
    problems.ProducerAttachedError: _Row(code_pb2.ALREADY_EXISTS, "PRODUCER_ATTACHED"),
    problems.ProducerReplacedError: _Row(code_pb2.ABORTED, "PRODUCER_REPLACED"),
    problems.SequenceJumpError: _Row(code_pb2.ABORTED, "SEQUENCE_JUMP"),
    problems.InvalidEventError: _Row(code_pb2.INVALID_ARGUMENT, "INVALID_EVENT"),
    problems.CursorAboveHeadError: _Row(code_pb2.OUT_OF_RANGE, "CURSOR_ABOVE_HEAD"),
    problems.TooManyProducersError: _Row(code_pb2.RESOURCE_EXHAUSTED, "TOO_MANY_PRODUCERS"),
    problems.ProducerNotAttachedError: _Row(code_pb2.FAILED_PRECONDITION, "PRODUCER_NOT_ATTACHED"),
    problems.PromptNotFoundError: _Row(code_pb2.NOT_FOUND, "PROMPT_NOT_FOUND"),
    problems.PromptClosedError: _Row(code_pb2.FAILED_PRECONDITION, "PROMPT_CLOSED"),
    problems.PromptConflictError: _Row(code_pb2.ALREADY_EXISTS, "PROMPT_CONFLICT"),
    problems.InboxFullError: _Row(code_pb2.RESOURCE_EXHAUSTED, "INBOX_FULL"),
    problems.DrainingError: _Row(code_pb2.UNAVAILABLE, "DRAINING"),
    HeadMovedError: _Row(code_pb2.UNAVAILABLE, "SESSION_RELOADED"),
    LogFullError: _Row(code_pb2.RESOURCE_EXHAUSTED, "LOG_FULL"),
    LogClosedError: _Row(code_pb2.UNAVAILABLE, "LOG_CLOSED"),
}
_PUBLIC_FACTS = (
    "session_id",
    "producer_id",
    "prompt_id",
    "state",
    "epoch",
    "current_epoch",
    "expected_seq",
    "first_seq",
    "seq",
    "cursor",
    "first_kept_seq",
    "head_seq",
    "limit",
    "max_bytes",
    "field",
)


def is_refusal(failure: BaseException) -> bool:
    """Whether a failure is one that the wire has a word for."""
    return isinstance(failure, problems.InvalidRequestError) or type(failure) in _ROWS


def of(failure: Exception) -> status_pb2.Status:
    """Build the status of a refusal."""
    if isinstance(failure, problems.InvalidRequestError):
        row = _Row(code_pb2.INVALID_ARGUMENT, failure.reason)
    else:
        row = _ROWS[type(failure)]
    message = "the session log takes no more records" if isinstance(failure, LogError) else str(failure)
    return _status(row, message, [_info(row.reason, _facts(failure)), *_details(failure)])


def internal(correlation_id: str) -> status_pb2.Status:
    """Build the status of a failure that nobody foresaw: a fixed sentence, and where to look it up."""
    row = _Row(code_pb2.INTERNAL, "INTERNAL")
    return _status(row, _INTERNAL_MESSAGE, [_info(row.reason, {"correlation_id": correlation_id})])


async def abort(context: ServicerContext, status: status_pb2.Status) -> NoReturn:
    """End the call with a status."""
    await context.abort_with_status(rpc_status.to_status(status))  # type: ignore[attr-defined]
    raise AssertionError  # abort_with_status always raises


def _status(row: _Row, message: str, details: list[Message]) -> status_pb2.Status:
    status = status_pb2.Status(code=row.code, message=redact(message))
    for detail in details:
        packed = any_pb2.Any()
        packed.Pack(detail)
        status.details.append(packed)
    return status


def _info(reason: str, facts: Mapping[str, str]) -> error_details_pb2.ErrorInfo:
    return error_details_pb2.ErrorInfo(reason=reason, domain=DOMAIN, metadata=facts)


def _facts(failure: Exception) -> dict[str, str]:
    facts = {name: getattr(failure, name, None) for name in _PUBLIC_FACTS}
    return {name: redact(str(value)[:4_096])[:256] for name, value in facts.items() if value is not None}


def _details(failure: Exception) -> list[Message]:
    match failure:
        case problems.InvalidRequestError():
            violation = error_details_pb2.BadRequest.FieldViolation(
                field=failure.field,
                description=redact(failure.violation),
            )
            return [error_details_pb2.BadRequest(field_violations=[violation])]
        case problems.SessionNotFoundError():
            name = redact(failure.session_id)
            return [error_details_pb2.ResourceInfo(resource_type="session", resource_name=name)]
        case problems.DrainingError() | LogFullError():
            delay = duration_pb2.Duration(seconds=_LOG_FULL_RETRY_S)
            return [error_details_pb2.RetryInfo(retry_delay=delay)]
        case problems.TooManyProducersError() | problems.InboxFullError():
            quota = error_details_pb2.QuotaFailure.Violation(subject="session", description=str(failure))
            return [error_details_pb2.QuotaFailure(violations=[quota])]
        case _:
            return []
