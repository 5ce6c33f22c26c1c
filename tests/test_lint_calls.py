"""Calls with many arguments by position are found in sources, and nothing else is."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def lint() -> ModuleType:
    """The program that finds them."""
    spec = importlib.util.spec_from_file_location("lint_calls", ROOT / "lint_calls.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "call",
    [
        "f(1, 2, 3, 4, 5, 6, 7, 8, 9)",
        "f(1, 2, 3, 4, 5, 6, 7, 8, *rest)",
        "a.b().f(1, 2, 3, 4, 5, 6, 7, 8, 9, name=10)",
        "g(f(1, 2, 3, 4, 5, 6, 7, 8, 9))",
    ],
)
def test_a_ninth_argument_by_position_is_found(lint: ModuleType, call: str) -> None:
    """The fault names the place and what is called."""
    (fault,) = lint.faults("vpnrouter/one.py", f"\nx = {call}\n")
    assert fault.startswith("vpnrouter/one.py:2: f gets ")


@pytest.mark.parametrize(
    "text",
    [
        "f(1, 2, 3, 4, 5, 6, 7, 8)",
        "f(1, 2, 3, 4, 5, 6, 7, *rest)",
        "f(1, 2, 3, 4, 5, 6, 7, 8, name=9, **more)",
        "f([1, 2, 3, 4, 5, 6, 7, 8, 9])",
        "def f(a, b, c, d, e, g, h, i, j): pass",
    ],
)
def test_other_calls_are_left_alone(lint: ModuleType, text: str) -> None:
    """Names, lists and parameters are no arguments by position."""
    assert list(lint.faults("vpnrouter/one.py", text)) == []


def test_the_modules_keep_to_the_rule(lint: ModuleType) -> None:
    """All folders are looked through, and none has a fault."""
    sources = lint.checked(ROOT)
    assert {path.partition("/")[0] for path in sources} == set(lint.FOLDERS)
    assert [fault for path, text in sources.items() for fault in lint.faults(path, text)] == []
