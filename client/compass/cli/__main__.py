"""`python -m compass.cli` is `compass-trace`."""

from compass.cli.main import main

main(prog_name="compass-trace")
