"""From what was gathered to the view. Costs time in proportion to messages, tool calls and errors, not to chunks."""

from operator import attrgetter

from compass.fold.gathered import Gathered
from compass.fold.missing import GapFinder, remaining_gaps
from compass.fold.order import Card, Order, Row
from compass.fold.view import Attempt, CardOutcome, ErrorCard, Message, SurfacedError, Usage, View

_by_seq = attrgetter("seq")
_by_first_seq = attrgetter("first_seq")


def read(gathered: Gathered) -> View:
    """Build the view of everything gathered."""
    return _Reading(gathered).view()


class _Reading:
    def __init__(self, gathered: Gathered) -> None:
        self._gathered = gathered
        self._order = Order(gathered)
        self._gaps = remaining_gaps(gathered)
        self._gap_finder = GapFinder(gathered, self._gaps)

    def view(self) -> View:
        gathered, order = self._gathered, self._order
        return View(
            session_id=gathered.session_id,
            state=gathered.state.value,
            activity=gathered.activity.value,
            messages=tuple(map(self._message, order.rows)),
            tool_calls=tuple(tool.freeze() for tool in sorted(gathered.tools.values(), key=_by_first_seq)),
            plan=gathered.plan.value,
            errors=tuple(map(self._card, order.cards)),
            aborts=tuple(order.aborts),
            errors_before_messages=tuple(order.errors_before_messages),
            notices=tuple(sorted(gathered.notices, key=_by_seq)),
            injections=tuple(sorted(gathered.injections, key=_by_seq)),
            prompts=tuple(entry.freeze() for entry in sorted(gathered.prompts.values(), key=_by_first_seq)),
            run_events=tuple(sorted(gathered.run_events, key=_by_seq)),
            gaps=self._gaps,
            usage=self._usage(),
            head_seq=max(gathered.known.end - 1, gathered.last_told_seq, 0),
        )

    def _message(self, row: Row) -> Message:
        return row.entry.freeze(
            self._gathered.known,
            tool_calls=tuple(tool.freeze() for tool in row.tools),
            errors=tuple(row.errors),
            superseded=tuple(map(self._message, row.superseded)),
            has_gap=self._gap_finder.touches(row.entry),
        )

    def _card(self, card: Card) -> ErrorCard:
        standing = 1 if card.outcome is CardOutcome.FAILED else 0
        taken_back = card.errors[: len(card.errors) - standing]
        return ErrorCard(card.errors[-1], tuple(map(self._attempt, taken_back)), card.outcome)

    def _attempt(self, failure: SurfacedError) -> Attempt:
        row = self._order.taken_back.get(failure.error.message_id)
        message = None if row is None else self._message(row)
        return Attempt(failure, self._gathered.retries[failure.event_id], message)

    def _usage(self) -> Usage:
        usages = (entry.end.value.usage for entry in self._gathered.messages.values())
        return sum((usage for usage in usages if usage is not None), start=Usage())
