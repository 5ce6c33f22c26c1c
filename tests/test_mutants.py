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
    """What it is bound to is found once, changes, and is Python afterwards; a file that moved does not matter."""
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
        if not (run.ROOT / path).exists()
    ] == []


def test_what_is_noticed_exists(run: ModuleType) -> None:
    """The list of faults that are noticed names none that are gone."""
    assert run.noticed_before().keys() <= {fault.id for fault in run.load()}
    assert run.noticed_before()


def made(
    run: ModuleType, tmp_path: Path, text: str, old: str, new: str, nth: tuple[int, int] = (1, 1)
) -> str:
    """What becomes of a module of this text by a fault in its `f`, as trees write it."""
    (tmp_path / "vpnrouter").mkdir(exist_ok=True)
    (tmp_path / "vpnrouter" / "one.py").write_text(text)
    fault = run.Fault("x", "area", "f", old, new, (), False, *nth)
    place = run.place_of(fault, run.definitions(tmp_path))
    assert place.path == Path("vpnrouter/one.py")
    assert place.text.splitlines()[0] == text.splitlines()[0]
    return ast.unparse(ast.parse(place.text))


WRITTEN: Final = """# kept
def f(a):
    if not (
        a == 'x'  # why
        and g("ü", a)
    ):
        a = g(1,
              2)

        return a
    elif a:
        return 3
    return {"one": 1, "two": 2, **a}
"""


STATEMENTS: Final = ("a = g(1, 2)\n        return a", "if b:\n            a = b")


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        pytest.param('a == "x" and g("ü", a)', "a or g", ("a == 'x' and g('ü', a)", "(a or g)"), id="lines"),
        pytest.param("'x'", "a if a else 'y'", ("'x'", "(a if a else 'y')"), id="within"),
        pytest.param("g('ü', a)", "a", ("g('ü', a)", "a"), id="bytes-before"),
        pytest.param("a", "b", None, id="several"),
        pytest.param("return a", "return b", ("return a\n", "return b\n"), id="statement"),
        pytest.param("a = g(1, 2)\nreturn a", "if b:\n    a = b", STATEMENTS, id="statements"),
        pytest.param("g(1, 2)", "pass", None, id="expression-for-statement"),
        pytest.param("if a:\n    return 3", "if b:\n    return 3", None, id="elif"),
        pytest.param("{'two': 2}", "{'three': 3}", ("'two': 2", "'three': 3"), id="entry"),
        pytest.param("{'one': 1, 'two': 2}", "{'two': 1}", ("'one': 1, 'two': 2", "'two': 1"), id="entries"),
        pytest.param("{'two': 2, **a}", "{'two': 2}", (", **a}", "}"), id="rest"),
        pytest.param("{'one': 1, **a}", "{}", None, id="entries-apart"),
        pytest.param("if a", "if b", None, id="fragment"),
    ],
)  # fmt: skip
def test_a_place_is_found_however_it_is_written(
    run: ModuleType, tmp_path: Path, old: str, new: str, changed: tuple[str, str] | None
) -> None:
    """Line breaks, comments, quotes and parentheses do not matter; what is no whole expression or statement does."""
    if changed is None:
        with pytest.raises(run.BadFault):
            made(run, tmp_path, WRITTEN, old, new)
        return
    plain = ast.unparse(ast.parse(WRITTEN))
    assert plain.count(changed[0]) == 1
    wanted = ast.unparse(ast.parse(plain.replace(*changed)))
    assert made(run, tmp_path, WRITTEN, old, new) == wanted


@pytest.mark.parametrize(
    ("nth", "wanted"),
    [
        ((1, 1), None),
        ((1, 2), "return x < 2 and y < 1"),
        ((2, 2), "return y < 1 and x < 2"),
        ((3, 2), None),
        ((1, 3), None),
    ],
)
def test_one_of_equal_places_is_named(
    run: ModuleType, tmp_path: Path, nth: tuple[int, int], wanted: str | None
) -> None:
    """They are counted as they stand in the text, and how many there are is checked."""
    text = "def f(x, y):\n    return y < 1 and y < 1\n"
    if wanted is None:
        with pytest.raises(run.BadFault):
            made(run, tmp_path, text, "y < 1", "x < 2", nth)
    else:
        assert made(run, tmp_path, text, "y < 1", "x < 2", nth).endswith(wanted)


@pytest.mark.parametrize("old", ["return 2", "return 1"])
def test_a_place_that_is_not_the_only_one_is_refused(
    run: ModuleType, tmp_path: Path, old: str
) -> None:
    """A statement that is nowhere, or in two definitions of the name, is an error at once."""
    (tmp_path / "vpnrouter").mkdir()
    for name in ("one.py", "two.py"):
        (tmp_path / "vpnrouter" / name).write_text("class C:\n    def f(self):\n        return 1\n")
    fault = run.Fault("x", "area", "C.f", old, "pass", ())
    with pytest.raises(run.BadFault):
        run.place_of(fault, run.definitions(tmp_path))
