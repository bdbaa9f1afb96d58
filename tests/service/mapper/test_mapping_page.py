"""The page that describes the mapping names exactly the inner events that the mapper reads."""

import re
from pathlib import Path
from typing import get_args

from compass_service.mapper.inner import Inner

PAGE = Path(__file__).parents[3] / "docs" / "mapping.md"


def test_the_page_lists_the_events_that_are_read():
    _, _, table = PAGE.read_text(encoding="utf-8").partition("## Table\n")
    table, _, _ = table.partition("\n## ")
    listed = {
        name
        for row in table.splitlines()
        if row.startswith("| `")
        for name in re.findall(r"`(\w+)`", row.split("|")[1])
    }
    assert listed == {event.__struct_config__.tag for event in get_args(Inner)}
