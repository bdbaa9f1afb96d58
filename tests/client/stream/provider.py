"""A provider on loopback that writes exactly the bytes it is told to, packet by packet, and breaks as it is told."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Reply:
    """What a provider does with one request: packets of raw bytes, response head included, and how it ends."""

    packets: tuple[bytes, ...]
    end: str = "close"
    """`close`, `reset` (TCP RST), or `hang` (says nothing more and keeps the connection)."""
    pause_s: float = 0.0
    """Between two packets."""


@dataclass
class Provider:
    """One listening server. A url stands for the replies to the requests that it gets, the last one for all further."""

    port: int = 0
    requests: list[bytes] = field(default_factory=list)
    """Heads and bodies, as they came."""
    was_left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client has let go of a connection on which a reply hung."""
    _replies: dict[str, list[Reply]] = field(default_factory=dict)

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def url(self, *replies: Reply, path: str = "") -> str:
        path = path or f"/{len(self._replies)}"
        self._replies[path] = list(replies)
        return f"{self.base}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next((line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), b":0")
            body = await reader.readexactly(int(length.split(b":")[1]))
            self.requests.append(head + body)
            replies = self._replies[head.split()[1].decode().partition("?")[0]]
            reply = replies.pop(0) if len(replies) > 1 else replies[0]
            await self._write(reply, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client went away, as some are meant to
        finally:
            writer.close()

    async def _write(self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for packet in reply.packets:
            writer.write(packet)
            await writer.drain()
            await asyncio.sleep(reply.pause_s)
        if reply.end == "hang":
            await reader.read()
            self.was_left.set()
        elif reply.end == "reset":
            linger_not = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_not)
            writer.transport.abort()


@asynccontextmanager
async def provider() -> AsyncIterator[Provider]:
    served = Provider()
    server = await asyncio.start_server(served.serve, "127.0.0.1", 0)
    served.port = server.sockets[0].getsockname()[1]
    async with server:
        yield served


def head(*, status: int = 200, headers: Iterable[str] = (), content_type: str = "text/event-stream") -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"content-type: {content_type}", "connection: close", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


def until_close(body: bytes, **kwargs: object) -> bytes:
    """A response whose body ends where the connection does: a cut one looks like a whole one."""
    return head(**kwargs) + body


def with_length(body: bytes, **kwargs: object) -> bytes:
    return head(headers=(f"content-length: {len(body)}",), **kwargs) + body


def chunked(body: bytes, *, is_ended: bool = True, **kwargs: object) -> bytes:
    chunk = f"{len(body):x}\r\n".encode() + body + b"\r\n" if body else b""
    return head(headers=("transfer-encoding: chunked",), **kwargs) + chunk + (b"0\r\n\r\n" if is_ended else b"")


def one_byte_a_packet(response: bytes) -> Reply:
    return Reply(tuple(response[i : i + 1] for i in range(len(response))))


def refusal(status: int, body: bytes, *headers: str, content_type: str = "application/json") -> Reply:
    whole = head(status=status, headers=(*headers, f"content-length: {len(body)}"), content_type=content_type) + body
    return Reply((whole,))
