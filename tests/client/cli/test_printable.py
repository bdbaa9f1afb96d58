"""What an agent writes cannot steer a terminal."""

import json

import pytest

from compass.cli.printable import json_line, one_line, printable
from compass.v1 import compass_pb2 as pb

STEERING = ["\x1b[2J", "\x9b2J", "\x07", "\x08", "\x0b", "\x0c", "\x7f", "\x00", "\u202e", "\u2066", "\u2028", "\x85"]


@pytest.mark.parametrize("text", STEERING)
def test_what_steers_a_terminal_is_shown_as_an_escape(text):
    shown = printable(f"a{text}b")

    assert shown.startswith("a\\")
    assert text[0] not in shown


def test_plain_text_of_any_language_stays_as_it_is():
    text = "naïve 漢字 😀 שלום\n\tindented"

    assert printable(text) == text


def test_a_windows_line_end_is_a_line_end_and_a_lone_return_is_not():
    assert printable("a\r\nb\rc") == "a\nb\\rc"


def test_one_line_is_one_line():
    assert one_line("a\nb\tc\r") == "a\\nb\\tc\\r"


@pytest.mark.parametrize("text", [*STEERING, "é漢😀"])
def test_a_json_line_is_one_line_that_steers_nothing_and_reads_back(text):
    frame = pb.AgentSessionFrame(seq=1, event=pb.SessionEvent(notice=pb.SessionNotice(text=text)))

    line = json_line(frame)

    assert line.splitlines() == [line]
    assert line.isprintable()
    assert json.loads(line)["event"]["notice"]["text"] == text
    assert json.loads(line)["seq"] == "1"
