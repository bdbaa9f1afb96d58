"""The command `compass-trace`."""

import click

from compass.cli.prompts import abort, cancel, prompt, prompts
from compass.cli.push import push
from compass.cli.reports import close, info, sessions, show
from compass.cli.run import run_agent
from compass.cli.tail import tail
from compass.cli.transcript import transcript
from compass.cli.wait import wait


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Exit codes:
  0    what was asked is done
  1    it failed for a reason that has no code of its own
  2    the command line, or a value on it, is wrong
  3    the session, or the prompt, does not exist
  4    the server cannot be reached, is shutting down, or has no room, or the inbox is full
  5    tail: it was cut and could not be resumed
  6    the session is stopped, another producer holds it, or the prompt is past being cancelled
  7    push: a line is not one JSON object
  10   wait: the turn failed
  11   wait: the turn was aborted
  12   wait: the agent is gone
  13   run: the agent's process ended by itself with a failure
  124  wait: no outcome within --timeout
  130  Ctrl-C
  141  whoever read the output went away
""",
)
@click.option(
    "--server",
    envvar="COMPASS_SERVER",
    show_envvar=True,
    metavar="ADDRESS",
    help="HOST:PORT or unix:/PATH of the server; 127.0.0.1:7420 by default.",
)
@click.version_option(package_name="compass-trace", message="%(version)s")
@click.pass_context
def main(context: click.Context, server: str | None) -> None:
    """See what coding agents do: push a session, tail it live or later, and never miss how it ended."""
    context.obj = server


for command in (push, run_agent, tail, wait, prompt, prompts, cancel, abort, sessions, show, transcript, close, info):
    main.add_command(command)
