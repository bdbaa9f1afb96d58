"""The command line: `compass-trace`. What it prints is for a person, or with --json for a program."""

from compass.cli.main import main

__all__ = ["main"]
