"""How the last turn of a session ended, read from its frames in order. Pure."""

from enum import Enum

from compass.fold import Item
from compass.gap import Gap
from compass.v1 import compass_pb2 as pb


class Outcome(Enum):
    """What became of a turn."""

    DONE = "done"
    """It ended normally."""
    FAILED = "failed"
    """It failed, and no retry took that back."""
    ABORTED = "aborted"
    """It was aborted, or the session was closed in the middle of it."""
    LOST = "lost"
    """The agent is gone."""


_GOES_ON = frozenset({"assistant_text", "thinking", "user_message", "tool_call", "tool_call_update"})


class OutcomeReader:
    """Follows the frames of a session.

    `outcome` is None while a turn is going on, or before the first. An agent that failed may try again at once, so what
    is read here is final only if it lasts, or once the session is stopped.
    """

    def __init__(self) -> None:
        self.outcome: Outcome | None = None
        self.error: pb.SessionError | None = None
        """The failure or abort that ended the turn. None when none did."""
        self.state: pb.AgentSessionState.ValueType = pb.AGENT_SESSION_STATE_UNSPECIFIED
        self._is_cut = False
        self._is_open = False
        """Whether a turn goes on without the agent's last word yet: closed now, it is closed in the middle."""

    @property
    def is_stopped(self) -> bool:
        """Whether the session is stopped: nothing can change any more."""
        return self.state == pb.AGENT_SESSION_STATE_STOPPED

    def take(self, item: Item) -> None:
        """Take the next item."""
        if isinstance(item, Gap):
            return  # what decides an outcome is never dropped
        match item.event.WhichOneof("event"):
            case "session_error":
                self.error = pb.SessionError()
                self.error.CopyFrom(item.event.session_error)
            case "message_end":
                end = item.event.message_end
                self._is_cut = end.outcome == pb.SESSION_MESSAGE_OUTCOME_INCOMPLETE
                self._is_open = self._is_cut or end.stop_reason == pb.SESSION_STOP_REASON_TOOL_USE
                if not self._is_cut:
                    self.error = None
            case kind if kind in _GOES_ON:
                self._is_cut, self._is_open, self.error = False, True, None
        if item.state:
            self._enter(item.state)

    def _enter(self, state: pb.AgentSessionState.ValueType) -> None:
        was, self.state = self.state, state
        match state:
            case pb.AGENT_SESSION_STATE_WORKING:
                self.outcome, self.error, self._is_cut, self._is_open = None, None, False, True
            case pb.AGENT_SESSION_STATE_READY:
                self.outcome = self._ended()
            case pb.AGENT_SESSION_STATE_ERRORED:
                self.outcome = Outcome.LOST if was == pb.AGENT_SESSION_STATE_DISCONNECTED else Outcome.FAILED
            case pb.AGENT_SESSION_STATE_DISCONNECTED if was != pb.AGENT_SESSION_STATE_WORKING:
                self.outcome = self.outcome or Outcome.LOST
            case pb.AGENT_SESSION_STATE_STOPPED:
                self._is_cut |= self._is_open
                self.outcome = self.outcome or self._ended()

    def _ended(self) -> Outcome:
        if self.error is not None and self.error.kind == pb.SESSION_ERROR_KIND_ERROR:
            return Outcome.FAILED
        return Outcome.ABORTED if self.error is not None or self._is_cut else Outcome.DONE
