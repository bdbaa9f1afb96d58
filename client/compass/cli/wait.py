"""`compass-trace wait`."""

import asyncio
import contextlib

import click
from google.protobuf.json_format import MessageToDict

import compass
from compass.cli.exits import CommandError, Exit
from compass.cli.outcome import Outcome, OutcomeReader
from compass.cli.printable import one_line, to_json
from compass.cli.session_command import json_option, run, session_argument
from compass.v1 import compass_pb2 as pb

SETTLE_S = 1.0
"""How long an outcome must last: an agent that tries a failed call again says so just after the failure."""

_EXITS = {
    Outcome.DONE: Exit.DONE,
    Outcome.FAILED: Exit.TURN_FAILED,
    Outcome.ABORTED: Exit.TURN_ABORTED,
    Outcome.LOST: Exit.AGENT_LOST,
}


@click.command(short_help="Wait for the outcome of a turn; the exit code tells it.")
@session_argument
@json_option
@click.option("--timeout", "timeout_s", type=click.FloatRange(min=0), metavar="SECONDS", help="Give up after so long.")
@click.pass_context
def wait(context: click.Context, session: str, *, as_json: bool, timeout_s: float | None) -> None:
    """Wait until the session's turn has an outcome, say it, and exit with its code.

    \b
    0    done: the last turn ended normally, or the session is stopped
    10   failed: the turn failed, and no retry took that back
    11   aborted: the turn was aborted, or the session was closed in the middle of it
    12   lost: the agent is gone
    124  no outcome within --timeout

    A session that rests already is told at once by its last turn.
    """  # noqa: D301 - \b keeps click from filling the table

    async def action(client: compass.Client) -> Exit:
        try:
            async with asyncio.timeout(timeout_s):
                reader = await outcome_of(client, session)
        except TimeoutError:
            raise CommandError(f"session {session} has no outcome after {timeout_s:g} s", Exit.TIMED_OUT) from None
        _report(session, reader, as_json=as_json)
        return _EXITS[reader.outcome or Outcome.DONE]

    run(context, action)


async def outcome_of(client: compass.Client, session: str) -> OutcomeReader:
    """Read what happened up to the head, then on until there is an outcome that lasts."""
    reader = OutcomeReader()
    await client.get_session(session)
    async with client.tail(session, follow=False) as history:
        async for item in history:
            reader.take(item)
    async with client.tail(session, since=history.resume_seq) as live:
        with contextlib.suppress(TimeoutError, StopAsyncIteration):
            while not reader.is_stopped:
                async with asyncio.timeout(None if reader.outcome is None else SETTLE_S):
                    reader.take(await anext(live))
    return reader


def _report(session: str, reader: OutcomeReader, *, as_json: bool) -> None:
    outcome = (reader.outcome or Outcome.DONE).value
    if as_json:
        error = {} if reader.error is None else {"error": MessageToDict(reader.error)}
        state = pb.AgentSessionState.Name(reader.state)
        click.echo(to_json({"sessionId": session, "outcome": outcome, "state": state, **error}))
    else:
        said = f": {one_line(reader.error.message)}" if reader.error is not None and reader.error.message else ""
        click.echo(f"{outcome}{said}")
