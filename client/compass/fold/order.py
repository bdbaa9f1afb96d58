"""One pass over messages, tool calls and errors in order: what lies beside what, and which failures are one call."""

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

from compass.fold.entries import MessageEntry, ToolEntry
from compass.fold.gathered import Gathered
from compass.fold.view import CardOutcome, SurfacedError
from compass.v1 import compass_pb2 as pb


class Row:
    """A message and what lies beside it."""

    __slots__ = ("entry", "errors", "superseded", "tools")

    def __init__(self, entry: MessageEntry) -> None:
        self.entry = entry
        self.tools: list[ToolEntry] = []
        self.errors: list[SurfacedError] = []
        self.superseded: list[Row] = []


class Card:
    """A failed call and the failures of its attempts."""

    __slots__ = ("errors", "outcome")

    def __init__(self) -> None:
        self.errors: list[SurfacedError] = []
        self.outcome = CardOutcome.FAILED


class Order:
    """The rows and cards of a session, in order.

    A tool call belongs to the newest assistant message before it. A failure that stands, or an abort, lies beside the
    message it names, else beside the newest row before it. Failures join one card while each was taken back by a retry;
    a whole message, an abort or a new user message ends the card.
    """

    def __init__(self, gathered: Gathered) -> None:
        self.rows: list[Row] = []
        self.cards: list[Card] = []
        self.aborts: list[SurfacedError] = []
        self.errors_before_messages: list[SurfacedError] = []
        self.taken_back: dict[str, Row] = {}
        """Rows of messages that a retry took back, by message id."""
        self._retries = gathered.retries
        self._taken_back_ids = {
            error.error.message_id for error in gathered.errors if error.event_id in gathered.retries
        } - {""}
        self._rows_by_id: dict[str, Row] = {}
        self._assistant: Row | None = None
        self._open_card: Card | None = None
        self._unadopted: list[Row] = []
        for _, place, entry in sorted(self._marks(gathered), key=itemgetter(0)):
            place(entry)
        if gathered.state.value == pb.AGENT_SESSION_STATE_STOPPED:
            self._settle(CardOutcome.ABANDONED)

    def _marks(self, gathered: Gathered) -> Iterator[tuple[int, Callable[[Any], None], object]]:
        for message in gathered.messages.values():
            yield message.first_seq, self._place_message, message
            if gathered.retries and message.end.value.incomplete is False:
                yield message.end.seq, self._end_call, message
        for tool in gathered.tools.values():
            yield tool.first_seq, self._place_tool, tool
        for error in gathered.errors:
            yield error.seq, self._place_abort if error.is_abort else self._place_failure, error

    def _place_message(self, entry: MessageEntry) -> None:
        row = Row(entry)
        if not entry.is_assistant and not entry.steering:
            self._settle(CardOutcome.ABANDONED)
        if entry.is_assistant:
            self._assistant = row
        if entry.message_id in self._taken_back_ids:
            self.taken_back[entry.message_id] = row
            self._unadopted.append(row)
            return
        self.rows.append(row)
        self._rows_by_id[entry.message_id] = row
        if entry.is_assistant:
            row.superseded, self._unadopted = self._unadopted, []

    def _end_call(self, _: MessageEntry) -> None:
        self._settle(CardOutcome.RECOVERED)

    def _place_tool(self, tool: ToolEntry) -> None:
        if self._assistant is not None:
            self._assistant.tools.append(tool)

    def _place_abort(self, abort: SurfacedError) -> None:
        self.aborts.append(abort)
        self._lay_beside(abort)
        self._settle(CardOutcome.ABORTED)

    def _place_failure(self, failure: SurfacedError) -> None:
        if self._open_card is None:
            self._open_card = Card()
            self.cards.append(self._open_card)
        self._open_card.errors.append(failure)
        if failure.event_id in self._retries:
            self._open_card.outcome = CardOutcome.RETRYING
        else:
            self._lay_beside(failure)
            self._settle(CardOutcome.FAILED)

    def _settle(self, outcome: CardOutcome) -> None:
        if self._open_card is not None:
            self._open_card.outcome = outcome
            self._open_card = None
        self._unadopted = []

    def _lay_beside(self, error: SurfacedError) -> None:
        row = self._rows_by_id.get(error.error.message_id)
        if row is None and self.rows:
            row = self.rows[-1]
        (self.errors_before_messages if row is None else row.errors).append(error)
