"""The generated code says what the contract says: every name, number and type of `contract.wire`."""

import re
from pathlib import Path

import pytest
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import Descriptor

from compass.v1 import agent_gateway_pb2, compass_pb2, failure_pb2, run_event_pb2
from contract import wire
from contract.descriptors import spell_enum, spell_fields, spell_rpc

ROOT = Path(__file__).parents[2]
FILES = [module.DESCRIPTOR for module in (compass_pb2, agent_gateway_pb2, failure_pb2, run_event_pb2)]


def message(name: str) -> Descriptor:
    return descriptor_pool.Default().FindMessageTypeByName(f"compass.v1.{name}")


@pytest.mark.parametrize("name", wire.FROZEN_MESSAGES)
def test_every_frozen_field_keeps_its_name_number_and_type(name: str) -> None:
    frozen = wire.FROZEN_MESSAGES[name]
    assert {number: spell for number, spell in spell_fields(message(name).fields).items() if number in frozen} == frozen


@pytest.mark.parametrize("name", wire.ADDITIVE_FIELDS)
def test_every_additive_field_has_its_agreed_name_number_and_type(name: str) -> None:
    agreed = wire.FROZEN_MESSAGES.get(name, {}) | wire.ADDITIVE_FIELDS[name]
    assert spell_fields(message(name).fields) == agreed


@pytest.mark.parametrize("name", wire.FROZEN_ENUMS | wire.ADDITIVE_ENUMS)
def test_every_enum_has_its_agreed_values(name: str) -> None:
    enum = descriptor_pool.Default().FindEnumTypeByName(f"compass.v1.{name}")
    assert spell_enum(enum) == (wire.FROZEN_ENUMS | wire.ADDITIVE_ENUMS)[name]


@pytest.mark.parametrize("name", wire.RPCS)
def test_every_door_has_exactly_its_agreed_rpcs(name: str) -> None:
    service = descriptor_pool.Default().FindServiceByName(f"compass.v1.{name}")
    assert {method.name: spell_rpc(method) for method in service.methods} == wire.RPCS[name]


def test_there_are_no_other_doors() -> None:
    assert {name for file in FILES for name in file.services_by_name} == set(wire.RPCS)


def test_every_kind_of_frame_has_a_number_below_sixteen_and_so_a_one_byte_tag() -> None:
    assert max(field.number for field in message("SessionEvent").fields) < 16


def test_only_the_two_agreed_lint_exceptions_are_made() -> None:
    protos = sorted((ROOT / "proto").rglob("*.proto"))
    exceptions = [rule for proto in protos for rule in re.findall(r"buf:lint:ignore (\w+)", proto.read_text())]
    assert sorted(exceptions) == ["RPC_RESPONSE_STANDARD_NAME", "SERVICE_SUFFIX"]
    assert not re.search(r"\b(except|ignore|ignore_only):", (ROOT / "buf.yaml").read_text())
