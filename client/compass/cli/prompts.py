"""`compass-trace prompt`, `prompts`, `cancel` and `abort`."""

import sys

import click

import compass
from compass.cli.json_lines import print_json
from compass.cli.printable import to_json
from compass.cli.queue import queue_lines
from compass.cli.session_command import json_option, run, session_argument


@click.command(short_help="Send a prompt to a session's agent.")
@session_argument
@click.argument("text")
@json_option
@click.option("--steer", is_flag=True, help="Hand it to a working agent at once instead of when it rests.")
@click.option("--author", default="", metavar="NAME", help="Who sends it.")
@click.option("--request-id", metavar="ID", help="The same id with the same text is the same prompt.")
@click.pass_context
def prompt(
    context: click.Context,
    session: str,
    text: str,
    *,
    as_json: bool,
    steer: bool,
    author: str,
    request_id: str | None,
) -> None:
    """Put TEXT, or standard input for -, into the session's inbox and print the id of the prompt.

    Exits 0 once the prompt is durable. The agent is handed it when it rests.
    """

    async def action(client: compass.Client) -> None:
        said = sys.stdin.read() if text == "-" else text
        answer = await client.submit_prompt(session, said, client_request_id=request_id, author=author, steer=steer)
        if as_json:
            print_json(answer)
        else:
            click.echo(answer.prompt_id)

    run(context, action)


@click.command(short_help="List the open prompts of a session.")
@session_argument
@json_option
@click.pass_context
def prompts(context: click.Context, session: str, *, as_json: bool) -> None:
    """List the prompts that are not recorded and not cancelled, next to be handed over first: id, state, text."""

    async def action(client: compass.Client) -> None:
        found = await client.prompts(session)
        if as_json:
            print_json(*found)
        elif found:
            click.echo("\n".join(queue_lines(found)))

    run(context, action)


@click.command(short_help="Cancel a prompt that waits.")
@session_argument
@click.argument("prompt_id")
@json_option
@click.pass_context
def cancel(context: click.Context, session: str, prompt_id: str, *, as_json: bool) -> None:
    """Take a prompt out of the queue. One that the agent was handed is past that, and exits 6."""

    async def action(client: compass.Client) -> None:
        answer = await client.cancel_prompt(session, prompt_id)
        if as_json:
            print_json(answer)
        else:
            click.echo(f"prompt {prompt_id} is cancelled", err=True)

    run(context, action)


@click.command(short_help="Abort the running turn of a session.")
@session_argument
@json_option
@click.pass_context
def abort(context: click.Context, session: str, *, as_json: bool) -> None:
    """Ask the agent to abort the turn that runs. Asked of a resting agent it means nothing."""

    async def action(client: compass.Client) -> None:
        await client.abort(session)
        if as_json:
            click.echo(to_json({"sessionId": session}))
        else:
            click.echo(f"the agent of session {session} is asked to abort", err=True)

    run(context, action)
