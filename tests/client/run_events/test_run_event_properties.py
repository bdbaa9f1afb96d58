"""Arbitrary run events, right kinds with wrong fields and secrets in ids: nothing undeclared comes out."""

import re

from google.protobuf.descriptor import FieldDescriptor
from hypothesis import given, settings
from hypothesis import strategies as st

from compass.failures import redact
from compass.run_events import KINDS, project
from compass.run_events.registry import ENVELOPE

SECRET = "CANARYcanary0123456789"
HEX = "0123456789abcdef" * 2
LOOK_ALIKES = [
    f"usr_token={SECRET}",
    f"mem_token={SECRET}",
    f"msg_token={SECRET}",
    f"btn_{SECRET}",
    f"sk-{SECRET}",
    f"wfx_{HEX}{SECRET}",
    f"{HEX} ",
    f"a{'0' * 20}{SECRET}",
    f"Bearer {SECRET}",
    f"https://u:{SECRET}@h",
    f"\u200b{HEX}",
    f"btn_{HEX}\n{SECRET}",
]
GENUINE = [
    "usr_0123456789abcd",
    "agt_0123456789abcd",
    "0123456789ab",
    f"wfx_{HEX}",
    f"wra_{HEX}",
    f"btn_{HEX}",
    HEX,
    "msg_0a1b2c",
    "node-1",
    "a" + "0" * 20,
    "2026-11-30T10:00:00Z",
    "failed",
    "run",
    "approved",
    "human",
    "agent",
]

NAMES = sorted({field.name for kind in KINDS.values() for field in (*ENVELOPE, *kind.fields)})
SPELLED = [name for snake in NAMES for name in (snake, re.sub(r"_(\w)", lambda m: m[1].upper(), snake))]

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(LOOK_ALIKES)
    | st.sampled_from(GENUINE)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["kind", "id", "code", "stage", "message", "diagnostics", "receipt", "token", "extra"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
payloads = st.dictionaries(st.sampled_from(SPELLED) | st.text(max_size=8), values, max_size=10)

GRAMMARS = {
    "run_id": r"[a-z][a-z0-9_-]{0,63}",
    "workflow": r"[a-z][a-z0-9_-]{0,63}",
    "trigger": r"[a-z][a-z0-9_-]{0,63}",
    "node_id": r"[a-z][a-z0-9_-]{0,63}",
    "port": r"[a-z][a-z0-9_-]{0,63}",
    "activation_id": r"a[0-9]{20}",
    "at": r"\d{4}-.*",
    "retry_at": r"\d{4}-.*",
    "completed_at": r"\d{4}-.*",
    "notification_id": r"btn_[0-9a-f]{32}",
    "message_id": r"[0-9a-f]{32}|msg_[0-9a-z]{1,32}",
    "effect_id": r"(wfx|wra)_[0-9a-f]{32}",
    "id": r"(usr|agt)_[0-9a-z]{14}|[0-9a-z]{12}",
    "code": r"[A-Za-z][A-Za-z0-9_.-]{0,63}",
    "stage": r"[A-Za-z][A-Za-z0-9_.-]{0,63}",
    "path": r"[!-~]{1,256}",
}
"""Written out here once more, so that a change of the registry shows."""


def strings(message, name=""):
    for field, value in message.ListFields():
        members = value if field.is_repeated else [value]
        for item in members:
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                yield from strings(item)
            elif isinstance(item, str):
                yield field.name, item


@settings(max_examples=300, deadline=None)
@given(kind=st.sampled_from([*KINDS, "run_exploded"]), payload=payloads)
def test_nothing_undeclared_comes_out_of_any_payload(kind, payload):
    event = project(kind, payload)
    assert event.WhichOneof("detail") == (kind if kind in KINDS else None)
    for name, text in strings(event):
        assert redact(text) == text
        if name in GRAMMARS:
            assert re.fullmatch(GRAMMARS[name], text, re.ASCII)
        assert len(text.encode()) <= 2_048


@settings(max_examples=300, deadline=None)
@given(kind=st.sampled_from(sorted(KINDS)), secret=st.sampled_from(LOOK_ALIKES))
def test_a_secret_in_any_id_never_comes_out(kind, secret):
    ids = {name: secret for name in NAMES if name not in {"reason", "output", "failure"}}
    event = project(kind, ids | {"actor": {"kind": "human", "id": secret}})
    assert SECRET not in str(event)


@settings(max_examples=100, deadline=None)
@given(
    kind=st.sampled_from(sorted(kind.name for kind in KINDS.values() if kind.may_fail)),
    secret=st.sampled_from([f"sk-{SECRET}", f"token={SECRET}", f"Bearer {SECRET}", f"u:{SECRET}@h"]),
    name=st.sampled_from(["code", "stage", "path", "problem", "hint", "message", "unknown"]),
)
def test_a_secret_in_a_failure_never_comes_out(kind, secret, name):
    failure = {name: secret, "diagnostics": [{name: secret, "key": secret, "field": secret, "dependencyPath": secret}]}
    assert SECRET not in str(project(kind, {"failure": failure}))


@settings(max_examples=100, deadline=None)
@given(kind=st.sampled_from(sorted(KINDS)), payload=payloads)
def test_projection_is_deterministic(kind, payload):
    assert project(kind, payload).SerializeToString(deterministic=True) == project(kind, payload).SerializeToString(
        deterministic=True
    )
