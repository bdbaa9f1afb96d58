"""Reading requests: grammars and bounds of what clients send. Refuses, never repairs; takes secrets out of names."""

import base64
import re

from google.protobuf import json_format, struct_pb2

from compass.failures import redact
from compass.v1 import agent_gateway_pb2 as gateway
from compass.v1 import compass_pb2 as pb
from compass_service.hub.subscription import Wants
from compass_service.problems import (
    InvalidEventError,
    InvalidPageTokenError,
    InvalidRequestError,
    InvalidSessionIdError,
    UnknownDialectError,
)
from compass_service.session.events import Event
from compass_service.session.inbox import MAX_PROMPT_BYTES, Submission
from compass_service.session.producers import Hello

MAX_PAGE_SIZE = 1_000
DEFAULT_PAGE_SIZE = 100
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_ID_GRAMMAR = "[A-Za-z0-9][A-Za-z0-9._:-]{0,127}"
_DIALECTS = frozenset({"", "pi"})
_MAX_AGENT_BYTES = 256
_MAX_TITLE_BYTES = 1_024
_MAX_REQUEST_ID_BYTES = 128
_MAX_INT64 = 2**63 - 1
_MAX_SHOWN_CHARS = 64
_MAX_READ_CHARS = 4_096


def session_id(value: str) -> str:
    """Check a session id."""
    if not _ID.fullmatch(value):
        raise InvalidSessionIdError("session_id", _grammar_problem(value))
    return value


def page_size(value: int) -> int:
    """Check a page size; 0 is the default."""
    if not 0 <= value <= MAX_PAGE_SIZE:
        raise InvalidRequestError("page_size", f"must be 0 to {MAX_PAGE_SIZE}, got {value}")
    return value or DEFAULT_PAGE_SIZE


def page_token(*parts: int | str) -> str:
    """Make a page token."""
    return base64.urlsafe_b64encode("/".join(map(str, parts)).encode()).decode()


def page_parts(token: str, num_parts: int) -> list[str]:
    """Read a page token back; its first part is a number that the log can hold."""
    try:
        parts = base64.urlsafe_b64decode(token.encode()).decode().split("/", num_parts - 1)
        is_ours = len(parts) == num_parts and 0 <= int(parts[0]) <= _MAX_INT64
    except ValueError:
        is_ours = False
    if not is_ours:
        raise InvalidPageTokenError("page_token", "is not a token of this service")
    return parts


def dialect(value: str) -> None:
    """Check that the dialect is one that is read here."""
    if value not in _DIALECTS:
        raise UnknownDialectError("dialect", f"must be empty or 'pi', got {_shown(value)!r}")


def subscribe_wants(request: pb.SubscribeAgentSessionRequest) -> Wants:
    """Read a SubscribeAgentSessionRequest."""
    return Wants(
        session_id(request.session_id),
        since_seq=request.since_seq,
        from_now=request.start == pb.SESSION_START_LIVE,
    )


def tail_wants(request: pb.TailSessionRequest) -> Wants:
    """Read a TailSessionRequest."""
    from_now = request.start == pb.SESSION_START_LIVE
    if not from_now and request.until_seq and request.until_seq < request.since_seq:
        problem = f"must be 0 or at least since_seq {request.since_seq}, got {request.until_seq}"
        raise InvalidRequestError("until_seq", problem)
    return Wants(
        session_id(request.session_id),
        since_seq=request.since_seq,
        until_seq=request.until_seq or None,
        from_now=from_now,
        is_lossless=request.delivery == pb.TAIL_DELIVERY_COMPLETE,
        follow=request.follow,
    )


def hello(message: gateway.ProducerHello) -> Hello:
    """Read a ProducerHello."""
    dialect(message.dialect)
    if not _ID.fullmatch(message.producer_id):
        raise InvalidRequestError("producer_id", _grammar_problem(message.producer_id))
    if message.epoch < 1:
        raise InvalidRequestError("epoch", "must be at least 1")
    return Hello(
        session_id(message.session_id),
        message.producer_id,
        message.epoch,
        agent_name=redact(_bounded("agent_name", message.agent_name, _MAX_AGENT_BYTES)),
        agent_version=redact(_bounded("agent_version", message.agent_version, _MAX_AGENT_BYTES)),
        title=redact(_bounded("title", message.title, _MAX_TITLE_BYTES)),
        take_over=message.take_over,
    )


def event(message: gateway.InnerEvent, seq: int | None) -> Event:
    """Read an InnerEvent."""
    match message.WhichOneof("body"):
        case "json":
            return Event(message.json, message.prompt_id)
        case "object":
            return Event(_struct_json(message.object, seq), message.prompt_id)
        case _:
            raise InvalidEventError(seq, "has neither json nor object")


def process(request: gateway.ControlRequest) -> tuple[str, int]:
    """Read the producer process that opens a control stream."""
    if not _ID.fullmatch(request.producer_id):
        raise InvalidRequestError("producer_id", _grammar_problem(request.producer_id))
    if request.epoch < 1:
        raise InvalidRequestError("epoch", "must be at least 1")
    return request.producer_id, request.epoch


def submission(request: pb.SubmitPromptRequest) -> Submission:
    """Read a SubmitPromptRequest."""
    if not request.text.strip():
        raise InvalidRequestError("text", "must hold more than white space")
    return Submission(
        _bounded("text", request.text, MAX_PROMPT_BYTES),
        request_id=_bounded("client_request_id", request.client_request_id, _MAX_REQUEST_ID_BYTES),
        author=_bounded("author", request.author, _MAX_AGENT_BYTES),
        steer=request.steer,
    )


def producer(request: gateway.PushEventRequest) -> tuple[str, int, int] | None:
    """Read the producer of a PushEventRequest, None if it names none."""
    if not request.producer_id:
        return None
    if not _ID.fullmatch(request.producer_id):
        raise InvalidRequestError("producer_id", _grammar_problem(request.producer_id))
    for name in ("epoch", "seq"):
        if getattr(request, name) < 1:
            raise InvalidRequestError(name, "must be at least 1 with a producer_id")
    return request.producer_id, request.epoch, request.seq


def _struct_json(value: struct_pb2.Struct, seq: int | None) -> str:
    try:
        return json_format.MessageToJson(value, indent=None)
    except (ValueError, json_format.Error):
        raise InvalidEventError(seq, "holds a number that JSON cannot carry") from None


def _bounded(field: str, value: str, max_bytes: int) -> str:
    if len(value.encode()) > max_bytes:
        raise InvalidRequestError(field, f"must be at most {max_bytes} bytes, got {len(value.encode())}")
    return value


def _grammar_problem(value: str) -> str:
    return f"must match {_ID_GRAMMAR}, got {_shown(value)!r} ({len(value)} characters)"


def _shown(value: str) -> str:
    """Return the beginning of what is refused. Redacted before it is cut: half a secret is not recognised."""
    redacted = redact(value[:_MAX_READ_CHARS])
    return redacted[:_MAX_SHOWN_CHARS] + ("…" if len(redacted) > _MAX_SHOWN_CHARS else "")
