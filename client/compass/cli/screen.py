"""Output for a person: styled lines, on standard output unless another file is given."""

import os
from typing import TYPE_CHECKING, Literal, TextIO

if TYPE_CHECKING:
    from compass.cli.blocks import Line


class Screen:
    """Writes lines in colour where a terminal reads them, plain elsewhere and where NO_COLOR is set."""

    def __init__(self, file: TextIO | None = None) -> None:
        from rich.console import Console  # noqa: PLC0415 - a fifth of the time that --help would take
        from rich.text import Text  # noqa: PLC0415

        self._text = Text
        color_system: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
        self._console = Console(file=file, color_system=color_system, highlight=False)

    def print(self, *lines: "Line", end: str = "\n") -> None:
        """Write lines. Wrapping is left to the terminal: what is wrapped here could not be copied as it was."""
        for line in lines:
            self._console.print(self._text(line.text, style=line.style), soft_wrap=True, end=end)

    def flush(self) -> None:
        """Send what was written on its way."""
        self._console.file.flush()
