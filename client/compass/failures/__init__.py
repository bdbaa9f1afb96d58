"""One taxonomy for every failure: classified by structure, redacted, bounded."""

from compass.failures.bounds import bound_prose, public_prose, readable
from compass.failures.categories import Category, Verdict
from compass.failures.classifier import classify
from compass.failures.exceptions import classify_exception
from compass.failures.redaction import redact, redact_event

__all__ = [
    "Category",
    "Verdict",
    "bound_prose",
    "classify",
    "classify_exception",
    "public_prose",
    "readable",
    "redact",
    "redact_event",
]
