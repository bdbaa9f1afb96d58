"""Wiring, lifecycle, configuration and observability."""
