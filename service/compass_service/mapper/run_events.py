"""What a workflow engine reports of a run, through the closed schema of its kind, and never twice."""

from compass.failures import digest
from compass.run_events import project
from compass.v1 import compass_pb2 as pb
from compass_service.mapper.inner import RunEvent
from compass_service.mapper.state import MAX_RUN_EVENT_DIGESTS
from compass_service.mapper.unmapped import count_unmapped
from compass_service.mapper.writer import FrameWriter

DIGEST_BYTES = 8
"""As much of a digest is kept: enough to tell a thousand apart, and little to save with every commit."""


def run_event(writer: FrameWriter, event: RunEvent) -> None:
    """Write a run event, unless it is among the session's last. One of an unknown kind is empty, and counted."""
    projected = project(event.kind, event.payload)
    if projected.WhichOneof("detail") is None:
        # All of these look alike, so whether one was reported before cannot be told.
        count_unmapped(writer, "run_event")
    elif not _is_new(writer.state.run_event_digests, digest(projected)[:DIGEST_BYTES]):
        return
    writer.event(pb.SessionEvent(run_event=projected))


def _is_new(last: list[bytes], fingerprint: bytes) -> bool:
    if fingerprint in last:
        return False
    last.append(fingerprint)
    del last[:-MAX_RUN_EVENT_DIGESTS]
    return True
