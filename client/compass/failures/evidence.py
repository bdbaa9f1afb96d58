"""What can be known of a failure, brought into one form; and how headers and statuses are read. It judges nothing."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


def squash(word: str) -> str:
    """Bring a machine word to the form in which words are compared: `Rate-Limit_Exceeded` is `ratelimitexceeded`."""
    return "".join(char for char in word.casefold() if char.isalnum() or char in ":.")


def qualified(key: str, word: str) -> str:
    """Name a word that means something only under its key: `finishreason:error`."""
    return f"{squash(key)}:{squash(word).partition(':')[0]}"


@dataclass(slots=True)
class Evidence:
    """What is known of a failure. Words are squashed; the most specific come first."""

    status: int | None = None
    """The HTTP status that was given, if it is one of an error."""
    named_status: int | None = None
    """A status that a body names in place of HTTP's."""
    told_status: int | None = None
    """A number at the head of a message, or right before a body in it: it helps to classify, and is never shown as the
    status."""
    headers: dict[str, str] = field(default_factory=dict)
    inner_headers: dict[str, str] = field(default_factory=dict)
    """Headers that came inside a body, after HTTP's own had gone out."""
    retry_delays: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    endings: list[str] = field(default_factory=list)
    """Reasons for which a stream says that it ended."""
    texts: list[str] = field(default_factory=list)
    """What is said to a person, in lower case."""
    has_error: bool = False
    """Whether a body carries an error at all."""
    is_html: bool = False


def error_status(value: object) -> int | None:
    """Read an HTTP status of an error; anything else, a success too, is none."""
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value.strip()[:4])
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return int(value) if 400 <= value <= 599 else None


def is_success(status: object) -> bool:
    """Tell whether a status was given that says success: what failed after it failed in band."""
    return isinstance(status, int) and 200 <= status <= 299


def read_headers(headers: object) -> dict[str, str]:
    """Read headers given as a mapping or as pairs, text or bytes; names become lower case and the first value wins."""
    pairs: object = headers.items() if isinstance(headers, Mapping) else headers
    if not isinstance(pairs, Iterable) or isinstance(pairs, str | bytes):
        return {}
    read: dict[str, str] = {}
    for pair in pairs:
        match pair:
            case (str() | bytes() as name, value):
                read.setdefault(_text(name).casefold(), _text(value))
    return read


def _text(value: object) -> str:
    match value:
        case bytes():
            return value.decode("latin-1")
        case [first, *_]:
            return _text(first)
    return str(value)
