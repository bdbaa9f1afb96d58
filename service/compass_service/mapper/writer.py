"""Writes the frames of one inner event: stamps them, numbers their events, serializes each once."""

from compass.lanes import is_priority
from compass.v1 import compass_pb2 as pb
from compass_service.frames import Draft, varint
from compass_service.mapper.state import MapperState

# Tags of the fields that are encoded here: field number and wire type, as the generated classes write them.
_SESSION_ID = _EVENT_ID = _TEXT = b"\x0a"
_EVENT = _MESSAGE_ID = b"\x12"
_AT_UNIX_MS = b"\x10"
_AGENT_AT_UNIX_MS = b"\x38"
ASSISTANT_TEXT = b"\x1a"
THINKING = b"\x22"


class FrameWriter:
    """Collects the drafts that one call of the mapper causes. What outlives the call is in `state`."""

    def __init__(self, session_id: str, state: MapperState) -> None:
        self.session_id = session_id
        self.state = state
        self.now_ms = 0
        self.agent_at_ms = 0
        self.prompt_id = ""
        self.drafts: list[Draft] = []
        self._session_field = _delimited(_SESSION_ID, session_id.encode())
        self._at_field = _AT_UNIX_MS + varint(0)

    def begin(self, *, now_ms: int, prompt_id: str = "") -> None:
        """Start over for one inner event."""
        if now_ms != self.now_ms:
            self.now_ms = now_ms
            self._at_field = _AT_UNIX_MS + varint(now_ms)
        self.agent_at_ms = 0
        self.prompt_id = prompt_id
        self.drafts = []

    def event(self, event: pb.SessionEvent, *, original_bytes: int = 0) -> str:
        """Write a frame that carries an event. Returns the event's id."""
        event.event_id = self._next_event_id()
        event.at_unix_ms = self.now_ms
        frame = pb.AgentSessionFrame(
            event=event,
            original_bytes=original_bytes,
            agent_at_unix_ms=self.agent_at_ms,
        )
        self._draft(frame)
        return event.event_id

    def chunk(self, arm: bytes, text: bytes, message_id: str) -> None:
        """Write a frame of ASSISTANT_TEXT or THINKING, which are nearly all frames there are.

        Encoded by hand, in half the time that the generated classes take, byte for byte as they do it.
        """
        chunk = _delimited(_TEXT, text) + _delimited(_MESSAGE_ID, message_id.encode())
        event_id = _delimited(_EVENT_ID, self._next_event_id().encode())
        event = b"".join((event_id, self._at_field, arm, varint(len(chunk)), chunk))
        body = b"".join((self._session_field, _EVENT, varint(len(event)), event))
        if self.agent_at_ms:
            body += _AGENT_AT_UNIX_MS + varint(self.agent_at_ms)
        self.drafts.append(Draft(body, is_priority=False))

    def enter(self, lifecycle: pb.AgentSessionState.ValueType) -> None:
        """Write the transition into a state."""
        self.state.lifecycle = lifecycle
        self._draft(pb.AgentSessionFrame(state=lifecycle))

    def gap(self, gap: pb.SessionGap) -> None:
        """Write a gap."""
        self._draft(pb.AgentSessionFrame(gap=gap))

    def next_message_id(self) -> str:
        """Return an id that no other message of the session has."""
        self.state.num_messages += 1
        return f"m{self.state.num_messages}"

    def _next_event_id(self) -> str:
        self.state.num_events += 1
        return f"e{self.state.num_events}"

    def _draft(self, frame: pb.AgentSessionFrame) -> None:
        frame.session_id = self.session_id
        self.drafts.append(Draft(frame.SerializeToString(), is_priority(frame)))


def _delimited(tag: bytes, data: bytes) -> bytes:
    return b"".join((tag, varint(len(data)), data))
