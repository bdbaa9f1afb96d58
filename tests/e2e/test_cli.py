"""The command line against a real server: what it prints, and what its exit codes say."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from compass.cli import main
from e2e import wire
from e2e.commands import DATA, ROOT, Done, lines_of

RECORDINGS = sorted((DATA / "recordings").glob("*.jsonl"), key=lambda path: path.stem)
_numbers = count(1)


class Cli:
    """Runs `compass-trace` in this process against one server."""

    def __init__(self, address: str, directory: Path) -> None:
        self.address = address
        self._directory = directory

    def __call__(self, *arguments: str) -> Done:
        done = CliRunner().invoke(main, arguments, env={"COMPASS_SERVER": self.address})
        return Done(done.exit_code, done.stdout, done.stderr)

    def push(self, session: str, events: bytes, *flags: str) -> Done:
        path = self._directory / "events.jsonl"
        path.write_bytes(events)
        return self("push", session, str(path), *flags)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One server process for all tests of this module; each test has sessions of its own."""
    command = [sys.executable, "-m", "compass_service", "--listen", "127.0.0.1:0", "--reattach-window-s", "0.2"]
    process = subprocess.Popen(
        [*command, "--data-dir", str(tmp_path_factory.mktemp("data"))],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "client"), str(ROOT / "service")))},
    )
    with process:
        yield json.loads(process.stdout.readline())["listen"][0]
        process.kill()


@pytest.fixture
def cli(address: str, tmp_path: Path) -> Cli:
    return Cli(address, tmp_path)


@pytest.fixture
def session() -> str:
    return f"s{next(_numbers)}"


def timeless(frame: dict[str, Any]) -> dict[str, Any]:
    """Leave out of a frame what differs from run to run."""
    kept = json.loads(json.dumps({key: value for key, value in frame.items() if key not in ("seq", "sessionId")}))
    event = kept.get("event", {})
    for name in ("atUnixMs", "startedAtUnixMs"):
        event.pop(name, None)
        event.get("activity", {}).pop(name, None)
    return kept


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_a_recording_pushed_and_tailed_is_its_golden_frames_between_start_and_stop(cli, session, recording):
    pushed = cli("push", session, str(recording))
    assert (pushed.code, pushed.out) == (0, "")
    assert f"session {session} is stopped" in pushed.err

    tailed = cli("tail", session, "--json")

    golden = [json.loads(line) for line in (DATA / "golden" / recording.name).read_text().split("\n") if line]
    assert (tailed.code, tailed.err) == (0, "")
    assert [str(seq) for seq in range(1, len(tailed.json) + 1)] == [frame["seq"] for frame in tailed.json]
    first, *rest, last = map(timeless, tailed.json)
    assert first == {"state": "AGENT_SESSION_STATE_STARTING"}
    assert rest[: len(golden)] == [timeless(frame) for frame in golden]
    assert last == {"state": "AGENT_SESSION_STATE_STOPPED"}


def test_push_reports_what_is_stored_and_leaves_the_session_open_when_asked(cli, session):
    pushed = cli.push(session, b"\n" + lines_of("pi-ok") + b"\n\n  \n", "--no-close", "--json")

    assert pushed.json == [{"sessionId": session, "pushed": 16, "acknowledged": 16, "dropped": 0, "closed": False}]
    assert cli("show", session, "--json").json[0]["state"] != "AGENT_SESSION_STATE_STOPPED"


def test_a_bad_line_is_named_and_what_came_before_it_is_stored(cli, session):
    good = lines_of("pi-ok").splitlines(keepends=True)

    pushed = cli.push(session, b"".join([*good[:3], b"\n", b"{broken\n", *good[3:]]))

    assert pushed.code == 7
    assert pushed.err == (
        "compass-trace: line 5 is not one JSON object; the 3 events before it are stored, nothing after it; "
        f"session {session} stays open\n"
    )
    assert cli("show", session, "--json").json[0]["state"] != "AGENT_SESSION_STATE_STOPPED"


def test_text_with_every_odd_separator_survives_a_push(cli, session):
    text = "a\u2028b\u2029c\x85d\x0be\x0cf\rg\x00h"
    event = json.dumps({"type": "notice", "message": text}, ensure_ascii=False).encode()
    start = json.dumps({"type": "message_start", "message": {"role": "user", "content": text}}, ensure_ascii=False)

    cli.push(session, event + b"\n" + start.encode() + b"\n")
    tailed = cli("tail", session, "--json")

    users = [frame["event"]["userMessage"] for frame in tailed.json if "userMessage" in frame.get("event", {})]
    assert [user["text"] for user in users] == [text]


def test_a_line_of_eight_megabytes_is_pushed(cli, session):
    start = json.dumps({"type": "message_start", "message": {"role": "user", "content": "x" * 8_000_000}})

    pushed = cli.push(session, start.encode())
    (row, *more) = cli("transcript", session, "--json").json

    assert pushed.code == 0
    assert "".join(part["text"] for part in (row, *more)) == "x" * 8_000_000
    assert {part["messageId"] for part in more} == {row["messageId"]}


def test_a_long_file_is_pushed_without_a_drop(cli, session):
    deltas = (wire.delta(f"{number} ") for number in range(40_000))

    pushed = cli.push(session, "\n".join([wire.message_start(), *deltas]).encode(), "--json")
    rows = cli("transcript", session, "--json").json

    assert pushed.json == [
        {"sessionId": session, "pushed": 40_001, "acknowledged": 40_001, "dropped": 0, "closed": True}
    ]
    assert "".join(row["text"] for row in rows) == "".join(f"{number} " for number in range(40_000))


def test_a_stopped_session_takes_no_more_events(cli, session):
    cli.push(session, lines_of("pi-ok"))

    pushed = cli.push(session, lines_of("pi-ok"))

    assert pushed.code == 6
    assert pushed.err.startswith(f"compass-trace: session {session} is stopped")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("tail", "nowhere"), 3, "session nowhere was not found"),
        (("show", "nowhere"), 3, "session nowhere was not found"),
        (("wait", "nowhere"), 3, "session nowhere was not found"),
        (("transcript", "nowhere"), 3, "session nowhere was not found"),
        (("close", "nowhere"), 3, "session nowhere was not found"),
        (("show", "-bad-"), 2, "No such option"),
        (("show", "no/slash"), 2, "session_id"),
        (("push", "no/slash", "/dev/null"), 2, "session_id"),
        (("tail", "any", "--since", "9", "--last", "1"), 2, "exclude each other"),
        (("tail", "any", "--since", "-1"), 2, "--since"),
        (("tail", "any", "--since", str(2**64)), 2, "--since"),
        (("push", "any", "/no/such/file"), 2, "/no/such/file"),
        (("--server", "nonsense", "info"), 2, "--server: a server's address is HOST:PORT or unix:/PATH"),
        (("unheard-of",), 2, "No such command"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line_with_its_exit_code(cli, arguments, code, said):
    done = cli(*arguments)

    assert (done.code, done.out) == (code, "")
    assert said in done.err
    assert "Traceback" not in done.err
    if code != 2:
        assert done.err.count("\n") == 1


def test_a_cursor_above_the_head_is_a_wrong_value(cli, session):
    cli.push(session, lines_of("pi-ok"))

    done = cli("tail", session, "--since", "999")

    assert (done.code, done.out) == (2, "")
    assert "has not reached that seq" in done.err


@pytest.mark.parametrize("command", ["info", "sessions", "tail", "push", "wait"])
def test_a_server_that_is_not_there_is_told_soon(tmp_path, command):
    events = tmp_path / "events.jsonl"
    events.write_bytes(lines_of("pi-ok"))
    arguments = {"tail": ["any"], "push": ["any", str(events)], "wait": ["any"]}.get(command, [])

    done = Cli(f"unix:{tmp_path}/nobody", tmp_path)(command, *arguments)

    assert done.code == 4
    assert done.err == "compass-trace: the server is not available (UNAVAILABLE)\n"


def test_a_tail_begins_where_it_is_told_to(cli, session):
    cli.push(session, lines_of("pi-ok"))
    whole = cli("tail", session, "--json").json

    since = cli("tail", session, "--json", "--since", "3")
    last = cli("tail", session, "--json", "--last", "2")
    live = cli("tail", session, "--json", "--live")

    assert (since.code, since.json) == (0, whole[3:])
    assert (last.code, last.json) == (0, whole[-2:])
    assert live.code == 0
    assert all("seq" not in frame for frame in live.json)


def test_a_tail_of_an_open_session_ends_at_the_head_when_it_is_not_to_follow(cli, session):
    cli.push(session, lines_of("pi-ok"), "--no-close")

    tailed = cli("tail", session, "--json", "--no-follow")

    assert tailed.code == 0
    assert "AGENT_SESSION_STATE_READY" in {frame.get("state") for frame in tailed.json}


def test_a_readable_tail_shows_the_turn_and_its_failure(cli, session):
    cli.push(session, lines_of("omp-inband"))

    shown = cli("tail", session).out

    assert "user > do the thing\nagent > The answer is forty" in shown
    assert "⚠ incomplete: cut off by a failure" in shown
    assert "✗ ERROR" in shown
    assert "\x1b" not in shown
    assert shown.endswith("── stopped ──\n")


@pytest.mark.parametrize(
    ("recording", "code", "outcome"),
    [("omp-ok", 0, "done"), ("pi-err429", 10, "failed"), ("omp-rpc-abort", 11, "aborted")],
)
def test_wait_exits_by_the_outcome_of_a_session_that_rests(cli, session, recording, code, outcome):
    cli.push(session, lines_of(recording))

    waited = cli("wait", session, "--json")

    assert (waited.code, waited.err) == (code, "")
    assert waited.json[0]["outcome"] == outcome
    assert ("error" in waited.json[0]) == (code != 0)


def test_wait_tells_an_agent_that_is_gone_from_one_that_failed(cli, session):
    half = lines_of("omp-rpc-abort").splitlines(keepends=True)[:12]
    cli.push(session, b"".join(half), "--no-close")

    waited = cli("wait", session)

    assert (waited.code, waited.err) == (12, "")
    assert waited.out.startswith("lost")


def test_sessions_are_listed_newest_first(cli):
    cli.push("older", lines_of("pi-ok"))
    cli.push("newer", lines_of("omp-rpc-abort"))

    listed = cli("sessions", "--json")
    shown = cli("sessions")

    ours = ("SESSION", "newer", "older")  # other tests have sessions too
    assert [report["sessionId"] for report in listed.json if report["sessionId"] in ours] == ["newer", "older"]
    assert [line.split()[0] for line in shown.out.splitlines() if line.startswith(ours)] == list(ours)


def test_close_stops_a_session_and_a_second_time_changes_nothing(cli, session):
    cli.push(session, lines_of("pi-ok"), "--no-close")

    first = cli("close", session, "--json")
    second = cli("close", session, "--json")

    assert first.json[0]["state"] == second.json[0]["state"] == "AGENT_SESSION_STATE_STOPPED"
    assert first.json[0]["headSeq"] == second.json[0]["headSeq"]
    assert "stopped" in cli("show", session).out


def test_info_tells_the_version_and_the_limits(cli):
    told = cli("info", "--json").json[0]

    assert told["logBackend"] == "sqlite"
    assert told["limits"]["maxFrameBytes"] == str(256 * 1024)
    assert "max frame bytes" in cli("info").out


def test_a_transcript_has_the_failure_beside_the_message_that_it_cut_off(cli, session):
    cli.push(session, lines_of("omp-inband"))

    user, agent = cli("transcript", session, "--json").json
    shown = cli("transcript", session).out

    assert user["text"] == "do the thing"
    assert (agent["incomplete"], len(agent["errors"])) == (True, 1)
    assert "429" not in agent["text"]
    assert shown.index("The answer is forty") < shown.index("⚠ incomplete") < shown.index("✗ ERROR")


def test_retried_attempts_are_not_in_the_transcript(cli, session):
    cli.push(session, lines_of("pi-err429"))

    (row,) = cli("transcript", session, "--json").json

    assert (row["role"], len(row["errors"])) == ("TRANSCRIPT_ROLE_USER", 1)


def test_the_server_is_found_by_the_option_before_the_environment(address, tmp_path):
    elsewhere = Cli(f"unix:{tmp_path}/nobody", tmp_path)

    assert elsewhere("--server", address, "info").code == 0
