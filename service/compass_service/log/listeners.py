"""Who is told of the records of a session. On the event loop's thread only."""

from collections.abc import Callable

import structlog

from compass_service.log.protocol import Listener, Record

_log = structlog.get_logger(__name__)


class Listeners:
    """The listeners of every session, each called in the order in which they came."""

    def __init__(self) -> None:
        self._by_session: dict[str, dict[object, Listener]] = {}

    def add(self, session_id: str, listener: Listener) -> Callable[[], None]:
        """Add a listener. Returns how to remove it; removing twice is harmless."""
        token = object()
        self._by_session.setdefault(session_id, {})[token] = listener

        def stop() -> None:
            listeners = self._by_session.get(session_id, {})
            if listeners.pop(token, None) is not None and not listeners:
                del self._by_session[session_id]

        return stop

    def tell(self, record: Record) -> None:
        """Give a record to every listener of its session; not to one that another has just stopped.

        A listener that raises costs neither the other listeners nor the writer anything.
        """
        listeners = self._by_session.get(record.session_id)
        if listeners is None:
            return
        for token, listener in tuple(listeners.items()):
            if token in listeners:
                try:
                    listener(record)
                except Exception as error:  # noqa: BLE001 - the record is durable, whatever a listener makes of it
                    _log.exception("log_listener_failed", session=record.session_id, internal_cause=repr(error))
