import json
from pathlib import Path
from typing import Any

import pytest

from vpnrouter.errors import OperationError
from vpnrouter.simulation.score import compare, read

LOOP = {"kind": "loop", "router": "a", "vpn": "v"}
HOT = {"kind": "hot_bridge", "router": "a", "vpn": "v", "peer_router": "b", "bridge": "x"}


def found(fault: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The finding that agrees with a fault."""
    empty = dict.fromkeys(("peer_router", "peer_vpn", "bridge", "client", "topic"))
    return {"severity": "error", **empty, **fault, **more}


def test_all_found_and_nothing_else_is_good() -> None:
    """Fields that the fault does not state do not matter, nor do findings of severity info."""
    findings = [
        found(LOOP, messages=7, topic="t"),
        found(HOT, peer_vpn="w"),
        found({"kind": "cut_bridge", "router": "q"}, severity="info"),
    ]
    score = compare([LOOP, {**HOT, "value": 0.3, "endpoint": "q"}], [], findings)
    assert score.good
    assert (score.total.recall, score.total.precision) == (1.0, 1.0)
    assert [one.kind for one in score.kinds] == ["hot_bridge", "loop"]


def test_info_may_find_and_is_never_wrong() -> None:
    """A fault that a report takes lightly is found; what it tells besides as info is not held against it."""
    noted = [found(LOOP, severity="info"), found(HOT, severity="info")]
    score = compare([LOOP], [], noted)
    assert score.good
    assert (score.total.found, score.total.raised) == (1, 0)


def test_a_missed_fault_is_not_good() -> None:
    """One field that differs makes a finding wrong and leaves its fault missed."""
    other = found(HOT, bridge="y")
    score = compare([LOOP, HOT], [], [found(LOOP), other])
    assert not score.good
    assert score.total.recall == 0.5
    assert score.missed == (HOT,)
    assert score.wrong == (other,)


def test_consequences_are_right_but_need_not_be_found() -> None:
    """What follows from a fault counts for precision only."""
    wasted = {"kind": "wasted_crossing", "router": "a"}
    assert compare([LOOP], [wasted], [found(LOOP)]).good
    score = compare([LOOP], [wasted], [found(LOOP), found(wasted)])
    assert score.good
    assert score.total.right == 2


def test_precision_has_a_bound() -> None:
    """One wrong finding among fifty is let pass, two are not."""
    right = [found(LOOP)] * 49
    assert compare([LOOP], [], [*right, found(HOT)]).good
    assert not compare([LOOP], [], [*right, found(HOT), found(HOT)]).good


def test_nothing_planted_and_nothing_raised_is_good() -> None:
    """A calm mesh with an empty report scores 1."""
    score = compare([], [], [])
    assert score.good
    assert json.loads(json.dumps(score.as_json()))["recall"] == 1.0


@pytest.mark.parametrize(
    ("truth", "findings", "said"),
    [
        (None, "[]", "cannot read"),
        ("{}", "[]", "no truth"),
        ("{", "[]", "no JSON"),
        ('{"faults": []}', "{}", "no list of findings"),
        ('{"faults": []}', None, "cannot read"),
    ],
)
def test_files_that_are_something_else_are_named(
    tmp_path: Path, truth: str | None, findings: str | None, said: str
) -> None:
    """What is missing or is not what it should be is told, with its path."""
    for name, text in (("truth.json", truth), ("findings.json", findings)):
        if text is not None:
            (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(OperationError, match=said):
        read(tmp_path / "truth.json", tmp_path)
