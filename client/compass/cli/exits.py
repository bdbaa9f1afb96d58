"""Exit codes, and how an error becomes one line and one of them."""

from enum import IntEnum

from compass import errors


class Exit(IntEnum):
    """What a command's exit code says. 0 only when what was asked is done."""

    DONE = 0
    """What was asked is done."""
    FAILED = 1
    """It failed for a reason that has no code of its own."""
    USAGE = 2
    """The command line, or a value on it, is wrong."""
    NOT_FOUND = 3
    """The session, or the prompt, does not exist."""
    UNAVAILABLE = 4
    """The server cannot be reached, is shutting down, or has no room, or the inbox is full."""
    INTERRUPTED = 5
    """A tail was cut and could not be resumed."""
    REFUSED = 6
    """The session is stopped, another producer holds it, or the prompt is past what was asked."""
    BAD_INPUT = 7
    """A pushed line is not one JSON object."""
    TURN_FAILED = 10
    """wait: the turn failed."""
    TURN_ABORTED = 11
    """wait: the turn was aborted, or the session was closed in the middle of it."""
    AGENT_LOST = 12
    """wait: the agent is gone."""
    AGENT_FAILED = 13
    """run: the agent's process ended by itself with a failure."""
    TIMED_OUT = 124
    """wait: no outcome within --timeout."""
    CANCELLED = 130
    """Ctrl-C."""
    OUTPUT_CLOSED = 141
    """Whoever read the output went away."""


class CommandError(Exception):
    """A command cannot do what was asked; says so in one line, with the exit code for it."""

    def __init__(self, message: str, exit_code: Exit) -> None:
        super().__init__(message)
        self.exit_code = exit_code


_EXITS: tuple[tuple[tuple[type[errors.CompassError], ...], Exit], ...] = (
    ((errors.SessionNotFoundError, errors.PromptNotFoundError), Exit.NOT_FOUND),
    ((errors.ServerUnavailableError, errors.LogFullError, errors.InboxFullError), Exit.UNAVAILABLE),
    ((errors.TailInterrupted,), Exit.INTERRUPTED),
    ((errors.InvalidEventError,), Exit.BAD_INPUT),
    ((errors.InvalidRequestError, errors.CursorAboveHeadError), Exit.USAGE),
    (
        (
            errors.SessionStoppedError,
            errors.ProducerAttachedError,
            errors.ProducerFencedError,
            errors.ProducerReplacedError,
            errors.PromptClosedError,
            errors.PromptConflictError,
        ),
        Exit.REFUSED,
    ),
)


def explained(error: errors.CompassError) -> CommandError:
    """Turn an error of the SDK into one line and its exit code."""
    exit_code = next((code for kinds, code in _EXITS if isinstance(error, kinds)), Exit.FAILED)
    unstored = f"; {error.num_unacknowledged:,} events were not acknowledged" if error.num_unacknowledged else ""
    return CommandError(f"{error}{unstored}", exit_code)
