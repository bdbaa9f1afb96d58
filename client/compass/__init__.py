"""Session traces of coding agents: push what an agent does, tail it anywhere, and never miss how it ended."""

from compass import failures, stream
from compass.client import Client, connect
from compass.errors import (
    ClientClosedError,
    CompassError,
    CursorAboveHeadError,
    FieldViolation,
    InvalidEventError,
    InvalidPageTokenError,
    InvalidRequestError,
    InvalidSessionIdError,
    LogFullError,
    MessageTooLargeError,
    ProducerAttachedError,
    ProducerFencedError,
    ProducerReplacedError,
    PublisherClosedError,
    RefusedError,
    SequenceJumpError,
    ServerFailedError,
    ServerUnavailableError,
    SessionNotFoundError,
    SessionStoppedError,
    TailInterrupted,
    UnknownDialectError,
    UnsupportedError,
)
from compass.gap import Gap
from compass.items import Frame, TailItem
from compass.publish import Publisher, PublisherStats
from compass.slimming import Event
from compass.tail import Tail

__all__ = [
    "Client",
    "ClientClosedError",
    "CompassError",
    "CursorAboveHeadError",
    "Event",
    "FieldViolation",
    "Frame",
    "Gap",
    "InvalidEventError",
    "InvalidPageTokenError",
    "InvalidRequestError",
    "InvalidSessionIdError",
    "LogFullError",
    "MessageTooLargeError",
    "ProducerAttachedError",
    "ProducerFencedError",
    "ProducerReplacedError",
    "Publisher",
    "PublisherClosedError",
    "PublisherStats",
    "RefusedError",
    "SequenceJumpError",
    "ServerFailedError",
    "ServerUnavailableError",
    "SessionNotFoundError",
    "SessionStoppedError",
    "Tail",
    "TailInterrupted",
    "TailItem",
    "UnknownDialectError",
    "UnsupportedError",
    "connect",
    "failures",
    "stream",
]
