"""The fold from frames to a view: the one set of rules by which every pane and every transcript shows a session.

`fold = SessionFold(); fold.apply(item)` for each item of a tail, `fold.view` when it is to be shown. The rules, in
full, so that a fold in another language can be its twin (shared vectors: tests/data/fold):

1.  The view is a function of the *set* of items: arrival order and repetition are moot. A seq counts once.
2.  Frames without a seq are the snapshot of a live tail. Only their state and activity count, below every seq.
3.  State, activity, plan, a tool call's title and status, a prompt's state, a message's end: the highest seq decides.
    The output and diffs of a tool call, the text and author of a prompt: the highest seq that carries them, others
    leave them.
4.  A message is what has one message_id: user from user_message, assistant from assistant_text, thinking and
    message_end. Its text and its thinking are its pieces in order of seq. Messages are in order of their first seq.
5.  `incomplete`: null without a message_end, true for INCOMPLETE, false for COMPLETE and for a user message.
6.  A tool call belongs to the assistant message with the highest first seq below its own. All tool calls are listed
    too.
7.  A RETRYING activity with supersedes_event_id takes back the session_error of that event_id, and the message that
    the error names (message_id) with it. Later activities change nothing about that.
8.  Failures (session_error of kind ERROR) make cards, in order of seq: a failure joins the open card, or opens one.
    It leaves the card open if it was taken back (outcome retrying), else closes it (failed). An open card is closed
    by the end of a whole assistant message (recovered), an abort (aborted), a user message that does not steer, or
    STOPPED as the state (abandoned).
9.  A message that was taken back is not among the messages. It lies on the next assistant message that was not
    (`superseded`), if that comes before the card is closed, and on its attempt of the card.
10. An abort (session_error of kind ABORTED) is never an error: it has a list of its own.
11. An abort, or a failure that was not taken back, lies beside the message that it names, if that is among the
    messages and begins before it, else beside the last of the messages that begin before it, else before all
    messages.
12. Gaps with bounds: what was told as missing less the seqs that are known; told for two reasons, the higher number
    counts. A gap with a seq of its own (PRODUCER_OVERFLOW) stays, at its seq. `dropped` is the size of what remains.
13. A user message has a gap if one lies between its first and last seq. An assistant message has a gap if one lies
    between the last mark before its first seq and its end (without end: the first mark after its last seq, or no
    bound). Marks are the first and last seqs of messages and of tool calls, and the seqs of session_errors.
14. Usage is the sum over all messages, those taken back included. The head is the highest seq known or told as
    missing.
"""

from compass.fold.canonical import view_to_dict
from compass.fold.session_fold import Item, SessionFold, fold
from compass.fold.transcript import transcript_rows
from compass.fold.view import (
    Activity,
    Attempt,
    CardOutcome,
    ErrorCard,
    FileDiff,
    Injection,
    Message,
    Notice,
    PlanEntry,
    Prompt,
    Retry,
    RunEvent,
    SurfacedError,
    ToolCall,
    Usage,
    View,
)

__all__ = [
    "Activity",
    "Attempt",
    "CardOutcome",
    "ErrorCard",
    "FileDiff",
    "Injection",
    "Item",
    "Message",
    "Notice",
    "PlanEntry",
    "Prompt",
    "Retry",
    "RunEvent",
    "SessionFold",
    "SurfacedError",
    "ToolCall",
    "Usage",
    "View",
    "fold",
    "transcript_rows",
    "view_to_dict",
]
