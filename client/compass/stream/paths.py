"""Paths into a frame: the small language in which a dialect's table says where something is.

Steps are joined by slashes. A name goes into an object, `*` into each item of a list; `?name`, `!name`,
`name=value` and `name!=value` go nowhere, but keep only objects where that field is set, is not set, has that value, or
has it not.
"""

from collections.abc import Iterator, Mapping
from functools import cache

Frame = Mapping[str, object]
"""One decoded frame of a provider's stream."""


def values(frame: object, path: str) -> list[object]:
    """Find everything at `path`, in order. What is absent or null is not found; the empty path is the frame itself."""
    found = [frame]
    for step in _steps(path):
        found = [value for item in found for value in _follow(item, step) if value is not None]
    return found


def texts(frame: object, paths: tuple[str, ...]) -> list[str]:
    """Find the pieces of text at the first of `paths` that holds any: a provider may say the same thing twice."""
    for path in paths:
        if found := [value for value in values(frame, path) if value and isinstance(value, str)]:
            return found
    return []


def word(frame: object, path: str) -> str | None:
    """Find the first piece of text at one path."""
    return next(iter(texts(frame, (path,))), None)


def total(frame: object, paths: tuple[str, ...]) -> int | None:
    """Add the counts at all of `paths`, None if there is none."""
    found = [value for path in paths for value in values(frame, path) if isinstance(value, int)]
    return sum(found) if found else None


@cache
def _steps(path: str) -> tuple[str, ...]:
    return tuple(path.split("/")) if path else ()


def _follow(item: object, step: str) -> Iterator[object]:
    if step == "*":
        if isinstance(item, list):
            yield from item
    elif isinstance(item, Mapping):
        yield _field(item, step)


def _field(item: Frame, step: str) -> object:
    name, equals, value = step.partition("=")
    if equals:
        has_it = item.get(name.removesuffix("!")) == value
        return item if has_it != name.endswith("!") else None
    if step.startswith(("?", "!")):
        return item if bool(item.get(step[1:])) == (step[0] == "?") else None
    return item.get(step)
