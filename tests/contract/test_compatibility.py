"""What deployed clients rely on cannot be changed unnoticed: the frozen part, and what the last release added to it."""

import shutil
import subprocess
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool

from contract import wire
from contract.descriptors import spell_enum, spell_fields, spell_rpc
from contract.toolchain import FROZEN, RELEASED, ROOT, buf, compile_frozen


def test_the_frozen_file_holds_the_frozen_part_and_nothing_else(tmp_path: Path) -> None:
    compile_frozen(tmp_path, "--descriptor_set_out=frozen.binpb")
    (proto,) = descriptor_pb2.FileDescriptorSet.FromString((tmp_path / "frozen.binpb").read_bytes()).file
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(proto.SerializeToString())
    file = pool.FindFileByName("compass/v1/compass.proto")
    messages = {name: spell_fields(message.fields) for name, message in file.message_types_by_name.items()}
    enums = {name: spell_enum(enum) for name, enum in file.enum_types_by_name.items()}
    rpcs = {
        name: {method.name: spell_rpc(method) for method in service.methods}
        for name, service in file.services_by_name.items()
    }
    assert (messages, enums, rpcs) == (wire.FROZEN_MESSAGES, wire.FROZEN_ENUMS, wire.FROZEN_RPCS)


@pytest.mark.parametrize("against", [FROZEN, RELEASED], ids=["frozen", "released"])
def test_the_contract_breaks_no_client(against: Path) -> None:
    assert buf("breaking", "--against", against).stdout == ""


BREAKS = {
    "number": ("optional int32 status = 3;", "optional int32 status = 12;"),
    "name": ("string message_id = 2;", "string id = 2;"),
    "type": ("int64 at_unix_ms = 2;", "uint64 at_unix_ms = 2;"),
    "presence": ("optional string link = 2;", "string link = 2;"),
    "enum value": ("AGENT_SESSION_STATE_STOPPED = 4;", "AGENT_SESSION_STATE_ENDED = 4;"),
    "arm": ("    SessionError session_error = 10;\n", ""),
    "rpc": ("rpc SubscribeAgentSession(", "rpc Subscribe("),
    "streaming": ("returns (stream AgentSessionFrame)", "returns (AgentSessionFrame)"),
}


@pytest.mark.parametrize("change", BREAKS)
def test_a_changed_frozen_part_is_refused(tmp_path: Path, change: str) -> None:
    result = _breaking(tmp_path, *BREAKS[change], against=FROZEN)
    assert (result.returncode, result.stdout.count("\n") > 0) == (100, True)


def test_a_changed_released_field_is_refused_though_it_is_not_frozen(tmp_path: Path) -> None:
    result = _breaking(tmp_path, "uint64 seq = 4;", "uint64 seq = 14;", against=RELEASED)
    assert (result.returncode, "AgentSessionFrame" in result.stdout) == (100, True)


def _breaking(tmp_path: Path, old: str, new: str, *, against: Path) -> subprocess.CompletedProcess[str]:
    shutil.copytree(ROOT / "proto", tmp_path / "proto")
    shutil.copy(ROOT / "buf.yaml", tmp_path)
    contract = tmp_path / "proto/compass/v1/compass.proto"
    text = contract.read_text()
    assert old in text
    contract.write_text(text.replace(old, new))
    return buf("breaking", "--against", against, cwd=tmp_path)
