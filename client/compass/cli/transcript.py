"""`compass-trace transcript`."""

from collections.abc import Iterator

import click

import compass
from compass.cli import blocks
from compass.cli.blocks import Line
from compass.cli.json_lines import print_json
from compass.cli.printable import printable
from compass.cli.screen import Screen
from compass.cli.session_command import json_option, run, session_argument
from compass.v1 import compass_pb2 as pb


@click.command(short_help="Show the messages of a session.")
@session_argument
@json_option
@click.pass_context
def transcript(context: click.Context, session: str, *, as_json: bool) -> None:
    """Show the messages of a session, oldest first, each failure and abort beside the message that it cut off.

    A message that is marked incomplete is not whole: never give it to a model as if it were.
    """

    async def action(client: compass.Client) -> None:
        if as_json:
            async for row in client.transcript(session):
                print_json(row)
        else:
            await _show(client, session)

    run(context, action)


async def _show(client: compass.Client, session: str) -> None:
    screen = Screen()
    message_id = ""
    async for row in client.transcript(session):
        screen.print(*_row_lines(row, continues=bool(row.message_id) and row.message_id == message_id))
        message_id = row.message_id


def _row_lines(row: pb.TranscriptMessage, *, continues: bool) -> Iterator[Line]:
    label, style = _LABELS.get(row.role, ("before the first message", "bold"))
    if not continues:
        yield Line(f"── {label} ──", style)
    if row.thinking:
        yield Line(printable(row.thinking), "dim italic")
    if row.text:
        yield Line(printable(row.text))
    for call in row.tool_calls:
        yield blocks.tool_line(call.title, call.status)
        yield from blocks.output_lines(call.output)
        yield from blocks.diff_lines(call.diffs)
    if row.incomplete:
        yield blocks.cut_off_line(row.stop_reason)
    for error in row.errors:
        yield from blocks.error_lines(error)


_LABELS = {
    pb.TRANSCRIPT_ROLE_USER: ("user", "bold cyan"),
    pb.TRANSCRIPT_ROLE_ASSISTANT: ("agent", "bold green"),
}
