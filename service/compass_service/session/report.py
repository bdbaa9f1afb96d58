"""Reports on sessions: what the log knows of one, as the session list shows it. Pure."""

from compass.v1 import compass_pb2 as pb
from compass_service.log.protocol import StoredSession
from compass_service.mapper import activity_message
from compass_service.session import checkpoint as checkpoints


def session_info(stored: StoredSession, *, lag_dropped: int) -> pb.SessionInfo:
    """Build the report of one session as of its newest record."""
    held = checkpoints.of(stored)
    mapped = held.mapper
    info = pb.SessionInfo(
        session_id=stored.session_id,
        state=pb.AgentSessionState.ValueType(mapped.lifecycle),
        activity=activity_message(mapped) if mapped.activity.phase else None,
        head_seq=stored.head_seq,
        first_kept_seq=stored.first_kept_seq,
        created_at_unix_ms=stored.created_unix_ms,
        updated_at_unix_ms=stored.updated_unix_ms,
        title=held.title,
        agent_name=held.agent_name,
        agent_version=held.agent_version,
        producer_attached=held.is_attached,
        counts=pb.SessionCounts(
            frames=stored.head_seq,
            errors=mapped.counts.errors,
            aborts=mapped.counts.aborts,
            dropped_subscriber_lag=lag_dropped,
            dropped_producer_overflow=mapped.counts.dropped_producer_overflow,
            dropped_retention=stored.num_trimmed,
            unmapped=mapped.counts.unmapped,
        ),
    )
    for name in pb.SessionUsage.DESCRIPTOR.fields_by_name:
        setattr(info.usage, name, getattr(mapped.usage, name))
    return info
