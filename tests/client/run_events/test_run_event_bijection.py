"""The registry, the wire contract and the producing code agree, each found by itself."""

import ast
import inspect
from pathlib import Path
from typing import get_args

import pytest
from google.protobuf.descriptor import FieldDescriptor

import compass
from compass import run_events
from compass.run_events import building
from compass.run_events.registry import ENVELOPE, KINDS, words_of
from compass.v1 import run_event_pb2 as pb

EVENT = pb.SessionRunEvent.DESCRIPTOR
DETAILS = {field.name: field.message_type for field in EVENT.oneofs_by_name["detail"].fields}
PACKAGES = [Path(path) for path in compass.__path__] + [Path(__file__).parents[3] / "service"]


def emitted_kinds() -> dict[str, set[str]]:
    """Find in the source every kind that code builds, and the fields it gives."""
    kinds: dict[str, set[str]] = {}
    for path in (path for package in PACKAGES for path in package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "_event":
                kind = ast.literal_eval(node.args[0])
                kinds.setdefault(kind, set()).update(keyword.arg for keyword in node.keywords)
    return kinds


def run_event_literals() -> set[Path]:
    """Find in the source every place that writes the type of a run event into an object."""
    return {
        path
        for package in PACKAGES
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Dict)
        and any(isinstance(v, ast.Constant) and v.value == "run_event" for v in node.values)
    }


def test_every_kind_of_the_contract_has_a_schema_and_no_schema_is_stale():
    assert set(DETAILS) == set(KINDS)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_fields_of_a_schema_are_those_of_its_message(kind):
    assert set(DETAILS[kind].fields_by_name) == {field.name for field in KINDS[kind].fields}


def test_the_fields_of_every_kind_are_those_of_the_event_itself():
    own = {field.name for field in EVENT.fields if field.containing_oneof is None}
    assert own == {field.name for field in ENVELOPE}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_kind_may_fail_exactly_if_its_message_has_a_failure(kind):
    assert KINDS[kind].may_fail == ("failure" in DETAILS[kind].fields_by_name)


def test_the_kinds_that_may_fail_are_the_reviewed_ones():
    assert {kind.name for kind in KINDS.values() if kind.may_fail} == {
        "run_failed",
        "node_failed",
        "retry_scheduled",
        "timeout_fired",
        "message_callback_completed",
        "effect_result",
    }


def test_every_kind_that_code_can_emit_has_a_schema_and_every_schema_a_producer():
    assert set(emitted_kinds()) == set(KINDS)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_producer_of_a_kind_gives_exactly_its_declared_fields(kind):
    assert emitted_kinds()[kind] == {field.name for field in KINDS[kind].fields}


def test_run_events_are_written_in_one_place_only():
    assert run_event_literals() == {Path(building.__file__)}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_each_kind_is_built_by_the_function_of_its_name(kind):
    parameters = inspect.signature(getattr(run_events, kind)).parameters
    declared = {field.name for field in KINDS[kind].fields}
    assert declared == set(parameters) - {"envelope"}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_whole_numbers_have_presence_so_that_zero_is_a_count(kind):
    numbers = [field for field in DETAILS[kind].fields if field.cpp_type == FieldDescriptor.CPPTYPE_INT64]
    assert all(field.has_presence for field in numbers)


def test_the_words_that_builders_take_are_those_of_the_enums():
    assert set(get_args(building.RunStatus)) == set(words_of(pb.RunStatus.DESCRIPTOR))
    assert set(get_args(building.RunScope)) == set(words_of(pb.RunScope.DESCRIPTOR))
    assert set(get_args(building.Decision)) == set(words_of(pb.ApprovalDecision.DESCRIPTOR))


def test_no_kind_has_an_open_map():
    messages = [EVENT, *DETAILS.values()]
    assert not [
        f.full_name for m in messages for f in m.fields if f.message_type and f.message_type.GetOptions().map_entry
    ]
    assert not [
        f.full_name
        for m in messages
        for f in m.fields
        if f.message_type and f.message_type.full_name.startswith("google.protobuf")
    ]
