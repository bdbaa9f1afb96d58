"""`compass-trace push`."""

import sys
import time
from typing import Any, BinaryIO

import click

import compass
from compass.cli.exits import CommandError, Exit
from compass.cli.lines import lines
from compass.cli.printable import to_json
from compass.cli.session_command import json_option, run, session_argument


class _Input(click.File):
    """A file to read, or standard input, which may be closed."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Open what is named."""
        if value == "-" and sys.stdin is None:
            self.fail("standard input is closed", param, ctx)
        return super().convert(value, param, ctx)


@click.command(short_help="Push inner events from a file or standard input.")
@session_argument
@click.argument("file", default="-", type=_Input("rb"))
@json_option
@click.option("--no-close", is_flag=True, help="Leave the session open instead of stopping it at the end.")
@click.pass_context
def push(context: click.Context, session: str, file: BinaryIO, *, as_json: bool, no_close: bool) -> None:
    r"""Push inner events from FILE, or from standard input, one JSON object a line.

    A line ends at \n and nowhere else, and may have any size; blank lines are skipped. Waits for the server, and drops
    nothing. Each event is stored as it comes, so that an agent's output can be piped in while the agent runs.

    At the end the session is stopped, unless --no-close. Exits 0 once every event is acknowledged, 7 at a line that is
    no JSON object: what comes before it is stored, nothing after it, and the session stays open.
    """

    async def action(client: compass.Client) -> None:
        stats = await _push(client, session, file.fileno(), closes=not no_close)
        _report(session, stats, closed=not no_close, as_json=as_json)

    run(context, action)


async def _push(client: compass.Client, session: str, descriptor: int, *, closes: bool) -> compass.PublisherStats:
    await client.server_info()  # so that a server that is not there is told at once
    publisher = client.publish(session, wait=True, close_on_exit=closes)
    with _Progress(publisher) as progress:
        async with publisher:
            async for number, line in lines(descriptor):
                try:
                    await publisher.push(line)
                except compass.InvalidEventError as error:
                    await publisher.drain()
                    raise _bad_line(number, session, publisher.stats) from error
                progress.show()
    return publisher.stats


def _bad_line(number: int, session: str, stats: compass.PublisherStats) -> CommandError:
    return CommandError(
        f"line {number} is not one JSON object; the {stats.acked_seq:,} events before it are stored, nothing after it; "
        f"session {session} stays open",
        Exit.BAD_INPUT,
    )


def _report(session: str, stats: compass.PublisherStats, *, closed: bool, as_json: bool) -> None:
    if as_json:
        counts = {"pushed": stats.pushed, "acknowledged": stats.acked_seq, "dropped": stats.dropped}
        click.echo(to_json({"sessionId": session, **counts, "closed": closed}))
        return
    end = "is stopped" if closed else "stays open"
    dropped = f", {stats.dropped:,} too large and dropped" if stats.dropped else ""
    click.echo(f"{stats.acked_seq:,} events are stored{dropped}; session {session} {end}", err=True)


class _Progress:
    """One line on standard error that is written over while it is a terminal, nothing elsewhere."""

    _EVERY_S = 0.25

    def __init__(self, publisher: compass.Publisher) -> None:
        self._publisher = publisher
        self._is_shown = sys.stderr.isatty()
        self._next_s = time.monotonic() + self._EVERY_S

    def __enter__(self) -> "_Progress":
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_shown:
            self._write("")

    def show(self) -> None:
        """Say how far it is, a few times a second."""
        if self._is_shown and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + self._EVERY_S
            stats = self._publisher.stats
            self._write(f"{stats.pushed:,} events read, {stats.acked_seq:,} stored")

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()
