"""`compass-trace tail`."""

import click

import compass
from compass.cli.json_lines import JsonLines
from compass.cli.render import FrameRenderer
from compass.cli.screen import Screen
from compass.cli.session_command import json_option, run, session_argument

_MAX_SEQ = 2**64 - 1


@click.command(short_help="Show what happened in a session, and what happens.")
@session_argument
@json_option
@click.option("--since", type=click.IntRange(0, _MAX_SEQ), metavar="SEQ", help="Begin after this seq.")
@click.option("--last", type=click.IntRange(min=0), metavar="N", help="Begin N seqs before the head.")
@click.option("--live", is_flag=True, help="Begin with what happens from now.")
@click.option("--complete", is_flag=True, help="Get every frame, however slow the reader, instead of gaps.")
@click.option("--no-follow", is_flag=True, help="End at the head instead of following until the session is stopped.")
@click.option("--wait", is_flag=True, help="Wait for a session that is not there yet.")
@click.pass_context
def tail(
    context: click.Context,
    session: str,
    *,
    as_json: bool,
    since: int | None,
    last: int | None,
    live: bool,
    complete: bool,
    no_follow: bool,
    wait: bool,
) -> None:
    """Show a session: what happened, then what happens, until it is stopped.

    With --json each frame is one line of canonical protobuf JSON, as grpcurl prints it, gaps included. Without --since,
    --last and --live it begins with the oldest frame that is kept.

    Exits 0 after the session's end (with --no-follow: at its head), 5 when the tail was cut and could not be resumed.
    """
    if (since is not None) + (last is not None) + live > 1:
        raise click.UsageError("--since, --last and --live exclude each other.")

    async def action(client: compass.Client) -> None:
        if wait:
            await _until_there(client, session)
        else:
            await client.get_session(session)  # so that a refusal, or a server that is not there, is told at once
        reading = client.tail(
            session,
            since=since or 0,
            last=last,
            live=live,
            delivery="complete" if complete else "live",
            follow=not no_follow,
        )
        await _show(reading, session, as_json=as_json)

    run(context, action)


async def _until_there(client: compass.Client, session: str) -> None:
    try:
        await client.get_session(session)
    except compass.SessionNotFoundError:
        async for response in client.watch_sessions():
            if any(info.session_id == session for info in response.sessions):
                return


async def _show(reading: compass.Tail, session: str, *, as_json: bool) -> None:
    writer = JsonLines(session) if as_json else FrameRenderer(Screen())
    async with reading:
        try:
            async for items in reading.batches():
                writer.render(items)
        finally:
            writer.close()
