"""What lines of pi and oh-my-pi mean, recordings included."""

import base64
import json
from pathlib import Path

import pytest

from compass.bridge.dialects import Answer, Aside, Dialog, Inner, OmpDialect, PiDialect, Ready
from compass.bridge.protocol import Protocol, dialect_of, protocol_of

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"


def heard(dialect, message):
    return dialect.read(json.dumps(message).encode())[0]


def chunks_of(whole: bytes, size: int, **more: object) -> list[bytes]:
    parts = [whole[start : start + size] for start in range(0, len(whole), size)]
    return [
        json.dumps(
            {
                "type": "rpc_chunk",
                "chunkId": "c1",
                "index": index,
                "count": len(parts),
                "byteLength": len(whole),
                "data": base64.b64encode(part).decode(),
                **more,
            }
        ).encode()
        for index, part in enumerate(parts)
    ]


@pytest.mark.parametrize("name", ["pi-rpc-abort", "pi-rpc-autocompact", "pi-rpc-prestep-abort", "omp-rpc-abort"])
def test_lines_of_a_recorded_run_are_told_from_its_inner_events(name):
    dialect = OmpDialect() if name.startswith("omp") else PiDialect()
    lines = (RECORDINGS / f"{name}.jsonl").read_bytes().split(b"\n")[:-1]
    kinds = [(json.loads(line)["type"], type(dialect.read(line)[0])) for line in lines]

    protocol = {"response": Answer, "ready": Ready, "extension_ui_request": Aside, "available_commands_update": Aside}
    assert kinds == [(kind, protocol.get(kind, Inner)) for kind, _ in kinds]


def test_oh_my_pi_is_ready_at_its_greeting_and_asked_for_chunks_when_it_has_them():
    greeting = json.loads((RECORDINGS / "omp-rpc-abort.jsonl").read_bytes().split(b"\n")[0])
    dialect = OmpDialect()
    first = heard(dialect, greeting)

    assert dialect.is_ready(first)
    assert [command["protocolVersion"] for command in dialect.reply(first)] == [2]
    assert OmpDialect().reply(Ready({"type": "ready"})) == []


def test_pi_is_ready_at_its_first_answer():
    dialect = PiDialect()
    opening = dialect.opening()[0]
    answer = heard(dialect, {"type": "response", "id": opening["id"], "command": "get_state", "success": True})

    assert dialect.is_ready(answer)


def test_a_message_in_chunks_is_put_together():
    event = json.dumps({"type": "message_start", "message": {"role": "user", "content": "ö" * 1000}}).encode()
    dialect = OmpDialect()
    read = [dialect.read(line)[0] for line in chunks_of(event, 300)]

    assert {type(each) for each in read[:-1]} == {Aside}
    assert read[-1] == Inner(event, "message_start", is_user=True, text="ö" * 1000)


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda lines: lines[1:], id="without its first"),
        pytest.param(lambda lines: [lines[0], lines[2]], id="with a hole"),
        pytest.param(
            lambda lines: [line.replace(b'"byteLength": 900', b'"byteLength": 7') for line in lines], id="size"
        ),
        pytest.param(lambda lines: [lines[0].replace(b'"data": "', b'"data": "%')], id="no base64"),
    ],
)
def test_chunks_that_do_not_fit_are_refused_and_the_next_message_is_read(spoil):
    whole = json.dumps({"type": "notice", "message": "x" * (900 - 33)}).encode()
    assert len(whole) == 900
    dialect = OmpDialect()

    def read_all(lines: list[bytes]) -> None:
        for line in lines:
            dialect.read(line)

    with pytest.raises(ValueError, match="chunk"):
        read_all(spoil(chunks_of(whole, 300)))
    assert isinstance([dialect.read(line) for line in chunks_of(whole, 300)][-1][0], Inner)


def test_a_message_larger_than_announced_is_refused():
    dialect = OmpDialect()
    dialect.reply(heard(dialect, {"type": "ready", "maxReassembledFrameBytes": 500}))
    first, second, *_ = chunks_of(b"x" * 900, 300)
    dialect.read(first)
    with pytest.raises(ValueError, match="larger"):
        dialect.read(second)


def test_only_what_blocks_is_a_dialog():
    dialect = PiDialect()
    assert isinstance(heard(dialect, {"type": "extension_ui_request", "id": "1", "method": "confirm"}), Dialog)
    assert isinstance(heard(dialect, {"type": "extension_ui_request", "id": "1", "method": "setStatus"}), Aside)


@pytest.mark.parametrize("line", [b"no json", b"[1]", b"17", b'{"type": "mess', b'"x"', b"[" * 100_000])
def test_what_is_no_line_of_the_protocol_is_refused(line):
    with pytest.raises(ValueError):  # noqa: PT011 - the sentence is whoever parses it
        PiDialect().read(line)


def test_lone_surrogates_are_read():
    line = b'{"type":"message_start","message":{"role":"user","content":[{"type":"text","text":"\\ud83d"}]}}'
    assert PiDialect().read(line)[0].is_user


def test_an_agent_that_cannot_say_how_it_stands_is_not_taken_for_idle():
    dialect = PiDialect()
    answer = heard(dialect, {"type": "response", "id": "1", "command": "get_state", "success": False, "error": "no"})
    assert not dialect.state(answer).is_idle


@pytest.mark.parametrize(
    ("command", "protocol", "dialect"),
    [
        (["pi", "--mode", "rpc"], Protocol.RPC, "pi"),
        (["/usr/bin/omp", "--mode=rpc-ui"], Protocol.RPC, "omp"),
        (["node", "/opt/omp.js", "--mode", "json", "hi"], Protocol.JSON, "omp"),
        (["my-agent", "--mode"], Protocol.JSON, "pi"),
        (["my-agent"], Protocol.AUTO, "pi"),
    ],
)
def test_the_command_line_tells_protocol_and_family(command, protocol, dialect):
    assert (protocol_of(command), dialect_of(command)) == (protocol, dialect)
