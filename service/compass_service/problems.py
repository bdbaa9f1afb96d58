"""What the service refuses, as facts. `doors.status` alone knows which gRPC code each has."""

from compass.failures import PublicProblemError


class ProblemError(PublicProblemError):
    """Root of what the service refuses. Its text is reviewed public text."""


class SessionNotFoundError(ProblemError):
    """The session does not exist, or the caller may not see it. The caller's; a retry helps once it exists."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id} not found")
        self.session_id = session_id


class SessionStoppedError(ProblemError):
    """The session was closed. The caller's; final."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id} is stopped")
        self.session_id = session_id


class ProducerFencedError(ProblemError):
    """A newer epoch of this producer exists. The caller's; final."""

    def __init__(self, producer_id: str, *, epoch: int, current_epoch: int) -> None:
        super().__init__(f"producer {producer_id} epoch {epoch} is fenced by epoch {current_epoch}")
        self.producer_id = producer_id
        self.epoch = epoch
        self.current_epoch = current_epoch


class ProducerAttachedError(ProblemError):
    """Another producer is attached. The caller's; helps: take over, or wait until it is gone."""

    def __init__(self, session_id: str, *, producer_id: str) -> None:
        super().__init__(f"session {session_id} has producer {producer_id} attached")
        self.session_id = session_id
        self.producer_id = producer_id


class ProducerReplacedError(ProblemError):
    """A newer stream took this one's place. Nobody's; the newer stream goes on."""

    def __init__(self, producer_id: str) -> None:
        super().__init__(f"producer {producer_id} was replaced by a newer stream")
        self.producer_id = producer_id


class SequenceJumpError(ProblemError):
    """A batch would leave a hole in the producer's sequence. The caller's; send again from expected_seq."""

    def __init__(self, producer_id: str, *, expected_seq: int, first_seq: int) -> None:
        super().__init__(f"producer {producer_id} must go on with seq {expected_seq}, not {first_seq}")
        self.producer_id = producer_id
        self.expected_seq = expected_seq
        self.first_seq = first_seq


class InvalidEventError(ProblemError):
    """An event is no JSON object. The caller's; nothing of its batch is stored."""

    def __init__(self, seq: int | None, reason: str = "is not a JSON object") -> None:
        super().__init__(f"event{'' if seq is None else f' with seq {seq}'} {reason}")
        self.seq = seq


class InvalidRequestError(ProblemError):
    """A field of the request is outside its bounds. The caller's; final for this request."""

    reason = "INVALID_REQUEST"

    def __init__(self, field: str, violation: str) -> None:
        super().__init__(f"{field} {violation}")
        self.field = field
        self.violation = violation


class InvalidSessionIdError(InvalidRequestError):
    """The session id is outside its grammar."""

    reason = "INVALID_SESSION_ID"


class InvalidPageTokenError(InvalidRequestError):
    """The page token was not made by this service."""

    reason = "INVALID_PAGE_TOKEN"


class UnknownDialectError(InvalidRequestError):
    """No mapper reads this dialect."""

    reason = "UNKNOWN_DIALECT"


class CursorAboveHeadError(ProblemError):
    """A cursor points past the newest frame. The caller's; resume from head_seq or below."""

    def __init__(self, session_id: str, *, cursor: int, first_kept_seq: int, head_seq: int) -> None:
        super().__init__(
            f"since_seq {cursor} is above the head of session {session_id}, which holds {first_kept_seq} to {head_seq}",
        )
        self.session_id = session_id
        self.cursor = cursor
        self.first_kept_seq = first_kept_seq
        self.head_seq = head_seq


class ProducerNotAttachedError(ProblemError):
    """The producer has no push stream open with this epoch. The caller's; say hello first."""

    def __init__(self, session_id: str, *, producer_id: str) -> None:
        super().__init__(f"producer {producer_id} is not attached to session {session_id} with this epoch")
        self.session_id = session_id
        self.producer_id = producer_id


class PromptNotFoundError(ProblemError):
    """The session has no such prompt, or it was closed long ago. The caller's; final."""

    def __init__(self, session_id: str, *, prompt_id: str) -> None:
        super().__init__(f"session {session_id} has no prompt {prompt_id}")
        self.session_id = session_id
        self.prompt_id = prompt_id


class PromptClosedError(ProblemError):
    """The agent was handed the prompt, or has shown it: it is past cancelling. The caller's; final."""

    def __init__(self, session_id: str, *, prompt_id: str, state: str) -> None:
        super().__init__(f"prompt {prompt_id} of session {session_id} is past cancelling: {state}")
        self.session_id = session_id
        self.prompt_id = prompt_id
        self.state = state


class PromptConflictError(ProblemError):
    """The same client_request_id came with another text. The caller's; choose another id."""

    def __init__(self, session_id: str, *, prompt_id: str) -> None:
        super().__init__(f"client_request_id was used for prompt {prompt_id} of session {session_id} with another text")
        self.session_id = session_id
        self.prompt_id = prompt_id


class InboxFullError(ProblemError):
    """The inbox holds as many prompts, or bytes, as it may. The caller's; helps: cancel one, or wait."""

    def __init__(self, session_id: str, *, limit: int, max_bytes: int) -> None:
        super().__init__(f"the inbox of session {session_id} is full: at most {limit} prompts, {max_bytes} bytes")
        self.session_id = session_id
        self.limit = limit
        self.max_bytes = max_bytes


class TooManyProducersError(ProblemError):
    """The session has seen as many producers as it can fence. The caller's; use stable producer ids."""

    def __init__(self, session_id: str, *, limit: int) -> None:
        super().__init__(f"session {session_id} has had {limit} producers, the limit")
        self.session_id = session_id
        self.limit = limit


class DrainingError(ProblemError):
    """The server shuts down. The server's; reconnect and resume."""

    def __init__(self) -> None:
        super().__init__("the server is shutting down")
