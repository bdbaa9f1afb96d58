"""Everything the SDK raises: one root, and a class for each thing that a caller can do something about.

An error carries facts as attributes and makes its own sentence. `status` rebuilds these from what a server sent; nobody
reads their text.
"""

from typing import NamedTuple


class CompassError(Exception):
    """Root of what the SDK raises."""

    reason: str = ""
    """The stable word for it, as a server sends it in ErrorInfo. Empty when it is not a server's word."""

    retry_after_s: float | None = None
    """How long the server asks to wait before a retry. None when it did not say."""

    num_unacknowledged: int | None = None
    """Events that were pushed and not acknowledged when a publisher ended with this. None outside a publisher."""


class ClientClosedError(CompassError):
    """The client was closed. The caller's own doing; a retry needs a new client."""

    def __init__(self) -> None:
        super().__init__("the client is closed")


class ServerUnavailableError(CompassError):
    """The server cannot be reached, is draining, or the transport broke. A retry helps."""

    reason = "UNAVAILABLE"

    def __init__(self, detail: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(f"the server is not available ({detail})")
        self.detail = detail
        """DRAINING, or the gRPC code: UNAVAILABLE, CANCELLED, DEADLINE_EXCEEDED, INTERNAL, UNKNOWN."""
        self.retry_after_s = retry_after_s


class LogFullError(CompassError):
    """The server's disk is full. The operator's problem; a retry helps once there is room."""

    reason = "LOG_FULL"

    def __init__(self, *, retry_after_s: float | None = None) -> None:
        super().__init__("the server has no room for more frames")
        self.retry_after_s = retry_after_s


class ServerFailedError(CompassError):
    """The server failed inside. The operator finds the cause by the correlation id; a retry may help."""

    reason = "INTERNAL"

    def __init__(self, correlation_id: str) -> None:
        super().__init__(f"the server failed, correlation id {correlation_id or 'unknown'}")
        self.correlation_id = correlation_id


class RefusedError(CompassError):
    """The server refused for a reason that this SDK has no class for. A retry does not help."""

    def __init__(self, code: str, server_reason: str, message: str) -> None:
        super().__init__(f"the server refused: {code} {server_reason} {message}".rstrip())
        self.code = code
        self.server_reason = server_reason
        self.message = message


class UnsupportedError(CompassError):
    """This server does not have the rpc. A retry does not help."""

    reason = "UNIMPLEMENTED"

    def __init__(self) -> None:
        super().__init__("the server does not support this call")


class FieldViolation(NamedTuple):
    """One field of a request that the server did not accept."""

    field: str
    description: str


class InvalidRequestError(CompassError):
    """A request was malformed. The caller's problem; a retry does not help."""

    reason = "INVALID_REQUEST"

    def __init__(self, violations: tuple[FieldViolation, ...] = (), *, message: str = "") -> None:
        listed = "; ".join(f"{violation.field}: {violation.description}" for violation in violations)
        super().__init__(f"invalid request: {listed or message}")
        self.violations = violations


class InvalidSessionIdError(InvalidRequestError):
    """A session id is outside its grammar, `[A-Za-z0-9][A-Za-z0-9._:-]{0,127}`. A retry does not help."""

    reason = "INVALID_SESSION_ID"


class InvalidPageTokenError(InvalidRequestError):
    """A page token was not made by this server. List again from the first page."""

    reason = "INVALID_PAGE_TOKEN"


class UnknownDialectError(InvalidRequestError):
    """The server cannot read inner events of this dialect. A retry does not help."""

    reason = "UNKNOWN_DIALECT"


class MessageTooLargeError(CompassError):
    """A message was larger than what the other side receives. A retry does not help."""

    reason = "RESOURCE_EXHAUSTED"

    def __init__(self) -> None:
        super().__init__("a message was larger than what the other side receives")


class SessionNotFoundError(CompassError):
    """The session does not exist, or may not be seen. A retry helps only if it is about to come into being."""

    reason = "SESSION_NOT_FOUND"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id} was not found")
        self.session_id = session_id


class SessionStoppedError(CompassError):
    """The session was closed, which is final. A retry does not help."""

    reason = "SESSION_STOPPED"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id} is stopped")
        self.session_id = session_id


class CursorAboveHeadError(CompassError):
    """A tail was to begin after a seq that the session has not reached. A cursor of another log; begin again."""

    reason = "CURSOR_ABOVE_HEAD"

    def __init__(self, session_id: str, *, head_seq: int | None) -> None:
        super().__init__(f"session {session_id} has not reached that seq, its head is {head_seq}")
        self.session_id = session_id
        self.head_seq = head_seq


class ProducerFencedError(CompassError):
    """A producer with a higher epoch took over for ever. This producer must stop; a retry does not help."""

    reason = "PRODUCER_FENCED"

    def __init__(self, session_id: str, *, epoch: int | None, current_epoch: int | None) -> None:
        super().__init__(f"a producer with epoch {current_epoch} took session {session_id} over from epoch {epoch}")
        self.session_id = session_id
        self.epoch = epoch
        """The epoch that was refused, None when the server did not say."""
        self.current_epoch = current_epoch
        """The epoch that took over, None when the server did not say."""


class ProducerAttachedError(CompassError):
    """Another producer is attached. A retry helps once it is gone; `take_over=True` detaches it."""

    reason = "PRODUCER_ATTACHED"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"another producer is attached to session {session_id}")
        self.session_id = session_id


class ProducerReplacedError(CompassError):
    """A newer stream of the same producer and epoch took over, or another producer did. A retry would fight it."""

    reason = "PRODUCER_REPLACED"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"a newer stream pushes into session {session_id}")
        self.session_id = session_id


class SequenceJumpError(CompassError):
    """The server wants a producer seq that is not held any more: its log was replaced. A retry does not help."""

    reason = "SEQUENCE_JUMP"

    def __init__(self, session_id: str, *, expected_seq: int | None) -> None:
        super().__init__(f"session {session_id} expects producer seq {expected_seq}, which is gone")
        self.session_id = session_id
        self.expected_seq = expected_seq


class ProducerNotAttachedError(CompassError):
    """Control was opened without a push stream of the same producer and epoch. Say hello first, then again."""

    reason = "PRODUCER_NOT_ATTACHED"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"no push stream of this producer is attached to session {session_id}")
        self.session_id = session_id


class PromptNotFoundError(CompassError):
    """The session has no such prompt, or it was closed long ago. The caller's problem; a retry does not help."""

    reason = "PROMPT_NOT_FOUND"

    def __init__(self, session_id: str, prompt_id: str) -> None:
        super().__init__(f"session {session_id} has no prompt {prompt_id}")
        self.session_id = session_id
        self.prompt_id = prompt_id


class PromptClosedError(CompassError):
    """A prompt is past cancelling: the agent was handed it, or has shown it. A retry helps only if it comes back."""

    reason = "PROMPT_CLOSED"

    def __init__(self, session_id: str, prompt_id: str, *, state: str) -> None:
        words = state.removeprefix("SESSION_PROMPT_STATE_").lower() or "not waiting"
        super().__init__(f"prompt {prompt_id} of session {session_id} is {words}")
        self.session_id = session_id
        self.prompt_id = prompt_id
        self.state = state
        """Name of its SessionPromptState, empty when the server did not say."""


class PromptConflictError(CompassError):
    """The same client_request_id came before with another text. The caller's problem: choose another id."""

    reason = "PROMPT_CONFLICT"

    def __init__(self, session_id: str, prompt_id: str) -> None:
        super().__init__(f"session {session_id} has another text as prompt {prompt_id} under that client_request_id")
        self.session_id = session_id
        self.prompt_id = prompt_id
        """The prompt that the id belongs to."""


class InboxFullError(CompassError):
    """The session holds as many open prompts as it can. A retry helps once one of them is recorded or cancelled."""

    reason = "INBOX_FULL"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"the inbox of session {session_id} is full")
        self.session_id = session_id


class InvalidEventError(CompassError):
    """An event is not one JSON object. The producer's problem; a retry does not help."""

    reason = "INVALID_EVENT"

    def __init__(self, *, seq: int | None = None) -> None:
        where = "an event" if seq is None else f"the event with producer seq {seq}"
        super().__init__(f"{where} is not one JSON object")
        self.seq = seq
        """Its producer seq, None when it was refused before it got one."""


class PublisherClosedError(CompassError):
    """The publisher takes nothing more: it was drained or closed. The caller's own doing."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"the publisher of session {session_id} is closed")
        self.session_id = session_id


class TailInterrupted(CompassError):  # noqa: N818 - a fixed public name; it says what happened to the tail
    """A tail ended without its sentinel, and reconnecting did not help. What came is right, the rest is missing.

    Tail again with `since=error.resume_seq` to go on.
    """

    def __init__(self, session_id: str, *, resume_seq: int, reason: str) -> None:
        super().__init__(f"the tail of session {session_id} was interrupted after seq {resume_seq} ({reason})")
        self.session_id = session_id
        self.resume_seq = resume_seq
        """Last seq that was handed out or covered by a gap."""
        self.reason = reason
        """NO_SENTINEL, CLIENT_CLOSED, or why the server could not be reached."""
