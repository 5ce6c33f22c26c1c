"""The files of constraints: every dependency in one release, with hashes."""

import re
import tomllib
from itertools import combinations
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = "constraints.txt"
BUILD = "constraints-build.txt"
TESTS = "tests/constraints.txt"
PYTHONS = ("3.11", "3.12", "3.13")


def requirements(*names: str) -> list[Requirement]:
    """The requirements in these files, without their hashes."""
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in names]
    return [
        Requirement(line.rstrip("\\ "))
        for text in texts
        for line in text.splitlines()
        if not line.startswith(" ")
    ]


def pinned(python: str, *names: str) -> dict[str, str]:
    """Name and release of each package that these files install on Linux for a version of Python."""
    place = {
        "python_version": python,
        "python_full_version": python + ".0",
        "sys_platform": "linux",
        "os_name": "posix",
    }
    return {
        each.name: str(each.specifier).removeprefix("==")
        for each in requirements(*names)
        if each.marker is None or each.marker.evaluate(place)
    }


def asked(*extras: str) -> list[Requirement]:
    """What pyproject.toml asks for: the router's dependencies, and those of extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [*project["dependencies"]]
    lines += [line for name in extras for line in project["optional-dependencies"][name]]
    return [each for each in map(Requirement, lines) if each.name != project["name"]]


@pytest.mark.parametrize("python", PYTHONS)
def test_every_dependency_is_there_in_a_release_that_is_asked_for(python: str) -> None:
    """Dependencies of the router, its extras, its build and its tests have a release within their bounds."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]
    wanted = [
        (asked("demo", "otel", "simulate", "spark"), pinned(python, PRODUCT)),
        (asked("test"), pinned(python, BUILD, PRODUCT, TESTS)),
        ([Requirement(line) for line in ("build", *build["requires"])], pinned(python, BUILD)),
    ]
    for needs, found in wanted:
        for each in needs:
            name = re.sub(r"[-_.]+", "-", each.name).lower()
            assert each.specifier.contains(found[name]), each


@pytest.mark.parametrize("name", [PRODUCT, BUILD, TESTS])
def test_everything_has_a_hash_and_no_place(name: str) -> None:
    """What is installed is what was tested, from whatever index somebody has."""
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = re.split(r"^(?=\S)", text, flags=re.MULTILINE)[1:]
    assert len(blocks) == len(requirements(name))
    assert all("--hash=sha256:" in block for block in blocks)
    assert "://" not in text
    assert "--index-url" not in text


@pytest.mark.parametrize("names", list(combinations([PRODUCT, BUILD, TESTS], 2)))
@pytest.mark.parametrize("python", PYTHONS)
def test_files_name_the_same_releases(python: str, names: tuple[str, str]) -> None:
    """A package that two of the files name has one release, so that either order of installing works."""
    first, second = (pinned(python, name) for name in names)
    assert {name: first[name] for name in first.keys() & second.keys()} == {
        name: second[name] for name in first.keys() & second.keys()
    }
