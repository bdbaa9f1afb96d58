"""The connections of a client: two, since a live tail and everything else want opposite windows.

A small window keeps the transport from hiding a queue in front of a priority frame; a large one is what catching up
wants.
"""

import json

import grpc.aio

from compass.errors import ClientClosedError

_SINGLE_CALLS = (
    "CancelPrompt",
    "CloseSession",
    "GetServerInfo",
    "GetSession",
    "GetTranscript",
    "ListPrompts",
    "ListSessions",
    "SubmitPrompt",
)
_RETRY_SINGLE_CALLS = {
    "methodConfig": [
        {
            # Each of these may be made twice: not AbortSession, which could stop the next turn. Streams are left out:
            # they are tried again with their cursor.
            "name": [{"service": "compass.v1.CompassService", "method": method} for method in _SINGLE_CALLS],
            "retryPolicy": {
                "maxAttempts": 4,
                "initialBackoff": "0.1s",
                "maxBackoff": "1s",
                "backoffMultiplier": 3,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        },
    ],
}

_OPTIONS = (
    ("grpc.service_config", json.dumps(_RETRY_SINGLE_CALLS)),
    # All three are needed to find a dead or a frozen peer: the timeout alone only feeds TCP_USER_TIMEOUT (grpc#39239).
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.ping_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
    # The streams pause by themselves between attempts; the channel must not add its own minutes to that.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.min_reconnect_backoff_ms", 5_000),  # in spite of its name: how long one attempt to connect may take
)

_SMALL_WINDOW = (
    # Without the first the second has no effect: bandwidth probing grows the window to 4 MiB, behind which a priority
    # frame waits for seconds. A small frame has some 60 bytes: 2 KiB hold 35 of them, 16 KiB would hold 280. A larger
    # message widens the window for itself, so that catching up is no slower; the price is a round trip for every 2 KiB
    # of a live stream, which a distant pane notices from a few hundred frames a second on.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 2_048),
)


class Channels:
    """Makes each channel on first use, since one cannot be made outside a running loop."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.is_closed = False
        self._open: dict[bool, grpc.aio.Channel] = {}

    def get(self, *, small_window: bool = False) -> grpc.aio.Channel:
        """Return the channel for whole reading, or the one for live tails. Raises ClientClosedError."""
        if self.is_closed:
            raise ClientClosedError
        if small_window not in self._open:
            options = _OPTIONS + _SMALL_WINDOW if small_window else _OPTIONS
            self._open[small_window] = grpc.aio.insecure_channel(self.target, options=options)
        return self._open[small_window]

    async def close(self) -> None:
        """Close both; calls that are open on them end as cancelled. Idempotent."""
        self.is_closed = True
        while self._open:
            _, channel = self._open.popitem()
            await channel.close(None)
