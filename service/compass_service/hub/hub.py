"""All feeds of this process, and how a subscription joins one."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from compass.lanes import LaneBounds
from compass_service.hub.feed import Feed
from compass_service.hub.subscription import Subscription, Wants
from compass_service.log.protocol import SessionLog
from compass_service.problems import CursorAboveHeadError, SessionNotFoundError


class Hub:
    """Keeps one feed for each session that somebody follows."""

    def __init__(
        self,
        log: SessionLog,
        *,
        bounds: LaneBounds,
        heartbeat_s: float,
        now: Callable[[], float],
    ) -> None:
        self._log = log
        self._bounds = bounds
        self._heartbeat_s = heartbeat_s
        self._now = now
        self._feeds: dict[str, tuple[Feed, Callable[[], None]]] = {}
        self._num_readers: dict[str, int] = {}
        self._lag_dropped: dict[str, int] = {}
        self.is_draining = False

    @contextlib.asynccontextmanager
    async def subscribe(self, wants: Wants) -> AsyncIterator[Subscription]:
        """Join a session's feed. Raises SessionNotFoundError, CursorAboveHeadError."""
        async with self._feed(wants) as feed:
            subscription = Subscription(
                wants,
                feed,
                self._log,
                bounds=self._bounds,
                heartbeat_s=self._heartbeat_s,
                now=self._now,
                is_draining=lambda: self.is_draining,
            )
            try:
                yield subscription
            finally:
                subscription.close()

    async def run(self) -> None:
        """Wake followers whose heartbeat is due, for ever."""
        while True:
            await asyncio.sleep(self._heartbeat_s / 4)
            due = self._now() - self._heartbeat_s
            for feed, _ in self._feeds.values():
                for follower in feed.followers:
                    if follower.last_sent <= due:
                        follower.wake()

    def drain(self) -> None:
        """End every subscription at its next part with DrainingError."""
        self.is_draining = True
        for feed, _ in self._feeds.values():
            feed.wake()

    @property
    def num_subscriptions(self) -> int:
        """Open subscriptions."""
        return sum(len(feed.followers) for feed, _ in self._feeds.values())

    def lag_dropped(self, session_id: str) -> int:
        """Count the frames that lanes of a session's readers dropped since the start."""
        dropped = self._lag_dropped.get(session_id, 0)
        if session_id in self._feeds:
            feed = self._feeds[session_id][0]
            dropped += feed.lag_dropped
            dropped += sum(follower.lanes.dropped for follower in feed.followers if follower.lanes is not None)
        return dropped

    @contextlib.asynccontextmanager
    async def _feed(self, wants: Wants) -> AsyncIterator[Feed]:
        """Listen first, then look at the head: nothing that commits in between is missed."""
        session_id = wants.session_id
        if session_id not in self._feeds:
            feed = Feed(session_id)
            self._feeds[session_id] = feed, self._log.listen(session_id, feed.on_record)
        feed = self._feeds[session_id][0]
        self._num_readers[session_id] = self._num_readers.get(session_id, 0) + 1
        try:
            await self._begin(feed, wants)
            yield feed
        finally:
            self._leave(session_id)

    async def _begin(self, feed: Feed, wants: Wants) -> None:
        stored = await self._log.load(wants.session_id)
        if stored is None:
            raise SessionNotFoundError(wants.session_id)
        feed.begin(stored.head_seq, stored.checkpoint)
        if not wants.from_now and wants.since_seq > feed.head_seq:
            raise CursorAboveHeadError(
                wants.session_id,
                cursor=wants.since_seq,
                first_kept_seq=stored.first_kept_seq,
                head_seq=feed.head_seq,
            )

    def _leave(self, session_id: str) -> None:
        self._num_readers[session_id] -= 1
        if self._num_readers[session_id]:
            return
        del self._num_readers[session_id]
        feed, stop_listening = self._feeds.pop(session_id)
        stop_listening()
        feed.close()
        if feed.lag_dropped:
            self._lag_dropped[session_id] = self._lag_dropped.get(session_id, 0) + feed.lag_dropped
