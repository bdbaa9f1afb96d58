"""Decides what kind of failure it is, from structure before wording.

A machine word decides first, then what the provider means by the status, then what everyone means by it, and only then
the wording of the message. A few wordings that providers document refine a status that says too little; no wording
overrules a machine word. What no rule knows stays UNKNOWN.
"""

from compass.failures.categories import Verdict
from compass.failures.dialects import dialect_rules
from compass.failures.evidence import Evidence, is_success
from compass.failures.generic import COARSE, ENDINGS, GENERIC
from compass.failures.retry_after import has_retry_after, retry_after_ms
from compass.failures.rules import MALFORMED, RATE, UNKNOWN, Rule, Rules
from compass.failures.walker import gather


def classify(
    *,
    provider: object = None,
    status: object = None,
    headers: object = None,
    body: object = None,
    message: object = None,
) -> Verdict:
    """Classify a failure from whatever is known of it.

    `provider` is a dialect's name, an unknown one is generic. `body` is decoded JSON, text or bytes, with or without
    HTTP around it; `headers` a mapping or pairs; `message` what an agent or an SDK reports, bodies inside it included.
    The verdict on retry holds while nothing of the answer was shown. Never raises for anything that a wire can carry.
    """
    evidence = gather(status=status, headers=headers, body=body, message=message)
    return _verdict(evidence, dialect_rules(provider), is_success=is_success(status))


def _verdict(evidence: Evidence, rules: Rules, *, is_success: bool) -> Verdict:
    by_word = _by_word(evidence, rules)
    rule = by_word or _by_status(evidence, rules) or _by_what_is_left(evidence, rules, is_success=is_success)
    wait = retry_after_ms(evidence, is_rate_limit=rule.category is RATE.category)
    retryable = _told_to_retry(evidence, rule, overrules=by_word is None) and not _is_hopeless(evidence, rules)
    return Verdict(rule.category, retryable, wait)


def _told_to_retry(evidence: Evidence, rule: Rule, *, overrules: bool) -> bool:
    """Heed the provider's own header; what a machine word forbids it does not rescue."""
    told = evidence.headers.get("x-should-retry", "").strip().casefold()
    if told == "false":
        return False
    return rule.retryable or (told == "true" and overrules)


def _is_hopeless(evidence: Evidence, rules: Rules) -> bool:
    patterns = [table.hopeless for table in (rules, GENERIC) if table.hopeless]
    return any(pattern.search(text) for pattern in patterns for text in evidence.texts)


def _by_word(evidence: Evidence, rules: Rules) -> Rule | None:
    words = ["header:retryafter", *evidence.words] if has_retry_after(evidence) else evidence.words
    status = _status(evidence)
    keys = (key for word in words for key in (f"{status} {word}", word))
    return next((table.words[key] for key in keys for table in (rules, GENERIC) if key in table.words), None)


def _by_status(evidence: Evidence, rules: Rules) -> Rule | None:
    status = _status(evidence)
    if status is None:
        return None
    return _by_wording(evidence, rules, status) or rules.statuses.get(status) or GENERIC.statuses.get(status)


def _status(evidence: Evidence) -> int | None:
    """Return the status that counts: HTTP's, else one that the body names, the message tells, a word stands for."""
    coarse = (COARSE[word] for word in evidence.words if word in COARSE)
    return evidence.status or evidence.named_status or evidence.told_status or next(coarse, None)


def _by_wording(evidence: Evidence, rules: Rules, status: int | None) -> Rule | None:
    return next(
        (
            wording.rule
            for table in (rules, GENERIC)
            for wording in table.wordings
            if status in wording.refines and any(wording.pattern.search(text) for text in evidence.texts)
        ),
        None,
    )


def _by_what_is_left(evidence: Evidence, rules: Rules, *, is_success: bool) -> Rule:
    ending = next((ENDINGS[word] for word in evidence.endings if word in ENDINGS), None)
    wording = ending or _by_wording(evidence, rules, None)
    if wording is not None:
        return wording
    if evidence.is_html and is_success:
        return MALFORMED
    is_in_band = evidence.has_error and evidence.status is None
    return (is_in_band and rules.in_band) or UNKNOWN
