"""Walks bodies and messages, whatever form they come in, and files what they say as evidence.

Bodies are walked only along keys that structure an error: a validation error echoes the prompt, and a prompt may hold
anything. Keys are compared squashed, so that a lower-cased body says the same.
"""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from compass.failures.embedded import MAX_TEXT_CHARS, read_text
from compass.failures.evidence import Evidence, error_status, qualified, read_headers, squash

_MAX_DEPTH = 16
_MAX_NODES = 1_000
_MAX_TEXTS = 32
_MAX_PROSE_CHARS = 4_096

_HTML = re.compile(r"<!doctype html|<html|<head>|<body", re.IGNORECASE)
_STATUS_IN_PROSE = re.compile(
    r"^[\s\"'(\[]{0,4}(?:[a-z]{0,24}error:? ?)?(?:(?:client |server |api )?error|http|status)?(?: ?code)?:? ?"
    r"[('\"]?([45]\d\d)(?![\d.]\d|\d)"
    r"|\bstatus(?: ?code)?[ :=]{1,3}([45]\d\d)\b",
    re.IGNORECASE,
)
_STATUS_BEFORE_BODY = re.compile(
    r"(?<![\w.])([45]\d\d)(?: status code)?[\])]?(?:[\s:-]|\\n){1,4}b?[\"']?(?:\{\\?[\"'}]|\[\{|<(?:!doctype|html))",
    re.IGNORECASE,
)
"""A number right before a body is its status, whatever an agent wrote before both."""
_WORDS_IN_PROSE = re.compile(
    r"^\s{0,4}([A-Za-z_]{4,64}):(?= )"  # overloaded_error: ...
    r"|^\W{0,4}([A-Za-z]+(?:_[A-Za-z]+)+)\W{0,4}$"  # the word alone
    r"|\(([a-z]+(?:_[a-z]+)+)\)"  # ... (rate_limit_exceeded)
    r"|\b(?:(?:type|code|param|reason|status)\s?[=:]\s?|error code )[\"']?([A-Za-z_]{4,64})\b",
    re.IGNORECASE,
)

_RANKS_PER_SOURCE = 10
_PROSE_RANK = 30
"""Machine words that stand in prose count after those of any structure."""
_WORD_RANKS = {"errorcode": 1, "reason": 1, "errortype": 2, "code": 2, "status": 3, "type": 4}
"""Which key's word is the more specific: lower ranks first."""
_ENDING_PARENTS = frozenset({"incompletedetails"})


def gather(
    *,
    status: object = None,
    headers: object = None,
    body: object = None,
    message: object = None,
) -> Evidence:
    """Collect the evidence; what cannot be read is no evidence."""
    evidence = Evidence(status=error_status(status), headers=read_headers(headers))
    ranked: list[tuple[int, str]] = []
    for source, value in enumerate((body, message)):
        walker = _Walker(evidence, source * _RANKS_PER_SOURCE)
        walker.walk(value)
        ranked.extend(walker.ranked)
    evidence.words = [word for _, word in sorted(ranked, key=lambda pair: pair[0])]
    return evidence


class _Member(NamedTuple):
    """One member of an object, its key squashed."""

    name: str
    value: object
    parent: str


class _Walker:
    def __init__(self, evidence: Evidence, rank: int) -> None:
        self.ranked: list[tuple[int, str]] = []
        self._evidence = evidence
        self._rank = rank
        self._nodes = 0

    def walk(self, value: object, depth: int = 0, parent: str = "") -> None:
        self._nodes += 1
        if depth > _MAX_DEPTH or self._nodes > _MAX_NODES:
            return
        match value:
            case Mapping():
                self._walk_mapping(value, depth, parent)
            case str():
                self._walk_text(value, depth)
            case bytes() | bytearray():
                self._walk_text(bytes(value[: 4 * MAX_TEXT_CHARS]).decode(errors="replace"), depth)
            case list() | tuple():
                for item in value[:_MAX_NODES]:
                    self.walk(item, depth + 1, parent)
            case int() | float() if depth == 0:
                self._evidence.told_status = self._evidence.told_status or error_status(value)

    def _walk_mapping(self, value: Mapping[object, object], depth: int, parent: str) -> None:
        for key, item in value.items():
            if item is None:
                continue
            name = squash(str(key))
            if (read := _READERS.get(name)) is not None:
                read(self, _Member(name, item, parent))
            if name in _NESTED:
                self._evidence.has_error |= name == "error"
                self.walk(item, depth + 1, name)

    def _walk_text(self, text: str, depth: int) -> None:
        if self._evidence.told_status is None and (told := _STATUS_BEFORE_BODY.search(text[:MAX_TEXT_CHARS])):
            self._evidence.told_status = error_status(told.group(1))
        page = _HTML.search(text[:MAX_TEXT_CHARS])
        if page is not None:
            self._evidence.is_html = True
            text = text[: page.start()]
        embedded = read_text(text)
        for value in embedded.values:
            self.walk(value, depth + 1)
        if embedded.prose:
            self._read_prose(embedded.prose)

    def _read_prose(self, prose: str) -> None:
        evidence, head = self._evidence, prose[:_MAX_PROSE_CHARS]
        if len(evidence.texts) < _MAX_TEXTS:
            evidence.texts.append(head.casefold())
        if evidence.told_status is None and (told := _STATUS_IN_PROSE.search(head)):
            evidence.told_status = error_status(told.group(1) or told.group(2))
        for found in _WORDS_IN_PROSE.finditer(head):
            self.ranked.append((_PROSE_RANK + self._rank, squash(found.group(found.lastindex or 0))))

    def read_word(self, member: _Member) -> None:
        if isinstance(member.value, bool) or not isinstance(member.value, str | int):
            return
        if (status := error_status(member.value)) is not None and member.name != "type":
            self._evidence.named_status = self._evidence.named_status or status
            return
        word = squash(str(member.value)).partition(":")[0]
        if member.parent in _ENDING_PARENTS:
            self._evidence.endings.append(f"{member.name}:{word}")
        elif word:
            self.ranked.append((self._rank + _WORD_RANKS[member.name], word))

    def read_qualified(self, member: _Member) -> None:
        value = "any" if isinstance(member.value, list) and member.value else member.value
        if isinstance(value, str):
            self.ranked.append((self._rank, qualified(member.name, value)))

    def read_quota(self, member: _Member) -> None:
        for specificity, period in enumerate(("perday", "perminute")):
            if period in squash(str(member.value)):
                self.ranked.append((self._rank - 2 + specificity, f"quota:{period}"))

    def read_ending(self, member: _Member) -> None:
        if isinstance(member.value, str):
            self._evidence.endings.append(qualified(member.name, member.value))

    def read_groq_error(self, member: _Member) -> None:
        if isinstance(member.value, Mapping) and member.value.get("error"):
            self._evidence.endings.append("finishreason:error")

    def read_status(self, member: _Member) -> None:
        self._evidence.named_status = self._evidence.named_status or error_status(member.value)

    def read_inner_headers(self, member: _Member) -> None:
        for key, value in read_headers(member.value).items():
            self._evidence.inner_headers.setdefault(key, value)

    def read_wait(self, member: _Member) -> None:
        header = "retry-after-ms" if member.name.endswith("ms") else "retry-after"
        self._evidence.inner_headers.setdefault(header, str(member.value))

    def read_delay(self, member: _Member) -> None:
        self._evidence.retry_delays.append(str(member.value))


_READERS: dict[str, Callable[[_Walker, _Member], None]] = {
    **dict.fromkeys(_WORD_RANKS, _Walker.read_word),
    **dict.fromkeys(("param", "limitsource", "reasons"), _Walker.read_qualified),
    **dict.fromkeys(("finishreason", "stopreason", "blockreason"), _Walker.read_ending),
    **dict.fromkeys(("statuscode", "rawstatuscode", "httpstatus", "errorstatus"), _Walker.read_status),
    **dict.fromkeys(("retryafter", "retryafterms", "retryafterseconds"), _Walker.read_wait),
    "headers": _Walker.read_inner_headers,
    "quotaid": _Walker.read_quota,
    "retrydelay": _Walker.read_delay,
    "xgroq": _Walker.read_groq_error,
}
_NESTED = frozenset({
    "error", "errors", "detail", "details", "metadata", "raw", "response", "cause", "innererror", "body", "violations",
    "choices", "candidates", "delta", "promptfeedback", "incompletedetails", "xgroq",
    "message", "msg", "errormessage", "finalerror", "errordescription",
})  # fmt: skip
