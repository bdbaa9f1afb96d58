"""Writes the frames of one inner event: stamps them, numbers their events, serializes each once."""

from compass.lanes import is_priority
from compass.v1 import compass_pb2 as pb
from compass_service.frames import Draft
from compass_service.mapper.state import MapperState


class FrameWriter:
    """Collects the drafts that one call of the mapper causes. What outlives the call is in `state`."""

    def __init__(self, session_id: str, state: MapperState) -> None:
        self.session_id = session_id
        self.state = state
        self.now_ms = 0
        self.agent_at_ms = 0
        self.prompt_id = ""
        self.drafts: list[Draft] = []

    def begin(self, *, now_ms: int, prompt_id: str = "") -> None:
        """Start over for one inner event."""
        self.now_ms = now_ms
        self.agent_at_ms = 0
        self.prompt_id = prompt_id
        self.drafts = []

    def event(self, event: pb.SessionEvent, *, original_bytes: int = 0) -> str:
        """Write a frame that carries an event. Returns the event's id."""
        event.event_id = self.next_event_id()
        event.at_unix_ms = self.now_ms
        frame = pb.AgentSessionFrame(
            event=event,
            original_bytes=original_bytes,
            agent_at_unix_ms=self.agent_at_ms,
        )
        self._draft(frame)
        return event.event_id

    def enter(self, lifecycle: pb.AgentSessionState.ValueType) -> None:
        """Write the transition into a state."""
        self.state.lifecycle = lifecycle
        self._draft(pb.AgentSessionFrame(state=lifecycle))

    def gap(self, gap: pb.SessionGap) -> None:
        """Write a gap."""
        self._draft(pb.AgentSessionFrame(gap=gap))

    def next_event_id(self) -> str:
        """Return an id that no other event of the session has."""
        self.state.num_events += 1
        return f"e{self.state.num_events}"

    def next_message_id(self) -> str:
        """Return an id that no other message of the session has."""
        self.state.num_messages += 1
        return f"m{self.state.num_messages}"

    def _draft(self, frame: pb.AgentSessionFrame) -> None:
        frame.session_id = self.session_id
        self.drafts.append(Draft(frame.SerializeToString(), is_priority(frame)))
