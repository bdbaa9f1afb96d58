"""What the repository says of itself is so: dependencies, commands, sizes; and nothing says where it was made."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
FOLDERS = [".ci", "bench", "client", "docs", "examples", "proto", "service", "tests", "tools"]
BINARY = {".binpb"}
MAX_LINES = 400

BUILD_MACHINE = re.compile(r"(?<![\w.])/(?:work|root|home/\w+)/")
REGISTRY = re.compile(
    r"(?:pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|proxy\.golang\.org|ghcr\.io|docker\.io|crates\.io)"
)


def files() -> Iterator[Path]:
    """Every text file of the repository, and none that a tool or a user left beside them."""
    yield from (path for path in ROOT.iterdir() if path.is_file() and path.name != ".git")
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and path.suffix not in BINARY and "__pycache__" not in path.parts:
                yield path


def findings(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}"
        for path in files()
        for number, line in enumerate(path.read_text().split("\n"), 1)
        if pattern.search(line)
    ]


def test_no_file_names_a_path_of_a_build_machine() -> None:
    assert findings(BUILD_MACHINE) == []


def test_no_file_names_a_package_registry() -> None:
    assert findings(REGISTRY) == []


def test_no_module_is_longer_than_a_reader_holds_in_mind() -> None:
    modules = (path for path in files() if path.suffix == ".py" and "_pb2" not in path.name)
    lengths = {str(path.relative_to(ROOT)): path.read_text().count("\n") for path in modules}
    assert {module: lines for module, lines in lengths.items() if lines > MAX_LINES} == {}


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def requirements() -> dict[str, list[Requirement]]:
    """What each extra needs, with what everything needs under the empty name."""
    declared = {"": project()["dependencies"], **project()["optional-dependencies"]}
    return {extra: [Requirement(line) for line in lines] for extra, lines in declared.items()}


def test_the_readme_explains_exactly_the_dependencies_that_there_are() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| (\w*) ?\| \S.* \|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    needed = {(need.name, extra) for extra, needs in requirements().items() for need in needs}
    assert set(rows) == needed


@pytest.mark.parametrize("extra", requirements())
def test_constraints_pin_a_version_of_every_dependency_that_is_allowed(extra: str) -> None:
    lines = re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    pins = {name.lower().replace("_", "-"): version for name, version in lines}
    unmet = [str(need) for need in requirements()[extra] if pins.get(need.name) not in need.specifier]
    assert unmet == []


def test_every_command_of_the_readme_is_a_target() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    used = set(re.findall(r"\bmake ([a-z-]+)", (ROOT / "README.md").read_text() + (ROOT / ".ci/run").read_text()))
    assert used - targets == set()
    assert {"demo", "test"} <= used
