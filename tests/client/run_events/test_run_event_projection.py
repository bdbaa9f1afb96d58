import pytest

from compass.run_events import KINDS, project
from compass.v1 import run_event_pb2 as pb

HEX = "0123456789abcdef0123456789abcdef"
AT = "2026-11-30T23:59:59Z"
HUMAN = {"kind": "human", "id": "usr_0123456789abcd"}


def detail(kind: str, payload: object):
    event = project(kind, payload)
    assert event.WhichOneof("detail") == kind
    return getattr(event, kind)


def test_an_event_keeps_its_declared_fields():
    event = project(
        "node_started", {"run_id": "r1", "activation_id": "a" + "0" * 20, "at": AT, "node_id": "n", "port": "p"}
    )
    assert event == pb.SessionRunEvent(
        run_id="r1",
        activation_id="a" + "0" * 20,
        at=AT,
        node_started=pb.NodeStarted(node_id="n", port="p"),
    )


@pytest.mark.parametrize("kind", ["", "run_exploded", "RUN_STARTED", " run_started", None, 5, ["run_started"], {}])
def test_an_unknown_kind_gives_an_empty_event(kind):
    assert project(kind, {"run_id": "r1", "at": AT, "token": "SECRET"}) == pb.SessionRunEvent()


@pytest.mark.parametrize("payload", [None, "text", 5, [], [{"node_id": "n"}], {5: 6}])
def test_a_payload_that_is_no_object_gives_the_kind_alone(payload):
    assert project("node_started", payload) == pb.SessionRunEvent(node_started=pb.NodeStarted())


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_undeclared_fields_are_dropped(kind):
    open_map = {"output2": "SECRET", "failureNote": "SECRET", "failure_note": "SECRET", "extra": {"a": "SECRET"}}
    assert b"SECRET" not in project(kind, open_map).SerializeToString()


def test_a_failure_is_dropped_where_the_kind_may_not_carry_one():
    for kind in (kind for kind in KINDS.values() if not kind.may_fail):
        event = project(kind.name, {"failure": {"message": "SECRET"}, "reason2": "SECRET"})
        assert b"SECRET" not in event.SerializeToString()


def test_members_may_be_spelled_in_camel_case_and_the_documented_spelling_counts():
    assert detail("node_started", {"nodeId": "camel"}).node_id == "camel"
    assert detail("node_started", {"nodeId": "camel", "node_id": "snake"}).node_id == "snake"
    assert detail("node_started", {"nodeId": "camel", "node_id": "NOT A NODE"}).node_id == ""
    assert detail("effect_result", {"notificationRevision": 7}).notification_revision == 7


@pytest.mark.parametrize(
    ("kind", "field", "good", "bad"),
    [
        ("run_started", "workflow", ["w", "deploy-all_2", "a" * 64], ["W", "1w", "a" * 65, "w w", "", "wörk"]),
        ("node_completed", "port", ["approved", "rejected"], ["Approved", "-x", "p\n", "p=SECRET"]),
        (
            "approval_requested",
            "notification_id",
            ["btn_" + HEX],
            [
                "btn_" + HEX.upper(),
                "btn_" + HEX[:-1],
                "btn_" + HEX + "0",
                "wfx_" + HEX,
                HEX,
                " btn_" + HEX,
                "btn_token=SECRET",
            ],
        ),
        (
            "message_sent",
            "message_id",
            [HEX, "msg_0123456789abcd", "msg_" + HEX],
            [HEX[:-1], HEX + "0", HEX.upper(), "msg_", "msg_token=SECRET", "msg_" + HEX + "0", "btn_" + HEX],
        ),
        (
            "effect_result",
            "effect_id",
            ["wfx_" + HEX, "wra_" + HEX],
            ["wfy_" + HEX, HEX, "wfx_" + HEX + "\n", "wfx_" + "g" * 32],
        ),
        (
            "node_failed",
            "retry_at",
            [AT, "2026-02-28T00:00:00.123456789+05:30", "2024-02-29t10:00:00z", "2026-12-31T23:59:60Z"],
            [
                "2026-02-29T00:00:00Z",
                "2026-13-01T00:00:00Z",
                "2026-11-30",
                "2026-11-30T24:00:00Z",
                "2026-11-30 10:00:00Z",
                "2026-11-30T10:00:00",
                "2026-11-30T10:00:00+24:00",
                "2026-11-30T10:00:60Z",
                "now",
                1764000000,
                AT + " ",
                "\u0662026-11-30T10:00:00Z",
                "0000-01-01T00:00:00Z",
                "2026-11-30T10:00:00.1234567890Z",
            ],
        ),
    ],
)
def test_an_identity_is_whole_or_absent(kind, field, good, bad):
    for value in good:
        assert getattr(detail(kind, {field: value}), field) == value
    for value in bad:
        assert getattr(detail(kind, {field: value}), field) == ""


@pytest.mark.parametrize("run_id", ["sk-ant-0123456789abcdef", "ghp_0123456789abcdef0123", "hf_0123456789abcdef01234"])
def test_a_credential_that_is_well_formed_as_an_id_is_dropped(run_id):
    assert project("parallel_opened", {"run_id": run_id}).run_id == ""


@pytest.mark.parametrize(
    "activation", ["a" + "1" * 19, "a" + "1" * 21, "b" + "1" * 20, "a" + "\u0661" * 20, "A" + "1" * 20]
)
def test_an_activation_is_a_and_twenty_digits(activation):
    assert project("parallel_opened", {"activation_id": activation}).activation_id == ""


@pytest.mark.parametrize(
    ("actor", "expected"),
    [
        (HUMAN, pb.RunActor(kind=pb.RUN_ACTOR_KIND_HUMAN, id="usr_0123456789abcd")),
        (
            {"kind": "agent", "id": "agt_0123456789abcd"},
            pb.RunActor(kind=pb.RUN_ACTOR_KIND_AGENT, id="agt_0123456789abcd"),
        ),
        ({"kind": "human", "id": "0123456789ab"}, pb.RunActor(kind=pb.RUN_ACTOR_KIND_HUMAN, id="0123456789ab")),
        ({"kind": "human", "id": "agt_0123456789abcd"}, pb.RunActor(kind=pb.RUN_ACTOR_KIND_HUMAN)),
        ({"kind": "human", "id": "usr_token=SECRET"}, pb.RunActor(kind=pb.RUN_ACTOR_KIND_HUMAN)),
        ({"kind": "human", "id": "mem_0123456789ab"}, pb.RunActor(kind=pb.RUN_ACTOR_KIND_HUMAN)),
        ({"kind": "human", "id": "usr_0123456789abcd "}, pb.RunActor(kind=pb.RUN_ACTOR_KIND_HUMAN)),
        ({"kind": "human", "id": "usr_0123456789abcD"}, pb.RunActor(kind=pb.RUN_ACTOR_KIND_HUMAN)),
        (
            {"kind": "human", "id": "usr_0123456789abcd", "name": "SECRET"},
            pb.RunActor(kind=pb.RUN_ACTOR_KIND_HUMAN, id="usr_0123456789abcd"),
        ),
    ],
)
def test_an_actor_counts_in_the_grammar_of_its_own_family(actor, expected):
    assert detail("run_canceled", {"actor": actor}).actor == expected


@pytest.mark.parametrize(
    "actor", ["human", None, {}, {"kind": "robot", "id": "usr_0123456789abcd"}, {"id": "0123456789ab"}, []]
)
def test_an_actor_of_no_known_kind_is_absent(actor):
    assert not detail("run_canceled", {"actor": actor}).HasField("actor")


@pytest.mark.parametrize("value", [0, 1, 2**63 - 1, 3.0])
def test_a_whole_number_within_bounds_is_kept(value):
    assert detail("fan_out_opened", {"count": value}).count == int(value)
    assert detail("fan_out_opened", {"count": value}).HasField("count")


@pytest.mark.parametrize("value", [-1, 2**63, 1.5, True, "3", None, float("nan"), float("inf"), 1e30, [1]])
def test_what_is_no_count_is_absent(value):
    assert not detail("fan_out_opened", {"count": value}).HasField("count")


def test_a_revision_is_any_int64_and_an_attempt_counts_from_one():
    assert detail("effect_result", {"notification_revision": -(2**63)}).notification_revision == -(2**63)
    assert not detail("effect_result", {"notification_revision": 2**63}).HasField("notification_revision")
    assert not detail("retry_scheduled", {"attempt": 0}).HasField("attempt")


@pytest.mark.parametrize("status", ["succeeded", "failed", "canceled", "timed_out"])
def test_a_status_is_one_of_the_closed_set(status):
    assert detail("run_completed", {"status": status}).status == pb.RunStatus.Value(f"RUN_STATUS_{status.upper()}")


@pytest.mark.parametrize("status", ["Succeeded", "unspecified", "RUN_STATUS_FAILED", 2, True, None, "failed "])
def test_any_other_status_is_unspecified(status):
    assert detail("run_completed", {"status": status}).status == pb.RUN_STATUS_UNSPECIFIED


def test_prose_is_redacted_and_bounded():
    reason = detail("run_canceled", {"reason": "Bearer abcdef123456 " + "é" * 3_000}).reason
    assert reason.startswith("Bearer [redacted] é")
    assert 2_046 <= len(reason.encode()) <= 2_048


def test_an_effect_has_an_output_or_a_failure_never_both():
    ok = detail("effect_result", {"output": "done", "status": "failed"})
    assert (ok.output, ok.HasField("failure"), ok.status) == ("done", False, pb.RUN_STATUS_UNSPECIFIED)
    failed = detail("effect_result", {"output": "done", "status": "failed", "failure": {"message": "no"}})
    assert (failed.HasField("output"), failed.failure.message, failed.status) == (False, "no", pb.RUN_STATUS_FAILED)


def test_an_empty_output_is_an_output():
    assert detail("effect_result", {"output": ""}).HasField("output")


def test_a_failure_comes_through_in_its_own_bounds():
    failure = detail("node_failed", {"failure": {"code": "x y", "message": "password=hunter2"}}).failure
    assert failure.code == ""
    assert failure.message == "password=[redacted]"
    assert list(failure.receipt.truncated_fields) == ["code"]
