"""Configuration: one typed, validated value from flags, environment and a TOML file, in this order of precedence."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_settings import (
    BaseSettings,
    CliApp,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from compass.lanes import LaneBounds
from compass.limits import TRACE_LANE_BYTES, TRACE_LANE_FRAMES
from compass.v1 import compass_pb2 as pb

ENV_PREFIX = "COMPASS_TRACE_"
DEFAULT_LISTEN = "127.0.0.1:7420"
_MIB = 1024 * 1024

Count = Annotated[int, Field(ge=1)]
Bound = Annotated[int, Field(ge=0)]
Limit = Annotated[float, Field(ge=0)]
Seconds = Annotated[float, Field(gt=0)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Lanes(_Part):
    """Bounds of each subscriber's lanes."""

    trace_frames: Count = Field(TRACE_LANE_FRAMES, description="trace lane bound in frames")
    trace_bytes: Count = Field(TRACE_LANE_BYTES, description="trace lane bound in bytes")
    priority_frames: Count = Field(4_096, description="priority frames kept in memory; more are served from the log")
    priority_bytes: Count = Field(_MIB, description="priority bytes kept in memory; more are served from the log")

    def bounds(self) -> LaneBounds:
        """Return the bounds as the lanes take them."""
        return LaneBounds(self.trace_frames, self.trace_bytes, self.priority_frames, self.priority_bytes)


class Retention(_Part):
    """How much the log keeps. 0 = no bound."""

    age_s: Bound = Field(30 * 24 * 3600, description="remove frames older than this")
    trace_age_s: Bound = Field(0, description="remove trace frames older than this")
    session_bytes: Bound = Field(512 * _MIB, description="bytes that one session may keep")
    total_bytes: Bound = Field(8 * 1024 * _MIB, description="bytes that all sessions may keep")
    interval_s: Seconds = Field(30.0, description="time between two applications")


class Push(_Part):
    """What a producer may have in flight."""

    window_events: Count = Field(4_096, description="unacknowledged events")
    window_bytes: Count = Field(8 * _MIB, description="unacknowledged bytes")


class Keepalive(_Part):
    """How a dead or frozen peer is noticed."""

    time_s: Seconds = Field(20.0, description="quiet time after which a peer is asked for a sign of life")
    timeout_s: Seconds = Field(10.0, description="time that a peer has to give one")


class Watchdog(_Part):
    """How long a phase may be silent before it is marked stalled. 0 = for ever."""

    thinking_s: Limit = Field(120.0, description="waiting for the model, or reasoning")
    responding_s: Limit = Field(60.0, description="writing the answer")
    running_tool_s: Limit = Field(600.0, description="running a tool")
    compacting_s: Limit = Field(300.0, description="summarizing its own context")
    retrying_s: Limit = Field(30.0, description="after the wait that the agent announced")
    awaiting_input_s: Limit = Field(0.0, description="waiting for the answer to a dialog")

    def limits_ms(self) -> dict[int, int]:
        """Return the limits by phase, those without one left out."""
        seconds = {
            pb.SESSION_PHASE_THINKING: self.thinking_s,
            pb.SESSION_PHASE_RESPONDING: self.responding_s,
            pb.SESSION_PHASE_RUNNING_TOOL: self.running_tool_s,
            pb.SESSION_PHASE_COMPACTING: self.compacting_s,
            pb.SESSION_PHASE_RETRYING: self.retrying_s,
            pb.SESSION_PHASE_AWAITING_INPUT: self.awaiting_input_s,
        }
        return {phase: round(limit * 1000) for phase, limit in seconds.items() if limit}


class Config(BaseSettings):
    """The configuration of a server."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix=ENV_PREFIX,
        env_nested_delimiter="__",
        cli_prog_name="compass-trace-server",
        cli_kebab_case=True,
        cli_implicit_flags=True,
        cli_hide_none_type=True,
        cli_avoid_json=True,
    )

    listen: list[str] = Field([DEFAULT_LISTEN], description="HOST:PORT or unix:PATH; repeatable; port 0 picks one")
    data_dir: Path = Field(Path("compass-data"), description="folder of the session log")
    config: Path | None = Field(None, description="TOML file with the same names as these options")
    log_format: Literal["json", "console"] = Field("json", description="form of the log on stderr")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="least level that is logged")
    channelz: bool = Field(default=False, description="serve grpc.channelz.v1")
    grace_s: Seconds = Field(10.0, description="time to finish open calls on SIGTERM")
    heartbeat_s: Seconds = Field(10.0, description="time between heartbeats of an idle tail")
    reattach_window_s: Seconds = Field(30.0, description="time a producer may be away before its session is judged")
    idle_s: Seconds = Field(60.0, description="time after which a resting session leaves memory")
    reserve_bytes: Bound = Field(64 * _MIB, description="disk space kept back for recovering from a full disk")
    lanes: Lanes = Lanes()
    retention: Retention = Retention()
    push: Push = Push()
    keepalive: Keepalive = Keepalive()
    watchdog: Watchdog = Watchdog()

    @field_validator("listen")
    @classmethod
    def _check_listen(cls, listen: list[str]) -> list[str]:
        if not listen:
            raise ValueError("needs at least one address")
        for address in listen:
            _check_address(address)
        return listen


def load(argv: Sequence[str]) -> Config:
    """Read flags, then the environment, then the TOML file that either of them names.

    Prints help or a usage error and exits, as a command line does. Raises ValidationError for a value outside its
    bounds, OSError and TOMLDecodeError for a file that cannot be read.
    """
    file = _config_file(argv)

    class _Sourced(Config):
        @classmethod
        def settings_customise_sources(  # the library's signature
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 # the library's signature
            file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            sources = (init_settings, env_settings)
            return sources if file is None else (*sources, TomlConfigSettingsSource(settings_cls, toml_file=file))

    return CliApp.run(_Sourced, cli_args=list(argv))


def _config_file(argv: Sequence[str]) -> Path | None:
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False, allow_abbrev=False)
    parser.add_argument("--config", default=os.environ.get(f"{ENV_PREFIX}CONFIG"))
    named = parser.parse_known_args(list(argv))[0].config
    if named is None:
        return None
    Path(named).open("rb").close()  # a file that was named must be there; the library would pass over it
    return Path(named)


def _check_address(address: str) -> None:
    if address.startswith("unix:"):
        if len(address.removeprefix("unix:").encode()) > 107:
            raise ValueError(f"{address!r}: a unix socket path has at most 107 bytes")
        return
    host, colon, port = address.rpartition(":")
    if not (host and colon and port.isdecimal() and int(port) < 65_536):
        raise ValueError(f"{address!r} is not HOST:PORT or unix:PATH")
