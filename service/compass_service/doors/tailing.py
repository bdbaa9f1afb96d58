"""Writing a subscription to a call: whole parts to TailSession, single frames to SubscribeAgentSession."""

from compass.v1 import compass_pb2 as pb
from compass_service import frames
from compass_service.doors.status import ServicerContext
from compass_service.hub.subscription import Part, Subscription


def encode(part: Part) -> bytes:
    """Encode a part as a TailSessionResponse. Frames are joined as stored: protobuf merges what is concatenated."""
    rest = pb.TailSessionResponse(head_seq=part.head_seq, resume_seq=part.resume_seq)
    if part.end:
        rest.end.reason = part.end
    return b"".join((*part.frames, rest.SerializeToString()))


async def write_parts(subscription: Subscription, context: ServicerContext) -> None:
    """Write until the sentinel."""
    while (part := await subscription.next()) is not None:
        await context.write(encode(part))


async def write_frames(subscription: Subscription, context: ServicerContext) -> None:
    """Write one frame a message, and no heartbeats, until the session is STOPPED."""
    while (part := await subscription.next()) is not None:
        for frame in part.frames:
            await context.write(frames.body_of(frame))
