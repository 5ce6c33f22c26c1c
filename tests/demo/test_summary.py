"""The verdicts, on outcomes that are right and wrong in one thing each."""

from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vpnrouter.demo import expect, scene
from vpnrouter.demo.flights import Flights
from vpnrouter.demo.report import Report
from vpnrouter.demo.summary import Check, Outcome, checks, show


@pytest.fixture
def outcome(flights: Flights, tmp_path: Path) -> Outcome:
    """A run in which everything is as it must be."""
    page = tmp_path / "report.html"
    page.write_text("<html>")
    due = {
        one.name: expect.tally(flights, expect.received(flights, one)) for one in scene.SUBSCRIBERS
    }
    published = {one.name: int(expect.published(flights, one).sum()) for one in scene.PUBLISHERS}
    places = {place: int(expect.published_at(flights, place).sum()) for place in scene.PLACES}
    bridged = int(expect.bridged(flights).sum())
    nodes = [
        {
            "router": scene.router_of(place),
            "vpn": scene.vpn_of(place),
            "ingress": count,
            "discarded": 0,
        }
        for place, count in places.items()
    ]
    edge = {
        "from_router": "edge",
        "from_vpn": "blue",
        "to_router": "core",
        "to_vpn": "yellow",
        "messages": bridged,
        "sent": bridged,
        "received": bridged,
    }
    return Outcome(
        published=dict(published),
        published_due=published,
        tallies=deepcopy(due),
        tallies_due=due,
        places_due=places,
        bridged_due=bridged,
        exit_codes={"edge": 0, "core": 0},
        trace_files={"edge": 1, "core": 2},
        report=Report(page, nodes, [edge]),
    )


def failed(outcome: Outcome) -> list[Check]:
    """The checks that did not pass."""
    return [check for check in checks(outcome) if not check.passed]


def test_all_is_well(outcome: Outcome) -> None:
    """A right outcome passes every check."""
    assert failed(outcome) == []
    assert len(checks(outcome)) == 20


def lose(outcome: Outcome) -> None:
    """One message did not arrive."""
    counts = outcome.tallies["yellow-all"][scene.BLUE]
    counts[next(iter(counts))] -= 1


def swap(outcome: Outcome) -> None:
    """One message is missing on one topic and one too many on another; the sum is right."""
    counts = outcome.tallies["blue-all"][scene.BLUE]
    first, second, *_ = counts
    counts[first] -= 1
    counts[second] += 1


def twin(outcome: Outcome) -> None:
    """One message came twice."""
    counts = outcome.tallies["yellow-united"][scene.BLUE]
    counts[next(iter(counts))] += 1


def leak_back(outcome: Outcome) -> None:
    """A message of yellow came to blue."""
    outcome.tallies["blue-all"][scene.YELLOW] = Counter({"flights/UA/JFK/LAX": 1})


def leak_by_name(outcome: Outcome) -> None:
    """A message of one green VPN came to the other."""
    outcome.tallies["core-green-watch"][scene.EDGE_GREEN] = Counter({"flights/UA/JFK/LAX": 1})


def leak_unknown(outcome: Outcome) -> None:
    """A message came from nowhere."""
    outcome.tallies["edge-green-watch"]["?"] = Counter({"x": 1})


def crash(outcome: Outcome) -> None:
    """A router ended badly."""
    outcome.exit_codes["core"] = -9  # type: ignore[index]


def no_traces(outcome: Outcome) -> None:
    """A router left no trace file."""
    outcome.trace_files["edge"] = 0  # type: ignore[index]


def unpublished(outcome: Outcome) -> None:
    """A publisher did not send everything."""
    outcome.published["JFK"] -= 1  # type: ignore[index]


def edge_of(outcome: Outcome) -> dict[str, Any]:
    """The report's only bridge."""
    assert outcome.report is not None
    edge = outcome.report.edges[0]
    assert isinstance(edge, dict)
    return edge


def edge_count(outcome: Outcome) -> None:
    """The report counts another number of crossings."""
    edge_of(outcome)["received"] -= 1


def edge_reversed(outcome: Outcome) -> None:
    """The report has the bridge the wrong way round."""
    edge_of(outcome).update(from_router="core", from_vpn="yellow", to_router="edge", to_vpn="blue")


def edge_missing(outcome: Outcome) -> None:
    """The report knows no bridge."""
    assert outcome.report is not None
    outcome.report.edges.clear()


def node_missing(outcome: Outcome) -> None:
    """The report does not know one of the message VPNs."""
    assert outcome.report is not None
    outcome.report.nodes.pop()


def discarded(outcome: Outcome) -> None:
    """The report tells of discarded messages."""
    assert outcome.report is not None
    node = outcome.report.nodes[0]
    assert isinstance(node, dict)
    node["discarded"] = 3


def no_page(outcome: Outcome) -> None:
    """The report's page was not written."""
    assert outcome.report is not None
    outcome.report.page.unlink()


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (lose, "core/yellow flights/#"),
        (swap, "edge/blue flights/#"),
        (twin, "core/yellow flights/UA/#"),
        (leak_back, "messages leaked between VPNs"),
        (leak_by_name, "messages leaked between VPNs"),
        (leak_unknown, "messages leaked between VPNs"),
        (crash, "exit code of router core"),
        (no_traces, "trace files of router edge"),
        (unpublished, "flights published"),
        (edge_count, "report: edge/blue → core/yellow"),
        (edge_reversed, "report: edge/blue → core/yellow"),
        (edge_missing, "report: edge/blue → core/yellow"),
        (node_missing, "report: published in core/green"),
        (discarded, "report: messages discarded"),
        (no_page, "report page"),
    ],
)
def test_one_thing_wrong(outcome: Outcome, spoil: Callable[[Outcome], None], what: str) -> None:
    """Whatever is not as it must be fails its check, and only that."""
    spoil(outcome)
    assert [check.what for check in failed(outcome)] == [what]


def test_no_report(outcome: Outcome) -> None:
    """A report that could not be made fails the run and says why."""
    (check,) = failed(replace(outcome, report=None, report_error="no Java here"))
    assert (check.what, check.remark) == ("report", "no Java here")


def test_subscriber_unheard(outcome: Outcome) -> None:
    """A subscriber that told nothing lacks everything."""
    del outcome.tallies["core-green-watch"]  # type: ignore[attr-defined]
    (check,) = failed(outcome)
    assert check.what == "core/green #"
    assert check.found == "0"


def test_table(outcome: Outcome, capsys: pytest.CaptureFixture[str]) -> None:
    """The table is on stdout and ends with the verdict, also where there are brackets in words."""
    lose(outcome)
    show(checks(outcome), Path("out/[x]/report.html"), {"all": 1.5})
    out, err = capsys.readouterr()
    assert err == ""
    assert "report: out/[x]/report.html" in out
    assert out.splitlines()[-1] == "1 of 20 checks failed"
    (line,) = [line for line in out.splitlines() if "NOT SO" in line]
    assert "core/yellow flights/#" in line
    assert "1 missing, 0 too many" in line
