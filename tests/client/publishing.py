"""What the tests of publishing share: events, a client beside a scripted server, and a server that holds back."""

import asyncio
import contextlib

import compass
from client.scripted import Pushes, running


def event(number):
    return f'{{"type":"turn_start","n":{number}}}'


def delta(number):
    return f'{{"type":"message_update","assistantMessageEvent":{{"type":"text_delta","delta":"{number}"}}}}'


@contextlib.asynccontextmanager
async def client_of(*scripts, server_options=(), **options):
    """Serve these scripts; give a client and what the server saw."""
    servicer = Pushes(*scripts)
    async with running(servicer, options=server_options) as address, compass.connect(address, **options) as client:
        yield client, servicer


async def push_all(publisher, *events, then="flush"):
    """Push these in a block of their own."""
    async with publisher:
        for each in events:
            await publisher.push(each)
        await getattr(publisher, then)()


class Gate:
    """A server that stores nothing until it is opened."""

    def __init__(self, **window):
        self.opened = asyncio.Event()
        self.window = window

    async def __call__(self, stream):
        await stream.ack(**self.window)
        await self.opened.wait()
        await stream.serve(**self.window)


async def push_many(publisher, make, num_events):
    for number in range(num_events):
        await publisher.push(make(number))
