"""The small faults of tests/mutants: each still has its place, and the list of those noticed is about them."""

import ast
import importlib.util
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

FOLDER: Final = Path(__file__).resolve().parent / "mutants"

LEAST: Final = {
    "topics": 7,
    "wire": 7,
    "routing": 7,
    "guaranteed": 7,
    "bridges": 7,
    "spool": 7,
    "config": 7,
    "management": 7,
    "report": 7,
}
"""Faults that an area has at least."""


@pytest.fixture(scope="module")
def run() -> ModuleType:
    """The program that plants faults."""
    spec = importlib.util.spec_from_file_location("mutants_run", FOLDER / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_each_fault_has_one_place_and_compiles(run: ModuleType) -> None:
    """The text is found once in the tree, changes, and is Python afterwards; a file that moved does not matter."""
    known = run.definitions()
    for fault in run.load():
        place = run.place_of(fault, known)
        assert place.text != (run.ROOT / place.path).read_text(encoding="utf-8"), fault.id
        ast.parse(place.text, str(place.path))


def test_no_area_is_thin(run: ModuleType) -> None:
    """There are 80 faults at least, each with an id of its own, and tests to notice it that exist."""
    faults = run.load()
    areas = Counter(fault.area for fault in faults)
    assert {name: areas[name] for name in LEAST if areas[name] < LEAST[name]} == {}
    assert len(faults) >= 80
    assert len({fault.id for fault in faults}) == len(faults)
    assert [
        (fault.id, path)
        for fault in faults
        for path in fault.tests
        if not (run.ROOT / path).is_dir()
    ] == []


def test_what_is_noticed_exists(run: ModuleType) -> None:
    """The list of faults that are noticed names none that are gone."""
    assert run.noticed_before().keys() <= {fault.id for fault in run.load()}
    assert run.noticed_before()


@pytest.mark.parametrize(
    ("old", "new", "made"),
    [
        ("return 1", "return 2", "def f():\n    if True:\n        return 2\n"),
        ("if True:\n    return 1", "return 3", "def f():\n    return 3\n"),
    ],
)
def test_text_is_found_whatever_its_indentation(
    run: ModuleType, tmp_path: Path, old: str, new: str, made: str
) -> None:
    """A function that became a method, or the other way round, keeps its faults."""
    (tmp_path / "vpnrouter").mkdir()
    (tmp_path / "vpnrouter" / "one.py").write_text("def f():\n    if True:\n        return 1\n")
    fault = run.Fault("x", "area", "f", old, new, ())
    place = run.place_of(fault, run.definitions(tmp_path))
    assert place.text == made


@pytest.mark.parametrize("old", ["return 2", "return 1"])
def test_a_place_that_is_not_the_only_one_is_refused(
    run: ModuleType, tmp_path: Path, old: str
) -> None:
    """A text that is nowhere, or in two definitions of the name, is an error at once."""
    (tmp_path / "vpnrouter").mkdir()
    for name in ("one.py", "two.py"):
        (tmp_path / "vpnrouter" / name).write_text("class C:\n    def f(self):\n        return 1\n")
    fault = run.Fault("x", "area", "C.f", old, "pass", ())
    with pytest.raises(run.BadFault):
        run.place_of(fault, run.definitions(tmp_path))
