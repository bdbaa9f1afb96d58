"""What the command line says of itself, in its help and on its page."""

import re
from pathlib import Path

from click.testing import CliRunner

from compass.cli import main
from compass.cli.exits import Exit

PAGE = (Path(__file__).parents[3] / "docs" / "cli.md").read_text()


def test_every_exit_code_is_in_the_help_and_on_the_page():
    shown = CliRunner().invoke(main, ["--help"]).output

    in_help = re.findall(r"^ +(\d+) ", shown.partition("Exit codes:")[2], re.MULTILINE)
    on_page = re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)

    assert [int(code) for code in in_help] == sorted(Exit)
    assert [int(code) for code in on_page] == sorted(Exit)


def test_every_command_takes_json_and_is_in_the_help_and_on_the_page():
    on_page = re.findall(r"^\| `(\w+)[ `]", PAGE, re.MULTILINE)

    assert sorted(on_page) == sorted(main.commands)
    for name, command in main.commands.items():
        assert command.help, name
        assert "as_json" in {parameter.name for parameter in command.params}, name
