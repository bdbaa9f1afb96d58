"""Inner events, told apart by their `type`. What is not read of them is not declared here."""

from typing import TypeAlias

import msgspec

from compass_service.mapper.fields import Message, Tagged, Todo, ToolArgs
from compass_service.mapper.updates import Update


class MessageUpdate(Tagged, tag="message_update"):
    """Something of the open assistant message. Its cumulative `message` and `partial` are not read."""

    assistant_message_event: Update | None = None


class MessageStart(Tagged, tag="message_start"):
    """A message begins."""

    message: Message | None = None


class MessageEnd(Tagged, tag="message_end"):
    """A message is whole, or failed."""

    message: Message | None = None


class AgentStart(Tagged, tag="agent_start"):
    """A run begins."""


class TurnStart(Tagged, tag="turn_start"):
    """A turn of a run begins."""


class TurnEnd(Tagged, tag="turn_end"):
    """Repeats what message_end said."""


class AgentEnd(Tagged, tag="agent_end"):
    """A run is over; perhaps not the user's turn."""

    will_retry: bool = False
    is_terminal: bool = True


class AgentSettled(Tagged, tag="agent_settled"):
    """The user's turn is over."""


class ToolStart(Tagged, tag="tool_execution_start"):
    """A tool begins to run."""

    tool_call_id: str = ""
    tool_name: str = ""
    intent: str = ""
    args: ToolArgs | None = None


class ToolUpdate(Tagged, tag="tool_execution_update"):
    """A running tool shows its output so far."""

    tool_call_id: str = ""
    partial_result: object = None


class ToolEnd(Tagged, tag="tool_execution_end"):
    """A tool has run."""

    tool_call_id: str = ""
    tool_name: str = ""
    result: object = None
    is_error: bool = False


class TodoReminder(Tagged, tag="todo_reminder"):
    """The plan as it is."""

    todos: list[Todo] = msgspec.field(default_factory=list)


class TodoAutoClear(Tagged, tag="todo_auto_clear"):
    """The plan is done with."""


class AutoCompactionStart(Tagged, tag="auto_compaction_start"):
    """The agent begins to summarize its context."""

    reason: str = ""


class CompactionStart(Tagged, tag="compaction_start"):
    """The same in the other spelling."""

    reason: str = ""


class AutoCompactionEnd(Tagged, tag="auto_compaction_end"):
    """The agent has summarized its context, or has not."""

    aborted: bool = False
    skipped: bool = False
    error_message: object = None


class CompactionEnd(Tagged, tag="compaction_end"):
    """The same in the other spelling."""

    aborted: bool = False
    skipped: bool = False
    error_message: object = None


class RetryStart(Tagged, tag="auto_retry_start"):
    """The agent will try a failed call again."""

    attempt: float = 0
    max_attempts: float = 0
    delay_ms: float = 0


class RetryEnd(Tagged, tag="auto_retry_end"):
    """The agent has tried enough."""

    success: bool = False
    final_error: object = None


class Notice(Tagged, tag="notice"):
    """An advisory line."""

    message: object = None
    text: str = ""
    link: str = ""


class IrcMessage(Tagged, tag="irc_message"):
    """A line from another agent."""

    message: Message | None = None


class FallbackApplied(Tagged, tag="retry_fallback_applied"):
    """Another model took over."""

    from_model: str = msgspec.field(default="", name="from")
    to: str = ""
    reason: str = ""


class FallbackSucceeded(Tagged, tag="retry_fallback_succeeded"):
    """The other model has answered."""

    model: str = ""


class RunEvent(Tagged, tag="run_event"):
    """A workflow engine reports something of a run."""

    kind: object = None
    payload: object = None


class UiRequest(Tagged, tag="extension_ui_request"):
    """An extension shows something, or asks a person."""

    method: str = ""
    title: str = ""


class UiResponse(Tagged, tag="extension_ui_response"):
    """The answer to a dialog, where the producer shows what it gives to the agent."""


class Response(Tagged, tag="response"):
    """The answer to a command of the agent's own protocol."""

    command: str = ""
    success: bool = False


class SessionHeader(Tagged, tag="session"):
    """No inner event."""


class Ready(Tagged, tag="ready"):
    """No inner event."""


class CommandsUpdate(Tagged, tag="available_commands_update"):
    """No inner event."""


class ModelChanged(Tagged, tag="model_changed"):
    """No inner event."""


Inner: TypeAlias = (
    MessageUpdate
    | MessageStart
    | MessageEnd
    | AgentStart
    | TurnStart
    | TurnEnd
    | AgentEnd
    | AgentSettled
    | ToolStart
    | ToolUpdate
    | ToolEnd
    | TodoReminder
    | TodoAutoClear
    | AutoCompactionStart
    | CompactionStart
    | AutoCompactionEnd
    | CompactionEnd
    | RetryStart
    | RetryEnd
    | Notice
    | IrcMessage
    | FallbackApplied
    | FallbackSucceeded
    | RunEvent
    | UiRequest
    | UiResponse
    | Response
    | SessionHeader
    | Ready
    | CommandsUpdate
    | ModelChanged
)
