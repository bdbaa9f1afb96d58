"""One taxonomy for every failure: classified by structure, redacted, bounded."""

from compass.failures.categories import Category, Verdict

__all__ = ["Category", "Verdict"]
