from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from vpnrouter.report.advice import advise as module
from vpnrouter.report.advice.advise import CURES, advise
from vpnrouter.report.schema import ADVICE, ERROR, INFO, Finding
from vpnrouter.report.structure.structure import structure

Make = Callable[..., dict[str, Any]]
MakeFinding = Callable[..., Finding]
Rows = list[dict[str, Any]]


@pytest.fixture
def edges(edge: Make) -> Rows:
    """A ring of three: nothing hangs on one link."""
    ring = ["a/x", "b/x", "c/x", "a/x"]
    return [edge(start, goal, messages=9) for start, goal in pairwise(ring)]


def actions(rows: Rows) -> list[tuple[str, Any]]:
    """Action and router of each piece of advice."""
    return [(row["action"], row["router"]) for row in rows]


def test_the_worst_first(finding: MakeFinding, edges: Rows) -> None:
    """By severity, then by what is gained; every row has every column."""
    findings = [
        finding("covered", "a/x", severity=INFO, client="c", topic="t"),
        finding("black_hole", "a/x", topic="t", messages=10),
        finding("black_hole", "b/x", topic="t", messages=10_000),
        finding("loop", "c/x", severity=ERROR, messages=1, detail="c/x>a/x>b/x>c/x"),
        finding("not_examined", "a/x", severity=INFO),
        finding("overlapping", "a/x", severity=INFO, client="c", topic="t"),
    ]
    rows = advise(findings, [], edges, structure([], edges))
    assert actions(rows) == [
        ("break_loop", "a"),
        ("add_subscription", "b"),
        ("add_subscription", "a"),
        ("drop_subscription", "a"),
    ]
    assert [row["rank"] for row in rows] == [1, 2, 3, 4]
    assert all(sorted(row) == sorted(ADVICE.names) for row in rows)
    assert all(row["advice"] and row["evidence"] and row["effect"] for row in rows)


@pytest.mark.parametrize("kind", sorted(CURES))
def test_every_kind_leads_to_advice(finding: MakeFinding, edges: Rows, kind: str) -> None:
    """Even with hardly anything filled in."""
    for place in ("a/x", "b/x > a/x"):
        one = finding(kind, place, bridge="fares", topic="t/1")
        (row,) = advise([one], [], edges, structure([], edges))
        texts = (row["advice"], row["evidence"], row["effect"])
        assert all(text.endswith(".") and "None" not in text for text in texts), texts


def test_one_cause_one_advice(finding: MakeFinding, edges: Rows) -> None:
    """A bridge that stands behind a full queue, one that flaps and stands, one that brings too much."""
    findings = [
        finding("head_of_line", "b/x > a/x", bridge="fares", endpoint="q", value=9.0),
        finding("stalled_bridge", "b/x > a/x", bridge="fares", value=9.0, messages=77),
        finding("flapping_link", "a/x > c/x", bridge="fares", value=9.0),
        finding("stalled_bridge", "a/x > c/x", bridge="fares", value=9.0),
        finding("over_broad", "c/x > b/x", bridge="fares", topic=">", detail="t/>"),
        finding("wasted_crossing", "c/x > b/x", bridge="fares", topic="u"),
        finding("two_ways", "b/x", messages=5),
        finding("duplicate", "b/x", client="c", messages=5),
        finding("never_matched", "c/x", client="c", topic="v"),
        finding("covered", "c/x", client="c", topic="v"),
    ]
    rows = advise(findings, [], edges, structure([], edges))
    assert sorted(actions(rows)) == [
        ("drop_subscription", "c"),
        ("drop_way", "b"),
        ("narrow_subscription", "b"),
        ("relieve_endpoint", "a"),
        ("repair_link", "c"),
    ]
    blocked = next(row for row in rows if row["action"] == "relieve_endpoint")
    assert "77 messages stood before the bridge" in blocked["evidence"]


def test_a_black_hole_saves_a_subscription(finding: MakeFinding, edges: Rows) -> None:
    """What nobody matched is not dropped where messages are found for it, in whichever order they come."""
    findings = [
        finding("never_matched", "b/x", client="c", topic="t/>"),
        finding("black_hole", "a/x", topic="t/1", messages=10),
    ]
    (row,) = advise(findings, [], edges, structure([], edges))
    assert row["advice"] == "Add the remote subscription t/> on bridge fares (a/x to b/x)."


def test_what_is_new_says_so(finding: MakeFinding, edges: Rows) -> None:
    """With changes to compare with."""
    change = {
        "what": "finding",
        "change": "new",
        "measure": "clock_skew",
        "router": "a",
        **dict.fromkeys(("vpn", "peer_router", "peer_vpn", "bridge")),
    }
    findings = [finding("clock_skew", router=router, value=3.0) for router in "ab"]
    rows = advise(findings, [], edges, structure([], edges), [change])
    marked = [row["router"] for row in rows if row["evidence"].endswith("compared with.")]
    assert marked == ["a"]


def test_links_to_add_come_last(finding: MakeFinding, edge: Make) -> None:
    """Structure is no trouble by itself."""
    edges = [edge("a/x", "b/x", messages=10**9), edge("b/x", "c/x", messages=10**9)]
    findings = [finding("clock_skew", router="a", value=3.0)]
    rows = advise(findings, [], edges, structure([], edges))
    assert actions(rows)[0] == ("set_clock", "a")
    assert {action for action, _ in actions(rows)[1:]} == {"add_link"}


def test_bounded(finding: MakeFinding, edges: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """No action hides the others, and the list ends."""
    monkeypatch.setattr(module, "REPORT_ADVICE", 3)
    monkeypatch.setattr(module, "REPORT_ADVICE_ACTION", 2)
    findings = [
        finding("black_hole", f"r{number}/x", topic="t", messages=number) for number in range(9)
    ]
    findings += [finding("clock_skew", router=router, value=1.0) for router in "abc"]
    rows = advise(findings, [], edges, structure([], edges))
    assert [row["action"] for row in rows] == ["add_subscription", "add_subscription", "set_clock"]
