"""The fold itself: frames in, a view out."""

from collections.abc import Iterable
from typing import TypeAlias

from compass.fold.gathered import Gathered
from compass.fold.reading import read
from compass.fold.view import View
from compass.gap import Gap
from compass.v1 import compass_pb2 as pb

Item: TypeAlias = pb.AgentSessionFrame | Gap
"""What a tail yields."""


class SessionFold:
    """Fold what a tail yields, one item at a time, into a view.

    Taking an item costs constant time; reading the view costs time in proportion to its messages and tool calls, not to
    the frames behind them, and nothing while nothing came. Items may come in any order and more than once: the same set
    of items gives the same view.
    """

    def __init__(self) -> None:
        self._gathered = Gathered()
        self._view: View | None = None

    def apply(self, item: Item) -> None:
        """Take a frame or a gap."""
        self._view = None
        gathered = self._gathered
        if isinstance(item, Gap):
            gathered.take_gap(item)
            return
        gathered.session_id = gathered.session_id or item.session_id
        if item.HasField("gap"):
            gathered.take_gap(Gap.from_frame(item))
        elif item.seq:
            gathered.take(item)
        else:
            gathered.take_snapshot(item)

    @property
    def view(self) -> View:
        """What a pane shows of everything taken so far."""
        if self._view is None:
            self._view = read(self._gathered)
        return self._view


def fold(items: Iterable[Item]) -> View:
    """Fold all items into one view."""
    session = SessionFold()
    for item in items:
        session.apply(item)
    return session.view
