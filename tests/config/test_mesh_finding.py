"""Findings over several configurations."""

import runpy
from pathlib import Path

from vpnrouter.config.problem_list import MeshProblems

KIT = runpy.run_path(str(Path(__file__).with_name("mesh_kit.py")))
router, load_all = KIT["router"], KIT["load_all"]


def test_lines() -> None:
    """A finding is a line with its place; what is no error says so."""
    (loaded,) = load_all([router("a", {"v": {}})])
    found = MeshProblems()
    found.add("error", loaded, ("router", "name"), "one")
    found.add("warning", loaded, ("router", "name"), "two")
    found.add_key("note", loaded, ("msg_vpns", "v"), "three")
    lines = [str(each) for each in found.problems]
    assert lines[0].startswith("a.yaml:3:")
    assert lines[0].endswith(": router.name: one")
    assert ": warning: router.name: two" in lines[1]
    assert ": note: msg_vpns.v: three" in lines[2]
    assert found.errors() == 1
