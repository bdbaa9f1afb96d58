"""Takes credentials out of text that is stored, logged or sent, and leaves the prose around them.

One redactor for failure text, tool text, status details and logs. Idempotent and linear in the text's length. Status
codes, model names, commit hashes and uuids are no secrets and stay.
"""

import base64
import binascii
import re
from collections.abc import Callable

from compass.failures.credentials import (
    BASIC,
    BEARER,
    CODE,
    FLAG,
    KEY_SHAPES,
    NAME_NEEDLES,
    PLAIN_VALUES,
    PRIVATE_KEY,
    PRIVATE_KEY_END,
    QUERY,
    SECRET_NAME,
    USER_FLAG,
)

MARK = "[redacted]"

_UNQUOTED = re.compile(r"(?:[^\s\"'&,;<>\\]|\\(?![nrt\"']))++")
_TRAILING = ")]}.:!?"
_QUOTE = re.compile(r"(\\*+)([\"'])")
_SCHEME = re.compile(r"(?:bearer|basic|token|apikey|api-key|negotiate|key)\s{1,4}", re.IGNORECASE)
_SECOND_WORD = re.compile(r"\s{1,4}([^\s\"'&,;<>\\]++)")
_PARAMS_SCHEME = re.compile(r"(?:digest|oauth|hawk|aws4-[a-z0-9-]{1,32})\s[^\r\n]*+", re.IGNORECASE)
_COOKIES = re.compile(r"[^\s;,=\"'\\]++=[^\s;,\"'\\]*+(?:;\s?[^\s;,=\"'\\]++(?:=[^;,\"'\\\r\n]*+)?)*+")

_URL_REST = re.compile(r":(?:\\?/){2}[^\s\"'<>`]++")
_BARE_LOGIN = re.compile(
    r"(?<![\w.+/@:-])(?P<user>[A-Za-z][\w.+-]{0,63}+):(?P<value>[^\s@/\"'<>\\]{3,128}+)"
    r"@(?=[A-Za-z]|\d{1,3}\.\d{1,3}\.\d{1,3}\.\d)",
)
_NO_LOGINS = frozenset({"mailto", "email", "npm", "sip", "acct", "xmpp", "workspace", "from", "to", "cc", "contact"})
_PORT = re.compile(r"\d{1,5}(?:/|$)")
_KEY_LINE = re.compile(r"[A-Za-z0-9+/=]{16,128}")
_LAST_KEY_LINE = re.compile(r"[A-Za-z0-9+/=]{0,128}")
_LINE_BREAK = re.compile(r"(?:\r?\n|\\r|\\n)+")


def redact(text: str) -> str:
    """Replace every credential in a text by `[redacted]`."""
    text = _private_keys(text)
    text = _logins(text)
    low = _lowered(text)
    if any(needle in low for needle in NAME_NEEDLES):
        text = _named(text, low)
    for needles, pattern, replace in _SHAPES:
        if any(needle in low for needle in needles):
            text = pattern.sub(replace, text)
    return text


def _lowered(text: str) -> str:
    """Lower a text and keep the places of its characters."""
    low = text.lower()
    return low if len(low) == len(text) else "".join(char.lower() if char.isascii() else char for char in text)


def _private_keys(text: str) -> str:
    """Replace private key blocks, and what a cut left of one: without its end, or without its beginning."""
    parts, at = [], 0
    while (begin := PRIVATE_KEY.search(text, at)) is not None:
        end = PRIVATE_KEY_END.search(text, begin.end())
        parts += [_headless_key(text[at : begin.start()]), MARK]
        at = end.end() if end else len(text)
    parts.append(_headless_key(text[at:]))
    return "".join(parts)


def _headless_key(text: str) -> str:
    parts, at = [], 0
    for end in PRIVATE_KEY_END.finditer(text):
        parts += [text[at : _key_start(text, at, end.start())], MARK]
        at = end.end()
    parts.append(text[at:])
    return "".join(parts)


def _key_start(text: str, first: int, end: int) -> int:
    """Walk back over lines that can be of a key, to where the first of them begins."""
    breaks = list(_LINE_BREAK.finditer(text, first, end))
    starts = [first, *(found.end() for found in breaks)]
    ends = [*(found.start() for found in breaks), end]
    start, shape = end, _LAST_KEY_LINE
    for line_start, line_end in zip(reversed(starts), reversed(ends), strict=True):
        word_start = max(line_start, text.rfind(" ", line_start, line_end) + 1)
        if not shape.fullmatch(text, word_start, line_end):
            break
        start = word_start
        if word_start > line_start:
            break
        shape = _KEY_LINE if line_start < line_end else shape
    return start


def _logins(text: str) -> str:
    """Replace the password in `scheme://user:password@host` and in a bare `user:password@host`."""
    if "@" not in text:
        return text
    return _BARE_LOGIN.sub(_bare_login, _URL_REST.sub(_url_login, text))


def _url_login(found: re.Match[str]) -> str:
    """Redact one run of text that begins at `://`; it may hold several URLs."""
    pieces = re.split(r"(:(?:\\?/){2})", found.group())
    return "".join(piece if at % 2 else _authority(piece) for at, piece in enumerate(pieces))


def _authority(rest: str) -> str:
    path = re.search(r"[/?#]", rest)
    head = rest[: path.start()] if path else rest
    at = head.rfind("@") if "@" in head else rest.rfind("@")
    user, colon, password = rest[: max(at, 0)].partition(":")
    if colon and password and not re.search(r"[/?#]", user) and not _PORT.match(password):
        return f"{user}:{MARK}{rest[at:]}"
    if not colon and len(user) >= 20 and not re.search(r"[/?#]", user):
        return f"{MARK}{rest[at:]}"
    return rest


def _bare_login(found: re.Match[str]) -> str:
    if found["user"].casefold() in _NO_LOGINS:
        return found.group()
    return f"{found['user']}:{MARK}@"


def _named(text: str, low: str) -> str:
    """Replace what stands after the name of a secret: in JSON, in headers, in `name=value` and `name: value`."""
    parts, at = [], 0
    while (name := SECRET_NAME.search(low, at)) is not None:
        end = _value_end(text, low, name)
        start = name.end()
        if end > start and (quote := _QUOTE.match(text, start)) is not None:
            start = quote.end()
        parts.append(text[at:start])
        if start < end:
            parts.append(MARK)
        at = max(start, end)
    parts.append(text[at:])
    return "".join(parts)


def _value_end(text: str, low: str, name: re.Match[str]) -> int:
    """Find where the secret ends that begins after its name; at its beginning when it is none."""
    if name["sep"] == "," and not name["header"]:  # two words of a list, not a header as a pair
        return name.end()
    quote = _QUOTE.match(text, name.end())
    if quote is not None:
        return quote.end() if _opens_no_value(low, name, quote) else _closing(text, quote)
    if SECRET_NAME.match(low, name.end()) is not None:  # `key provided: token: ...`
        return name.end()
    if name["header"]:
        return _header_end(text, name)
    end = _unquoted_end(text, name.end())
    is_certain = name["certain"] is not None or _is_assigned_closely(text, name)
    value = text[name.end() : end]
    is_path = value.startswith("/") and name.group().startswith("pwd")
    return end if (is_certain or _looks_secret(value)) and not is_path else name.end()


def _opens_no_value(low: str, name: re.Match[str], quote: re.Match[str]) -> bool:
    """Whether a quote after a name opens another name, ends the text around the name, or is redacted already."""
    next_name = SECRET_NAME.match(low, quote.end())
    is_name_itself = next_name is not None and next_name["close"] is not None
    is_end = name["close"] is None and quote[1] == "" and low.startswith(quote[2], max(name.start() - 1, 0))
    return is_name_itself or is_end or low.startswith(MARK, quote.end())


def _is_assigned_closely(text: str, name: re.Match[str]) -> bool:
    """Whether it is `token=x`, as a form or a shell has it, and not `token = x`, which is code as a rule."""
    return "=" in name["sep"] and name.end() == name.end("sep") and text[name.start("sep") - 1] != " "


def _closing(text: str, quote: re.Match[str]) -> int:
    """Find the quote that closes this one, at any depth of escaping; the end of the line when it was cut off."""
    depth, mark, start = len(quote[1]), quote[2], quote.end()
    seen = start
    while (at := text.find(mark, seen)) != -1 and "\n" not in text[seen:at]:
        run = _backslashes_before(text, at, start)
        if run < depth or run % (2 * depth + 2) == depth:
            return at - min(run, depth)
        seen = at + 1
    line_end = text.find("\n", seen)
    return line_end if line_end != -1 else len(text)


def _backslashes_before(text: str, at: int, start: int) -> int:
    run = at
    while run > start and text[run - 1] == "\\":
        run -= 1
    return at - run


def _header_end(text: str, name: re.Match[str]) -> int:
    start = name.end()
    if "cookie" in name["header"]:
        cookies = _COOKIES.match(text, start)
        return cookies.end() if cookies else start
    if (params := _PARAMS_SCHEME.match(text, start)) is not None:
        return params.end()
    end = _unquoted_end(text, start)
    if end == start or _SCHEME.match(text, start) is not None or "authorization" not in name["header"]:
        return end
    # The first word may be a scheme that we do not know.
    second = _SECOND_WORD.match(text, end)
    return second.end() if second is not None and _looks_secret(second[1]) else end


def _unquoted_end(text: str, start: int) -> int:
    """Find the end of a bare word that is neither prose nor code; a scheme before it belongs to it."""
    scheme = _SCHEME.match(text, start)
    value_start = scheme.end() if scheme else start
    found = _UNQUOTED.match(text, value_start)
    if found is None or text.startswith(MARK, value_start) or found.group()[0] in "[{(":
        return start
    value = found.group().rstrip(_TRAILING)
    if value.casefold() in PLAIN_VALUES or CODE.match(value):
        return start
    return value_start + len(value)


def _looks_secret(value: str) -> bool:
    return len(value) >= 20 or (len(value) >= 8 and any(char.isdecimal() for char in value))


def _bearer(found: re.Match[str]) -> str:
    value = found["value"].rstrip(".")
    if value.casefold() in PLAIN_VALUES:
        return found.group()
    return found["scheme"] + MARK + found["value"][len(value) :]


def _basic(found: re.Match[str]) -> str:
    try:
        login = base64.b64decode(found["value"] + "==", altchars=b"-_")
    except binascii.Error:
        login = b""
    return found["scheme"] + MARK if b":" in login else found.group()


def _value(found: re.Match[str]) -> str:
    is_none = found["value"].startswith(MARK[:-1]) or CODE.match(found["value"])
    return found.group() if is_none else found["name"] + MARK


_SHAPES: tuple[tuple[tuple[str, ...], re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (("bearer",), BEARER, _bearer),
    (("basic",), BASIC, _basic),
    (("=",), QUERY, _value),
    (("--",), FLAG, _value),
    (("-u", "--user"), USER_FLAG, _value),
    *((needles, pattern, MARK) for needles, pattern in KEY_SHAPES),
)
"""What to look for, if one of the needles is there at all; in this order."""
