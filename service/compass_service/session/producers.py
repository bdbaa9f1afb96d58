"""Who may write to a session: epochs, fencing, and which part of a batch is new. Pure."""

from dataclasses import dataclass

from compass_service.problems import ProducerFencedError, SequenceJumpError, TooManyProducersError
from compass_service.session.checkpoint import Checkpoint, ProducerCursor

MAX_PRODUCERS = 1_024
"""Cursors that a session keeps. They are its fences, so none is ever forgotten; one more producer is refused."""


@dataclass(frozen=True, slots=True)
class Hello:
    """What a producer says of itself when it attaches."""

    session_id: str
    producer_id: str
    epoch: int
    agent_name: str = ""
    agent_version: str = ""
    title: str = ""
    take_over: bool = False


def admit(cursors: dict[str, ProducerCursor], producer_id: str, epoch: int, *, session_id: str) -> ProducerCursor:
    """Return the cursor of a producer's epoch, begun anew if the epoch is new.

    Changes nothing: the caller stores the cursor once the whole request is accepted. Raises ProducerFencedError for an
    older epoch, TooManyProducersError for one producer too many.
    """
    known = cursors.get(producer_id)
    if known is None:
        if len(cursors) >= MAX_PRODUCERS:
            raise TooManyProducersError(session_id, limit=MAX_PRODUCERS)
        return ProducerCursor(epoch)
    if epoch < known.epoch:
        raise ProducerFencedError(producer_id, epoch=epoch, current_epoch=known.epoch)
    return known if epoch == known.epoch else ProducerCursor(epoch)


def num_known(cursor: ProducerCursor, producer_id: str, *, first_seq: int, num_events: int) -> int:
    """Count the leading events of a batch that are committed already and must be dropped unread.

    Raises SequenceJumpError when the batch would leave a hole.
    """
    expected_seq = cursor.seq + 1
    if first_seq > expected_seq or first_seq < 1:
        raise SequenceJumpError(producer_id, expected_seq=expected_seq, first_seq=first_seq)
    return min(expected_seq - first_seq, num_events)


def introduce(checkpoint: Checkpoint, hello: Hello) -> None:
    """Note who is attached now, and what it says of itself; what it leaves empty stays as it was."""
    checkpoint.producer_id = hello.producer_id
    checkpoint.is_attached = True
    checkpoint.window_began_ms = None
    checkpoint.title = hello.title or checkpoint.title
    checkpoint.agent_name = hello.agent_name or checkpoint.agent_name
    checkpoint.agent_version = hello.agent_version or checkpoint.agent_version
