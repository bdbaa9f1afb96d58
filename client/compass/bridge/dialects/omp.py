"""`omp --mode rpc` (@oh-my-pi/pi-coding-agent): pi's protocol with a `ready` line, and large messages in chunks."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from compass.bridge.dialects.dialect import Command
from compass.bridge.dialects.heard import Answer, Aside, Heard, Ready
from compass.bridge.dialects.pi import PiDialect, parse

_NEGOTIATE_ID = "compass-protocol"
_CHUNKING_VERSION = 2
_MAX_REASSEMBLED_BYTES = 64 * 1024 * 1024


class OmpDialect(PiDialect):
    """Says `ready` at its start, and what it can negotiate."""

    name = "omp"

    def __init__(self) -> None:
        super().__init__()
        self._chunks = Chunks()

    def opening(self) -> list[Command]:
        """Wait for `ready`."""
        return []

    def read(self, line: bytes) -> list[Heard]:
        """Read one line, or the last chunk of one."""
        message = parse(line)
        if message.get("type") != "rpc_chunk":
            return [self.heard(line, message)]
        whole = self._chunks.add(message)
        return [Aside()] if whole is None else [self.heard(whole, parse(whole))]

    def is_ready(self, heard: Heard) -> bool:
        """Wait for the line that says so."""
        return isinstance(heard, Ready)

    def reply(self, heard: Heard) -> list[Command]:
        """Ask for chunks, without which a message over the frame bound could not come at all."""
        if isinstance(heard, Ready):
            self._chunks.max_bytes = _limit(heard.data)
            versions = heard.data.get("supportedProtocolVersions")
            if isinstance(versions, list) and _CHUNKING_VERSION in versions:
                return [
                    {"id": _NEGOTIATE_ID, "type": "negotiate_protocol", "protocolVersion": _CHUNKING_VERSION},
                ]
        return []

    def is_settled_by(self, answer: Answer, text: str) -> bool:  # noqa: ARG002 - one shape for every dialect
        """Tell whether a command took the prompt."""
        return answer.succeeded and answer.data.get("agentInvoked") is False


class Chunks:
    """Puts one message together from the chunks it came in. Bound: what the agent announced; beyond it, refused."""

    def __init__(self) -> None:
        self.max_bytes = _MAX_REASSEMBLED_BYTES
        self._chunk_id: object = None
        self._parts: list[bytes] = []

    def add(self, chunk: Mapping[str, Any]) -> bytes | None:
        """Take the next chunk. Returns the message with its last one. Raises ValueError for one that does not fit."""
        index, count = chunk.get("index"), chunk.get("count")
        if index == 0:
            self._chunk_id, self._parts = chunk.get("chunkId"), []
        if chunk.get("chunkId") != self._chunk_id or index != len(self._parts) or not isinstance(count, int):
            self._reset()
            raise ValueError("a chunk out of order")
        try:
            self._parts.append(base64.b64decode(str(chunk.get("data", "")), validate=True))
        except binascii.Error:
            self._reset()
            raise ValueError("a chunk that is not base64") from None
        if sum(map(len, self._parts)) > self.max_bytes:
            self._reset()
            raise ValueError("chunks of a message that is larger than announced")
        if len(self._parts) < count:
            return None
        whole = b"".join(self._parts)
        self._reset()
        if chunk.get("byteLength") not in {None, len(whole)}:
            raise ValueError("chunks of another size than announced")
        return whole

    def _reset(self) -> None:
        self._chunk_id, self._parts = None, []


def _limit(ready: Mapping[str, Any]) -> int:
    announced = ready.get("maxReassembledFrameBytes")
    return announced if isinstance(announced, int) and announced > 0 else _MAX_REASSEMBLED_BYTES
