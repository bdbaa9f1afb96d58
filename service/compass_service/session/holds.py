"""What streams hold of a session: its producer's attachment, and the control stream of its agent."""

import asyncio

from compass_service.problems import ProblemError


class _Hold:
    """Something that one stream has until it is taken away."""

    def __init__(self) -> None:
        self.revoked: asyncio.Future[ProblemError] = asyncio.get_running_loop().create_future()
        """Resolves with the reason once the hold is lost."""

    def revoke(self, reason: ProblemError) -> None:
        """Take the hold away. Idempotent."""
        if not self.revoked.done():
            self.revoked.set_result(reason)

    def check(self) -> None:
        """Raise the reason if the hold is lost."""
        if self.revoked.done():
            raise self.revoked.result()


class Attachment(_Hold):
    """One push stream's hold on a session. At most one is current; the others are revoked and say why."""

    def __init__(self, producer_id: str, epoch: int, *, acked_seq: int, commit: asyncio.Task[int]) -> None:
        super().__init__()
        self.producer_id = producer_id
        self.epoch = epoch
        self.acked_seq = acked_seq
        """Highest producer seq that the log held of this epoch when it attached."""
        self.commit = commit
        """The commit of the attaching itself, whose result is the head."""


class Controller(_Hold):
    """The control stream of the attached producer: woken when there may be something for it."""

    def __init__(self, commit: asyncio.Task[int]) -> None:
        super().__init__()
        self.commit = commit
        """The commit of the opening itself."""
        self._is_woken = asyncio.Event()
        self.revoked.add_done_callback(lambda _: self._is_woken.set())

    def wake(self) -> None:
        """Have it look for what is new."""
        self._is_woken.set()

    async def wait(self) -> None:
        """Wait to be woken. Raises the reason once the hold is lost."""
        await self._is_woken.wait()
        self._is_woken.clear()
        self.check()
