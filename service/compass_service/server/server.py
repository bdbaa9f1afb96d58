"""The life of a server: open the log, recover, listen, serve, drain, stop."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from importlib.metadata import version
from pathlib import Path

import grpc
import structlog
from grpc_channelz.v1 import channelz, channelz_pb2
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from compass.limits import MAX_FRAME_BYTES, MAX_REQUEST_BYTES, MAX_RESPONSE_BYTES
from compass.v1 import compass_pb2 as pb
from compass_service.doors import reflection, wiring
from compass_service.doors.agent_door import AgentDoor
from compass_service.doors.compass_door import CompassDoor
from compass_service.doors.guard import Calls
from compass_service.hub.hub import Hub
from compass_service.log import Retention, SqliteLog
from compass_service.log.protocol import SessionLog
from compass_service.server.config import Config
from compass_service.session.registry import Registry

CONTRACT_VERSION = "compass.v1"
_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_REQUEST_BYTES),
    ("grpc.so_reuseport", 0),
    # Unread bytes of a push stream are lost with a kill: let the producer hold them instead.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 1024 * 1024),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    # The loop accepts one call a turn; above the default of 1,000 waiting calls the core sheds at random.
    ("grpc.server.max_pending_requests", 10_000),
    ("grpc.server.max_pending_requests_hard_limit", 20_000),
)
_logger = structlog.get_logger(__name__)


class Server:
    """One server process: everything wired, nothing decided."""

    def __init__(self, config: Config, log: SessionLog) -> None:
        self._config = config
        self._log = log
        self._calls = Calls()
        self._registry = Registry(
            log,
            now_ms=_now_ms,
            reattach_window_ms=_ms(config.reattach_window_s),
            idle_ms=_ms(config.idle_s),
            phase_limits=config.watchdog.limits_ms(),
        )
        self._hub = Hub(log, bounds=config.lanes.bounds(), heartbeat_s=config.heartbeat_s, now=time.monotonic)
        self._health = health.aio.HealthServicer()  # type: ignore[attr-defined]
        self._grpc = grpc.aio.server(options=[*_OPTIONS, *_options(config)])
        self._background: list[asyncio.Task[None]] = []
        self.addresses: list[str] = []
        """Where it listens, with the ports that were picked."""

    async def start(self) -> None:
        """Recover sessions, bind every address and serve. Raises OSError when an address cannot be bound."""
        await self._registry.recover()
        self._add_services()
        self.addresses = [self._bind(address) for address in self._config.listen]
        await self._grpc.start()
        tick_s = min(1.0, self._config.reattach_window_s / 4)
        self._background = [
            asyncio.create_task(self._registry.run(tick_s=tick_s)),
            asyncio.create_task(self._hub.run()),
            asyncio.create_task(self._retain()),
        ]
        for name in ("", wiring.COMPASS_SERVICE, wiring.AGENT_GATEWAY):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)

    async def failed(self) -> None:
        """Wait until a background task fails, and raise why."""
        done, _ = await asyncio.wait(self._background, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def drain(self, grace_s: float) -> None:
        """Refuse new calls, end subscriptions so that clients resume elsewhere, flush commits, stop. Idempotent."""
        await self._health.enter_graceful_shutdown()
        self._hub.drain()
        self._registry.drain()
        await self._grpc.stop(grace_s)
        # stop() returns before the last lines of the calls have run.
        await self._calls.ended()
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self._registry.settled()

    def _bind(self, address: str) -> str:
        port = self._grpc.add_insecure_port(address)
        return address if address.startswith("unix:") else f"{address.rpartition(':')[0]}:{port}"

    def _add_services(self) -> None:
        heartbeat_s = self._config.heartbeat_s
        info = _server_info(self._config, self._log.backend)
        push = self._config.push
        wiring.add_doors(
            self._grpc,
            self._calls,
            CompassDoor(self._log, self._registry, self._hub, server_info=info, heartbeat_s=heartbeat_s),
            AgentDoor(
                self._registry,
                self._hub,
                window_events=push.window_events,
                window_bytes=push.window_bytes,
            ),
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._grpc)
        names = [wiring.COMPASS_SERVICE, wiring.AGENT_GATEWAY, health.SERVICE_NAME]
        if self._config.channelz:
            channelz.add_channelz_servicer(self._grpc)  # type: ignore[arg-type]
            names.append(channelz_pb2.DESCRIPTOR.services_by_name["Channelz"].full_name)
        reflection.add_to_server(self._grpc, names)

    async def _retain(self) -> None:
        while True:
            await asyncio.sleep(self._config.retention.interval_s)
            for session_id in await self._log.trim(now_unix_ms=_now_ms()):
                self._registry.removed(session_id)


@contextlib.asynccontextmanager
async def serving(config: Config) -> AsyncIterator[Server]:
    """Run a server for as long as the block runs, then drain it. Raises DataDirLockedError, OSError."""
    log = _open_log(config)
    try:
        server = Server(config, log)
        await server.start()
        try:
            yield server
        finally:
            await server.drain(config.grace_s)
    finally:
        await log.close()
        await asyncio.to_thread(_unlink_sockets, config.listen)


def _open_log(config: Config) -> SqliteLog:
    kept = config.retention
    retention = Retention(
        age_ms=kept.age_s * 1000 or None,
        trace_age_ms=kept.trace_age_s * 1000 or None,
        session_bytes=kept.session_bytes or None,
        total_bytes=kept.total_bytes or None,
    )
    return SqliteLog.open(config.data_dir, retention=retention, reserve_bytes=config.reserve_bytes)


def _options(config: Config) -> list[tuple[str, int]]:
    keepalive = config.keepalive
    return [
        ("grpc.enable_channelz", int(config.channelz)),
        ("grpc.keepalive_time_ms", _ms(keepalive.time_s)),
        ("grpc.keepalive_timeout_ms", _ms(keepalive.timeout_s)),
        # keepalive_timeout only feeds TCP_USER_TIMEOUT, which a frozen peer's kernel satisfies; this one decides.
        ("grpc.http2.ping_timeout_ms", _ms(keepalive.timeout_s)),
    ]


def _unlink_sockets(listen: list[str]) -> None:
    for address in listen:
        if address.startswith("unix:"):
            Path(address.removeprefix("unix:")).unlink(missing_ok=True)


def _server_info(config: Config, backend: str) -> pb.GetServerInfoResponse:
    limits = pb.ServerLimits(
        max_request_bytes=MAX_REQUEST_BYTES,
        max_response_bytes=MAX_RESPONSE_BYTES,
        max_frame_bytes=MAX_FRAME_BYTES,
        trace_lane_frames=config.lanes.trace_frames,
        trace_lane_bytes=config.lanes.trace_bytes,
        priority_lane_frames=config.lanes.priority_frames,
        priority_lane_bytes=config.lanes.priority_bytes,
        reattach_window_ms=_ms(config.reattach_window_s),
        heartbeat_ms=_ms(config.heartbeat_s),
        push_window_events=config.push.window_events,
        push_window_bytes=config.push.window_bytes,
        retention_age_ms=config.retention.age_s * 1000,
        retention_session_bytes=config.retention.session_bytes,
        retention_total_bytes=config.retention.total_bytes,
    )
    return pb.GetServerInfoResponse(
        version=version("compass-trace"),
        contract_version=CONTRACT_VERSION,
        log_backend=backend,
        limits=limits,
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
