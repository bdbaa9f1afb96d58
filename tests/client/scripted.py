"""A real grpc.aio server on a loopback port that plays exactly what a test scripts."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from compass.v1 import agent_gateway_pb2 as agent_pb
from compass.v1 import agent_gateway_pb2_grpc as agent_grpc
from compass.v1 import compass_pb2 as pb
from compass.v1 import compass_pb2_grpc as pb_grpc


class Tails(pb_grpc.CompassServiceServicer):
    """Plays one script per TailSession call, in order; the last one again when more calls come."""

    def __init__(self, *scripts):
        self.scripts = list(scripts)
        self.requests = []
        self.peers = []
        self.num_open = 0
        self.is_over = asyncio.Event()
        """Set once a call is over, however."""

    async def TailSession(self, request, context):  # noqa: N802 - the rpc's name
        script = self.scripts[min(len(self.requests), len(self.scripts) - 1)]
        self.requests.append(request)
        self.peers.append(context.peer())
        context.add_done_callback(lambda _: self.is_over.set())
        self.num_open += 1
        try:
            await script(context)
        finally:
            self.num_open -= 1


class Pushes(agent_grpc.AgentGatewayServicer):
    """Plays one script per PushEvents call, in order; the last one again when more calls come."""

    def __init__(self, *scripts):
        self.scripts = list(scripts)
        self.num_calls = 0
        self.num_open = 0
        self.hellos = []
        self.log = PushLog()

    async def PushEvents(self, request_iterator, context):  # noqa: N802 - the rpc's name
        script = self.scripts[min(self.num_calls, len(self.scripts) - 1)]
        self.num_calls += 1
        hello = await context.read()
        self.hellos.append(hello.hello)
        self.num_open += 1
        try:
            await script(Stream(context, self.log))
        finally:
            self.num_open -= 1


class PushLog:
    """What a producer's events become when each is stored once: the acked seq, the events, the drops in their place."""

    def __init__(self):
        self.acked_seq = 0
        self.entries = []
        self.closed = False

    @property
    def events(self):
        return [entry for entry in self.entries if isinstance(entry, str)]

    def store(self, batch):
        new = [event.json for seq, event in enumerate(batch.events, batch.first_seq) if seq > self.acked_seq]
        assert batch.first_seq <= self.acked_seq + 1, "sequence jump"
        if batch.dropped and len(new) == len(batch.events):
            self.entries.append(batch.dropped)
        self.entries.extend(new)
        self.acked_seq += len(new)


class Stream:
    """One push stream as a script sees it."""

    def __init__(self, context, log):
        self.context = context
        self.log = log

    async def read(self):
        return await self.context.read()

    async def ack(self, *, window_events=8192, window_bytes=8 << 20, closed=False):
        await self.context.write(
            agent_pb.PushEventsResponse(
                acked_seq=self.log.acked_seq,
                head_seq=len(self.log.entries),
                window_events=window_events,
                window_bytes=window_bytes,
                closed=closed,
            ),
        )

    async def serve(self, **window):
        """Store and acknowledge until bye or the half-close."""
        await self.ack(**window)
        while (request := await self.read()) is not grpc.aio.EOF:
            if request.WhichOneof("item") == "bye":
                self.log.closed = True
                await self.ack(closed=True)
                return
            self.log.store(request.batch)
            await self.ack(**window)


async def serve(stream):
    """Behave: store, acknowledge, close."""
    await stream.serve()


def respond(*responses):
    """Script a tail: send these, then end with status OK."""

    async def script(context):
        for response in responses:
            await context.write(response)

    return script


def respond_then(action, *responses):
    """Script a tail: send these, then do something else."""

    async def script(context):
        for response in responses:
            await context.write(response)
        await action(context)

    return script


def fail(code, reason="", *, domain="compass", retry_after_s=None, violations=(), **facts):
    """Script the refusal that a server of ours gives."""
    details = []
    if reason:
        metadata = {name: str(value) for name, value in facts.items()}
        details.append(error_details_pb2.ErrorInfo(reason=reason, domain=domain, metadata=metadata))
    if retry_after_s is not None:
        delay = duration_pb2.Duration()
        delay.FromMilliseconds(int(retry_after_s * 1000))
        details.append(error_details_pb2.RetryInfo(retry_delay=delay))
    if violations:
        fields = [error_details_pb2.BadRequest.FieldViolation(field=name, description=why) for name, why in violations]
        details.append(error_details_pb2.BadRequest(field_violations=fields))
    packed = [any_pb2.Any() for _ in details]
    for target, detail in zip(packed, details, strict=True):
        target.Pack(detail)
    status = status_pb2.Status(code=getattr(code_pb2, code), message="public text", details=packed)

    async def script(target):
        context = getattr(target, "context", target)
        await context.abort_with_status(rpc_status.to_status(status))

    return script


async def hang(context):
    """Say nothing more for as long as the call lives."""
    await asyncio.Event().wait()


def frame(seq, text=""):
    found = pb.AgentSessionFrame(session_id="s", seq=seq)
    found.event.assistant_text.text = text or f"text {seq}"
    return found


def frames(*seqs, resume_seq=None, head_seq=None):
    top = max(seqs, default=0)
    return pb.TailSessionResponse(
        frames=[frame(seq) for seq in seqs],
        resume_seq=top if resume_seq is None else resume_seq,
        head_seq=top if head_seq is None else head_seq,
    )


def heartbeat(seq):
    return pb.TailSessionResponse(resume_seq=seq, head_seq=seq)


def end(seq, reason=pb.SESSION_END_REASON_STOPPED):
    return pb.TailSessionResponse(resume_seq=seq, head_seq=seq, end=pb.SessionEnd(reason=reason))


@asynccontextmanager
async def running(*servicers, address="127.0.0.1:0", options=()) -> AsyncIterator[str]:
    """Serve these servicers; give the address."""
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0), *options])
    for servicer in servicers:
        if isinstance(servicer, Pushes):
            agent_grpc.add_AgentGatewayServicer_to_server(servicer, server)
        else:
            pb_grpc.add_CompassServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port(address)
    await server.start()
    try:
        yield address if address.startswith("unix:") else f"127.0.0.1:{port}"
    finally:
        await server.stop(0)


async def until(claim: Callable[[], bool], *, within_s: float = 5.0) -> None:
    """Wait for a condition with a deadline."""
    async with asyncio.timeout(within_s):
        while not claim():  # noqa: ASYNC110 - a claim about anything has no event
            await asyncio.sleep(0.001)
