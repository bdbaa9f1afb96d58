"""What a rule of the classifier is, and how its tables are written down."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from compass.failures.categories import Category
from compass.failures.evidence import squash


@dataclass(frozen=True, slots=True)
class Rule:
    """A category, and whether the same request may succeed when sent again."""

    category: Category
    retryable: bool


@dataclass(frozen=True, slots=True)
class Wording:
    """A pattern over an error message, and the statuses whose meaning it may refine; None is no status at all."""

    rule: Rule
    pattern: re.Pattern[str]
    refines: frozenset[int | None]


@dataclass(frozen=True, slots=True)
class Rules:
    """One table: generic, or of one dialect."""

    words: Mapping[str, Rule] = field(default_factory=dict)
    """By machine word, by `key:word`, or by either with a status before it: `413 ratelimitexceeded`."""
    statuses: Mapping[int, Rule] = field(default_factory=dict)
    wordings: tuple[Wording, ...] = ()
    hopeless: re.Pattern[str] | None = None
    """A message that says that sending the same again cannot help, whatever the category."""
    in_band: Rule | None = None
    """An error without a code after HTTP 200."""


def rule(category: Category, *, retryable: bool | None = None) -> Rule:
    """Make a rule; without a verdict on retry the category's own holds."""
    return Rule(category, category.retryable if retryable is None else retryable)


def word_table(table: Mapping[Rule, str]) -> dict[str, Rule]:
    """Turn `rule: words` into a lookup by word."""
    return {_key(word): meaning for meaning, words in table.items() for word in words.split()}


def _key(word: str) -> str:
    status, plus, rest = word.partition("+")
    return f"{status} {squash(rest)}" if plus else squash(word)


def wording(meaning: Rule, *patterns: str, refines: Iterable[int | None] = (None,)) -> Wording:
    """Make a wording from alternatives; messages are compared in lower case."""
    return Wording(meaning, re.compile("|".join(patterns)), frozenset(refines))


AUTH = rule(Category.AUTH_INVALID)
DENIED = rule(Category.PERMISSION_DENIED)
QUOTA = rule(Category.QUOTA_EXHAUSTED)
RATE = rule(Category.RATE_LIMITED)
OVERLOADED = rule(Category.OVERLOADED)
SERVER = rule(Category.SERVER_ERROR)
TIMEOUT = rule(Category.TIMEOUT)
NETWORK = rule(Category.NETWORK)
MODEL = rule(Category.MODEL_NOT_FOUND)
CONTEXT = rule(Category.CONTEXT_TOO_LONG)
FILTERED = rule(Category.CONTENT_FILTERED)
INVALID = rule(Category.INVALID_REQUEST)
MALFORMED = rule(Category.MALFORMED_RESPONSE)
CUT_OFF = rule(Category.MALFORMED_RESPONSE, retryable=True)
UNKNOWN = rule(Category.UNKNOWN)
