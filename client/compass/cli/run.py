"""`compass-trace run`."""

import asyncio
import importlib
import logging
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import click

import compass
from compass.bridge import DIALECTS, Bridge, BridgeOptions, Dialect, Ended, SpoolBusyError, default_spool
from compass.bridge.protocol import Protocol
from compass.cli.exits import CommandError, Exit
from compass.cli.printable import to_json
from compass.cli.session_command import json_option, run, session_argument


@click.command(name="run", short_help="Run an agent for a session.")
@session_argument
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@json_option
@click.option(
    "--protocol",
    type=click.Choice([protocol.value for protocol in Protocol]),
    default=Protocol.AUTO.value,
    show_default=True,
    help="How the agent is spoken to: rpc takes prompts and aborts, json only reports.",
)
@click.option("--dialect", metavar="NAME", help="pi, omp or MODULE:CLASS; by the command's name otherwise.")
@click.option(
    "--spool",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where what is not acknowledged is kept; in the XDG state directory by default.",
)
@click.option("--title", default="", metavar="TEXT", help="Title of the session.")
@click.option("--take-over", is_flag=True, help="Detach another producer instead of being refused.")
@click.pass_context
def run_agent(
    context: click.Context,
    session: str,
    command: tuple[str, ...],
    *,
    as_json: bool,
    protocol: str,
    dialect: str | None,
    spool: Path | None,
    title: str,
    take_over: bool,
) -> None:
    """Run COMMAND, an agent that speaks JSON lines, and be everything between it and the service.

    What it does goes into the session; prompts and aborts of the session go to it. What the service has not
    acknowledged is kept on disk and delivered later. Ends when the agent does: 0 when it ended by itself without a
    failure, or at SIGTERM or SIGINT, which stop the session; 13 when it failed, which leaves the session open.

    \b
    compass-trace run my-session -- pi --mode rpc
    """  # noqa: D301 - \b keeps click from filling the example
    options = BridgeOptions(
        protocol=Protocol(protocol),
        dialect=None if dialect is None else _dialect(dialect),
        spool=spool or default_spool(),
        title=title,
        take_over=take_over,
    )

    async def action(client: compass.Client) -> Exit:
        if shutil.which(command[0]) is None:
            raise CommandError(f"there is no program {command[0]}", Exit.USAGE)
        await client.server_info()  # so that a server that is not there is told at once
        logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(message)s")
        async with compass.connect(client.target, retry_for_s=None) as patient:
            ended = await _run(Bridge(patient, session, command, options))
        return _report(session, ended, as_json=as_json)

    run(context, action)


async def _run(bridge: Bridge) -> Ended:
    loop = asyncio.get_running_loop()
    running = asyncio.create_task(bridge.run())

    def stop() -> None:
        bridge.stop()
        if not bridge.has_agent:
            running.cancel()
        for number in (signal.SIGINT, signal.SIGTERM):  # a second one ends everything at once
            loop.remove_signal_handler(number)
            loop.add_signal_handler(number, running.cancel)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    try:
        return await running
    except SpoolBusyError as error:
        raise CommandError(str(error), Exit.REFUSED) from error
    except OSError as error:
        raise CommandError(str(error), Exit.FAILED) from error
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _dialect(name: str) -> Callable[[], Dialect]:
    if name in DIALECTS:
        return DIALECTS[name]
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError):
        raise click.BadParameter(f"{name!r} is neither {', '.join(DIALECTS)} nor MODULE:CLASS") from None
    if not callable(found):
        raise click.BadParameter(f"{name!r} is no class")
    made: Callable[[], Dialect] = found
    return made


def _report(session: str, ended: Ended, *, as_json: bool) -> Exit:
    failed = not (ended.was_asked or ended.exit.is_clean)
    if as_json:
        how = {"signal": ended.exit.signal} if ended.exit.code is None else {"code": ended.exit.code}
        left = {} if ended.was_told else {"undelivered": ended.num_undelivered}
        click.echo(to_json({"sessionId": session, "exit": how, "stopped": ended.was_told and not failed, **left}))
    elif ended.was_told:
        state = "stays open, errored" if failed else "is stopped"
        click.echo(f"the agent has ended with {ended.exit}; session {session} {state}", err=True)
    if not ended.was_told:
        raise CommandError(
            f"the agent has ended with {ended.exit}, and the service could not be told; "
            f"{ended.num_undelivered:,} events are kept for the next run",
            Exit.UNAVAILABLE,
        )
    return Exit.AGENT_FAILED if failed else Exit.DONE
