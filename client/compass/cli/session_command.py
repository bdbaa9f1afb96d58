"""What every command shares: the server to dial, and how errors and Ctrl-C end it."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn, TypeAlias

import click

import compass
from compass.cli.exits import CommandError, Exit, explained

Action: TypeAlias = Callable[[compass.Client], Awaitable[Exit | None]]

session_argument = click.argument("session")
json_option = click.option("--json", "as_json", is_flag=True, help="Write JSON: one object a line.")


def run(context: click.Context, action: Action) -> NoReturn:
    """Run a command's action with a client, and exit."""
    try:
        exit_code = asyncio.run(_with_client(context.obj, action)) or Exit.DONE
        sys.stdout.flush()
    except compass.CompassError as error:
        _say(explained(error))
        exit_code = explained(error).exit_code
    except CommandError as error:
        _say(error)
        exit_code = error.exit_code
    except BrokenPipeError:
        exit_code = Exit.OUTPUT_CLOSED
        # What is buffered has nowhere to go; without this the interpreter would complain about it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        exit_code = Exit.CANCELLED
    sys.exit(exit_code)


async def _with_client(server: str | None, action: Action) -> Exit | None:
    try:
        client = compass.connect(server)
    except ValueError as error:
        raise CommandError(f"--server: {error}", Exit.USAGE) from error
    async with client:
        return await action(client)


def _say(problem: Any) -> None:
    click.echo(f"compass-trace: {problem}", err=True)
