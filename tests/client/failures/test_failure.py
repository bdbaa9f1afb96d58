import pytest
from google.protobuf.json_format import MessageToDict
from hypothesis import given, settings
from hypothesis import strategies as st

from compass.failures import digest, failure_from, merge_receipts, receipt_from, redact
from compass.failures.receipts import FIELDS
from compass.v1 import failure_pb2 as pb
from compass.v1 import run_event_pb2

LIMIT = 32 * 1024


def test_a_failure_that_fits_comes_through_whole_and_without_a_receipt():
    reported = {
        "code": "E_DISK.Full-1",
        "stage": "write",
        "path": "/steps[2]/out",
        "problem": "The disk is full.",
        "hint": "Make room.",
        "message": "ENOSPC",
        "diagnostics": [
            {
                "code": "E1",
                "path": "a.b",
                "field": "size",
                "index": 0,
                "key": "k=1",
                "dependency_path": "a/b",
                "message": "big",
            }
        ],
    }
    assert MessageToDict(failure_from(reported), preserving_proto_field_name=True) == reported | {
        "diagnostics": [reported["diagnostics"][0] | {"index": "0"}]
    }


def test_names_in_camel_case_are_read_and_the_documented_spelling_counts():
    diagnostics = failure_from(
        {"diagnostics": [{"dependencyPath": "camel"}, {"dependencyPath": "x", "dependency_path": "y"}]}
    )
    assert [entry.dependency_path for entry in diagnostics.diagnostics] == ["camel", "y"]


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("code", ["E", "rate.limit-1_x", "a" * 64], ["1E", "a b", "a" * 65, "E\n", "token=SECRET", "ü", "", 5, ["E"]]),
        ("stage", ["Build"], ["_x", "x/y"]),
        (
            "path",
            ["/a[0].b", "~", "!" * 256],
            ["a b", "a" * 257, "ä", "a\t", "api_key=SECRET", "u:SECRET@host", "\ud800"],
        ),
    ],
)
def test_an_identity_is_whole_or_dropped_and_counted(name, good, bad):
    for value in good:
        assert getattr(failure_from({name: value}), name) == value
        assert not failure_from({name: value}).HasField("receipt")
    for value in bad:
        failure = failure_from({name: value})
        assert getattr(failure, name) == ""
        if value != "":
            assert list(failure.receipt.truncated_fields) == [name]
            assert failure.receipt.dropped_count == 1


@pytest.mark.parametrize("name", ["problem", "hint", "message"])
def test_prose_is_redacted_then_cut_and_named(name):
    failure = failure_from({name: "Bearer CANARY0123456789 " + "é" * 2_000})
    text = getattr(failure, name)
    assert text.startswith("Bearer [redacted] é")
    assert len(text.encode()) in {2_047, 2_048}
    assert list(failure.receipt.truncated_fields) == [name]
    assert failure.receipt.serialized_bytes > 4_000
    assert failure.receipt.dropped_count == 0


@pytest.mark.parametrize(
    ("reported", "message"),
    [("it broke", "it broke"), (None, ""), (5, "5"), ({"message": {"code": 1}}, '{"code": 1}'), ({"message": None}, ""),
     (["a"], '["a"]'), ({}, "")],
)  # fmt: skip
def test_whatever_stands_in_place_of_a_failure_is_readable(reported, message):
    assert failure_from(reported).message == message


def test_a_diagnostic_of_which_nothing_is_left_is_omitted_and_counted():
    failure = failure_from({"diagnostics": [{"code": "bad code"}, {}, "loose text", 7, {"code": "E", "index": -1}]})
    assert [entry.message or entry.code for entry in failure.diagnostics] == ["loose text", "7", "E"]
    assert failure.receipt.omitted_count == 2
    assert failure.receipt.dropped_count == 2
    assert list(failure.receipt.truncated_fields) == ["code", "index"]


@pytest.mark.parametrize("index", [0, 2**63 - 1, 4.0])
def test_the_index_zero_is_a_place(index):
    assert failure_from({"diagnostics": [{"index": index}]}).diagnostics[0].index == int(index)


@pytest.mark.parametrize("index", [-1, 2**63, True, "0", 1.5])
def test_what_is_no_index_is_dropped(index):
    diagnostics = failure_from({"diagnostics": [{"index": index, "code": "E"}]}).diagnostics
    assert not diagnostics[0].HasField("index")


def test_a_failure_over_32_kib_keeps_its_code_stage_and_problem_and_says_so():
    reported = {
        "code": "E_BIG", "stage": "run", "path": "/x", "problem": "p" * 5_000, "hint": "h", "message": "m",
        "diagnostics": [{"code": "E", "message": "x" * 2_000} for _ in range(17)],
    }  # fmt: skip
    failure = failure_from(reported)
    assert failure == pb.Failure(
        code="E_BIG",
        stage="run",
        problem="p" * 2_048,
        receipt=pb.FailureReceipt(
            truncated_fields=["hint", "message", "path", "problem"],
            omitted_count=17,
            serialized_bytes=failure.receipt.serialized_bytes,
            minimal_fallback=True,
        ),
    )
    assert failure.receipt.serialized_bytes > LIMIT


def test_a_failure_of_just_32_kib_is_kept():
    diagnostics = [{"message": "x" * 2_000} for _ in range(16)]
    failure = failure_from({"diagnostics": diagnostics})
    assert not failure.HasField("receipt")
    room = LIMIT - failure.ByteSize()
    fits = failure_from({"diagnostics": diagnostics, "message": "y" * (room - 3)})
    assert (fits.ByteSize(), fits.HasField("receipt")) == (LIMIT, False)
    assert failure_from({"diagnostics": diagnostics, "message": "y" * (room - 2)}).receipt.minimal_fallback


def test_a_receipt_that_came_with_a_failure_is_added_to():
    failure = failure_from(
        {
            "code": "bad code",
            "receipt": {
                "truncatedFields": ["hint", "code", "dependencyPath", "secret_field", 5],
                "omittedCount": 3,
                "dropped_count": 4,
                "serializedBytes": 99_999,
                "minimalFallback": True,
            },
        }
    )
    assert failure.receipt == pb.FailureReceipt(
        truncated_fields=["code", "dependencyPath", "hint"],
        omitted_count=3,
        dropped_count=5,
        serialized_bytes=99_999,
        minimal_fallback=True,
    )


@pytest.mark.parametrize(
    "value", [None, 5, [], "receipt", {"omitted_count": -1, "dropped_count": True, "minimal_fallback": 1}]
)
def test_a_receipt_that_is_none_counts_for_nothing(value):
    assert receipt_from(value) == pb.FailureReceipt()
    assert not failure_from({"code": "E", "receipt": value}).HasField("receipt")


def test_the_vocabulary_of_a_receipt_is_closed():
    assert {
        "code", "stage", "path", "problem", "hint", "message", "field", "key", "dependencyPath", "index",
    } == FIELDS  # fmt: skip
    assert list(
        receipt_from({"truncated_fields": [*sorted(FIELDS), "token", "dependency_path"]}).truncated_fields
    ) == sorted(FIELDS)


names = st.lists(st.sampled_from([*sorted(FIELDS), "unknown"]), max_size=6)
counts = st.integers(0, 2**64 - 1)
receipts = st.builds(
    lambda n, o, d, s, m: pb.FailureReceipt(
        truncated_fields=n, omitted_count=o, dropped_count=d, serialized_bytes=s, minimal_fallback=m
    ),
    names, counts, counts, counts, st.booleans(),
)  # fmt: skip


@given(receipts, receipts, receipts)
def test_merging_is_associative_and_commutative(first, second, third):
    merged = merge_receipts(merge_receipts(first, second), third)
    assert merged == merge_receipts(first, merge_receipts(second, third))
    assert merge_receipts(first, second) == merge_receipts(second, first)
    assert list(merged.truncated_fields) == sorted(set(merged.truncated_fields) & FIELDS)


@given(receipts)
def test_merging_with_nothing_changes_nothing_but_the_order_of_names(receipt):
    merged = merge_receipts(receipt, pb.FailureReceipt())
    assert merged == merge_receipts(merged, pb.FailureReceipt())
    assert (merged.omitted_count, merged.dropped_count) == (receipt.omitted_count, receipt.dropped_count)


@given(receipts, receipts)
def test_a_different_cut_has_a_different_digest(first, second):
    one, other = pb.Failure(code="E", receipt=first), pb.Failure(code="E", receipt=second)
    assert (digest(one) == digest(other)) == (first == second)


def test_the_digest_of_an_event_covers_the_receipt_inside_it():
    def event(dropped: int) -> run_event_pb2.SessionRunEvent:
        failure = pb.Failure(code="E", receipt=pb.FailureReceipt(dropped_count=dropped))
        return run_event_pb2.SessionRunEvent(run_failed=run_event_pb2.RunFailed(failure=failure))

    assert digest(event(1)) == digest(event(1))
    assert digest(event(1)) != digest(event(2))
    assert digest(pb.FailureReceipt()) != digest(pb.Failure())


texts = st.text(max_size=30) | st.text(st.characters(), min_size=2_000, max_size=3_000) | st.sampled_from(
    ["E_OK", "a.b", "sk-ant-0123456789", "token=SECRET", "x" * 64, "x" * 65, "~" * 256, "~" * 257, " a", "a\n"]
)  # fmt: skip
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
diagnostics = st.dictionaries(
    st.sampled_from(["code", "path", "field", "index", "key", "dependencyPath", "dependency_path", "message", "extra"]),
    scalars,
)
failures = st.dictionaries(
    st.sampled_from(["code", "stage", "path", "problem", "hint", "message", "receipt", "extra"]), scalars
).flatmap(
    lambda members: st.lists(diagnostics | scalars, max_size=30).map(lambda entries: members | {"diagnostics": entries})
)


@settings(max_examples=150, deadline=None)
@given(failures)
def test_identity_never_becomes_another_identity_and_sizes_hold(reported):
    failure = failure_from(reported)
    assert failure.ByteSize() <= LIMIT
    for name in ("code", "stage", "path"):
        assert getattr(failure, name) in {"", reported.get(name)}
    for name in ("problem", "hint", "message"):
        assert len(getattr(failure, name).encode()) <= 2_048
        assert redact(getattr(failure, name)) == getattr(failure, name)
    given_keys = {entry.get("key") for entry in reported["diagnostics"] if isinstance(entry, dict)}
    assert {entry.key for entry in failure.diagnostics} <= given_keys | {""}
    assert set(failure.receipt.truncated_fields) <= FIELDS


@settings(max_examples=100, deadline=None)
@given(failures)
def test_bringing_it_into_bounds_again_changes_nothing_but_the_count_of_hands(reported):
    once = failure_from(reported)
    again = failure_from(MessageToDict(once, preserving_proto_field_name=True))
    for failure in (once, again):
        failure.ClearField("receipt")
        for entry in failure.diagnostics:
            entry.ClearField("index")  # JSON writes an int64 as text, which is no index
    kept = [entry for entry in once.diagnostics if entry.ByteSize()]
    assert list(again.diagnostics) == kept
    assert (again.code, again.stage, again.path, again.problem) == (once.code, once.stage, once.path, once.problem)
