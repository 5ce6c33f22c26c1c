"""constraints.txt: every dependency in one release, with hashes."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent


def pinned() -> dict[str, str]:
    """Name and release of each package in the file."""
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", text, re.MULTILINE))


def test_every_dependency_is_there_in_a_release_that_is_asked_for() -> None:
    """Dependencies of the router and of its extras have a release within the bounds of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    asked = [
        *project["dependencies"],
        *(each for name in extras if name != "test" for each in extras[name]),
    ]
    found = pinned()
    for each in map(Requirement, asked):
        if each.name != project["name"]:
            name = re.sub(r"[-_.]+", "-", each.name).lower()
            assert each.specifier.contains(found[name]), each


def test_everything_has_a_hash_and_no_place() -> None:
    """What is installed is what was tested, from whatever index somebody has."""
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    blocks = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(blocks) == len(pinned())
    assert all("--hash=sha256:" in block for block in blocks)
    assert "://" not in text
    assert "--index-url" not in text
