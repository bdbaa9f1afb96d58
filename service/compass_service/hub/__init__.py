"""Subscriptions: catch-up from the log, fan-out through lanes, and pacing."""
