"""A session's whole state as a small value: what the last record of its log carries, and enough to go on from."""

import msgspec

from compass_service.log.protocol import StoredSession
from compass_service.mapper import MapperState
from compass_service.session.control import ControlSequence
from compass_service.session.inbox import Inbox


class ProducerCursor(msgspec.Struct, omit_defaults=True, array_like=True):
    """How far one producer has come. Kept for ever, since it is what fences older epochs."""

    epoch: int
    seq: int = 0
    """Highest seq of the epoch whose event is in the log."""


class Checkpoint(msgspec.Struct, omit_defaults=True):
    """Everything a session must remember besides its frames."""

    mapper: MapperState = msgspec.field(default_factory=MapperState)
    producers: dict[str, ProducerCursor] = msgspec.field(default_factory=dict)
    producer_id: str | None = None
    """The producer that is attached, or was when the session became DISCONNECTED."""
    is_attached: bool = False
    window_began_ms: int | None = None
    """When the attached producer vanished. None while it is attached, and once its absence is judged."""
    title: str = ""
    agent_name: str = ""
    agent_version: str = ""
    inbox: Inbox = msgspec.field(default_factory=Inbox)
    controls: ControlSequence = msgspec.field(default_factory=ControlSequence)


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Checkpoint)


def encode(checkpoint: Checkpoint) -> bytes:
    """Encode for the log."""
    return _encoder.encode(checkpoint)


def decode(stored: bytes) -> Checkpoint:
    """Decode what the log kept."""
    return _decoder.decode(stored)


def of(stored: StoredSession | None) -> Checkpoint:
    """Return the checkpoint of a stored session, a fresh one for a session that does not exist yet."""
    return Checkpoint() if stored is None else decode(stored.checkpoint)
