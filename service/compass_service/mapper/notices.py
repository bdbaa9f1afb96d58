"""Advisory lines of agents. They are never a failure."""

from compass.failures import readable
from compass.v1 import compass_pb2 as pb
from compass_service.mapper import activity, inner
from compass_service.mapper.content import text_of
from compass_service.mapper.prose import prose_of, shorten
from compass_service.mapper.text import size
from compass_service.mapper.writer import FrameWriter

MAX_LINK_BYTES = 2_048
_DIALOGS = frozenset({"select", "confirm", "input", "editor"})


def notice(writer: FrameWriter, event: inner.Notice) -> None:
    """Write a notice."""
    _write(writer, readable(event.message) or event.text, link=event.link)


def irc_message(writer: FrameWriter, event: inner.IrcMessage) -> None:
    """Write a line from another agent, unless it is not meant to be seen."""
    if event.message is not None and event.message.display:
        _write(writer, text_of(event.message, joint="\n"))


def fallback_applied(writer: FrameWriter, event: inner.FallbackApplied) -> None:
    """Write that another model took over."""
    change = f"Model fallback: {event.from_model} → {event.to}"
    _write(writer, f"{change} ({event.reason})" if event.reason else change)


def fallback_succeeded(writer: FrameWriter, event: inner.FallbackSucceeded) -> None:
    """Write that the other model has answered."""
    _write(writer, f"Model fallback succeeded: {event.model}")


def ui_request(writer: FrameWriter, event: inner.UiRequest) -> None:
    """Show that a dialog waits for a person. Everything else that an extension shows is no inner event."""
    if event.method in _DIALOGS:
        activity.hide(writer, pb.SESSION_PHASE_AWAITING_INPUT, shorten(event.title, activity.MAX_DETAIL_CHARS).text)
    elif event.method == "cancel":
        dialog_closed(writer)


def dialog_closed(writer: FrameWriter, _: inner.UiResponse | None = None) -> None:
    """Go back to what the agent was doing before it asked."""
    activity.uncover(writer, pb.SESSION_PHASE_AWAITING_INPUT)


def _write(writer: FrameWriter, text: str, *, link: str = "") -> None:
    prose = prose_of(text.strip())
    if prose.text:
        shown_link = link if link and size(link) <= MAX_LINK_BYTES else None
        event = pb.SessionEvent(notice=pb.SessionNotice(text=prose.text, link=shown_link))
        writer.event(event, original_bytes=prose.original_bytes)
