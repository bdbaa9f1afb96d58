"""One taxonomy for every failure: classified by structure, redacted, bounded."""

from compass.failures.bounds import bound_prose, public_prose, readable
from compass.failures.categories import Category, Verdict
from compass.failures.classifier import classify
from compass.failures.exceptions import classify_exception
from compass.failures.failure import failure_from
from compass.failures.log_redaction import redact_event, redact_value
from compass.failures.problem import Cause, Observed, PublicProblemError, observe
from compass.failures.receipts import digest, merge_receipts, receipt_from
from compass.failures.redaction import redact
from compass.failures.tracing import record_cause

__all__ = [
    "Category",
    "Cause",
    "Observed",
    "PublicProblemError",
    "Verdict",
    "bound_prose",
    "classify",
    "classify_exception",
    "digest",
    "failure_from",
    "merge_receipts",
    "observe",
    "public_prose",
    "readable",
    "receipt_from",
    "record_cause",
    "redact",
    "redact_event",
    "redact_value",
]
