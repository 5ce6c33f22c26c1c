"""Faults that an environment variable plants, and where they are passed."""

import re
import signal
from pathlib import Path

import pytest

import vpnrouter
from vpnrouter.errors import OperationError
from vpnrouter.server.crash_points import (
    POINTS,
    VARIABLE,
    crash_point_from_environment,
)

PACKAGE = Path(vpnrouter.__file__).parent


def test_nothing_planted() -> None:
    """Without the variable there is no callable."""
    assert crash_point_from_environment({}) is None
    assert crash_point_from_environment({VARIABLE: ""}) is None


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("answered:3", signal.SIGKILL),
        ("answered:3:kill", signal.SIGKILL),
        ("answered:3:stop", signal.SIGSTOP),
    ],
)
def test_acts_at_its_passing(written: str, number: int, capsys: pytest.CaptureFixture[str]) -> None:
    """The process gets the signal at the third passing of the point, once, and at no other point."""
    sent: list[int] = []
    fault = crash_point_from_environment(
        {VARIABLE: written}, lambda _, signal_number: sent.append(signal_number)
    )
    assert fault is not None
    assert f"{VARIABLE}: " in capsys.readouterr().err
    for _ in range(2):
        fault("answered")
        fault("commit-after-sync")
    assert sent == []
    fault("answered")
    fault("answered")
    assert sent == [number]


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("nowhere:1", "points are publish-accepted, "),
        ("answered", "a count is 1 to"),
        ("answered:0", "a count is 1 to"),
        ("answered:-1", "a count is 1 to"),
        ("answered:99999999999", "a count is 1 to"),
        ("answered:1:explode", "actions are kill, stop"),
    ],
)
def test_nonsense_is_refused(written: str, told: str) -> None:
    """A variable that asks for nothing known is an error that says what is known."""
    with pytest.raises(OperationError, match=told):
        crash_point_from_environment({VARIABLE: written})


def test_each_point_is_passed() -> None:
    """Every point stands in the router's code, and the code passes no point that is not described."""
    passed = {
        name
        for path in sorted(PACKAGE.rglob("*.py"))
        for name in re.findall(r'fault\(\s*"([a-z-]+)"\s*\)', path.read_text(encoding="utf-8"))
        if path.name != "crash_points.py"
    }
    assert passed == set(POINTS)


def test_page_describes_each_point() -> None:
    """docs/testing-faults.md has a row for each point, in their order."""
    page = Path(__file__).parents[2] / "docs" / "testing-faults.md"
    assert re.findall(
        r"^\| `([a-z-]+)` \|", page.read_text(encoding="utf-8"), re.MULTILINE
    ) == list(POINTS)
