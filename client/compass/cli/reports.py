"""`compass-trace sessions`, `show`, `close` and `info`."""

from collections.abc import Iterable

import click
from google.protobuf.json_format import MessageToDict

import compass
from compass.cli import facts
from compass.cli.json_lines import print_json
from compass.cli.printable import to_json
from compass.cli.queue import queue_lines
from compass.cli.session_command import json_option, run, session_argument
from compass.v1 import compass_pb2 as pb


@click.command()
@json_option
@click.pass_context
def sessions(context: click.Context, *, as_json: bool) -> None:
    """List the sessions, newest change first."""

    async def action(client: compass.Client) -> None:
        found = [info async for info in client.sessions()]
        if as_json:
            print_json(*found)
        else:
            _print_lines(facts.columns([facts.SESSION_COLUMNS, *map(facts.session_row, found)]))

    run(context, action)


@click.command(short_help="Report one session.")
@session_argument
@json_option
@click.pass_context
def show(context: click.Context, session: str, *, as_json: bool) -> None:
    """Report one session: its state, what its agent is doing, counters and totals, and the open prompts."""

    async def action(client: compass.Client) -> None:
        report = await client.get_session(session)
        open_prompts = await client.prompts(session)
        if as_json:
            listed = {"prompts": [MessageToDict(each) for each in open_prompts]} if open_prompts else {}
            click.echo(to_json({**MessageToDict(report), **listed}))
            return
        _print_session(report, as_json=False)
        if open_prompts:
            _print_lines(["", "open prompts:", *(f"  {line}" for line in queue_lines(open_prompts))])

    run(context, action)


@click.command()
@session_argument
@json_option
@click.pass_context
def close(context: click.Context, session: str, *, as_json: bool) -> None:
    """Stop a session for good. One that is stopped already stays so."""

    async def action(client: compass.Client) -> None:
        _print_session(await client.close_session(session), as_json=as_json)

    run(context, action)


@click.command()
@json_option
@click.pass_context
def info(context: click.Context, *, as_json: bool) -> None:
    """Report the server: version, log and limits."""

    async def action(client: compass.Client) -> None:
        report = await client.server_info()
        if as_json:
            print_json(report)
        else:
            _print_lines(facts.aligned(facts.server_facts(client.target, report)))

    run(context, action)


def _print_session(report: pb.SessionInfo, *, as_json: bool) -> None:
    if as_json:
        print_json(report)
    else:
        _print_lines(facts.aligned(facts.session_facts(report)))


def _print_lines(lines: Iterable[str]) -> None:
    click.echo("\n".join(lines))
