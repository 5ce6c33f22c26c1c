"""What the demo says at the end."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vpnrouter.demo import scenario
from vpnrouter.demo.scenario import Flights
from vpnrouter.demo.summary import Check, Outcome, Report, checks, make_report, read_report, show
from vpnrouter.errors import OperationError


@pytest.fixture
def outcome(flights: Flights, tmp_path: Path) -> Outcome:
    """A run in which everything is as it must be."""
    page = tmp_path / "report.html"
    page.write_text("<html>")
    due = {one.name: scenario.tally(flights, one) for one in scenario.SUBSCRIBERS}
    published = {
        one.name: int(scenario.published(flights, one).sum()) for one in scenario.PUBLISHERS
    }
    places = {place: scenario.published_count(flights, place) for place in scenario.PLACES}
    crossings = scenario.crossings(flights)
    nodes: list[Mapping[str, Any]] = [
        {
            "router": scenario.router_of(place),
            "vpn": scenario.vpn_of(place),
            "ingress": count,
            "discarded": 0,
        }
        for place, count in places.items()
    ]
    edges: list[Mapping[str, Any]] = [
        {
            "from_router": scenario.router_of(start),
            "from_vpn": scenario.vpn_of(start),
            "to_router": scenario.router_of(goal),
            "to_vpn": scenario.vpn_of(goal),
            "messages": count,
            "sent": count,
            "received": count,
        }
        for (start, goal), count in crossings.items()
    ]
    return Outcome(
        published=dict(published),
        published_due=published,
        tallies=deepcopy(due),
        tallies_due=due,
        places_due=places,
        crossings_due=crossings,
        connections=1,
        exit_codes={"edge": 0, "core": 0},
        trace_files={"edge": 1, "core": 2},
        report=Report(page, nodes, edges),
    )


def failed(outcome: Outcome) -> list[Check]:
    """The checks that did not pass."""
    return [check for check in checks(outcome) if not check.passed]


def test_all_is_well(outcome: Outcome) -> None:
    """A right outcome passes every check."""
    assert failed(outcome) == []
    assert len(checks(outcome)) == 25


def lose(outcome: Outcome) -> None:
    """One message did not arrive."""
    counts = outcome.tallies["yellow-all"][scenario.BLUE]
    counts[next(iter(counts))] -= 1


def swap(outcome: Outcome) -> None:
    """One message is missing on one topic and one too many on another; the sum is right."""
    counts = outcome.tallies["blue-all"][scenario.BLUE]
    first, second, *_ = counts
    counts[first] -= 1
    counts[second] += 1


def twin(outcome: Outcome) -> None:
    """One message came twice."""
    counts = outcome.tallies["yellow-united"][scenario.BLUE]
    counts[next(iter(counts))] += 1


def leak_back(outcome: Outcome) -> None:
    """A flight of yellow came to blue."""
    outcome.tallies["blue-all"][scenario.YELLOW] = Counter({"flights/UA/JFK/LAX": 1})


def echo(outcome: Outcome) -> None:
    """An alert that went to blue came back to yellow."""
    counts = outcome.tallies["yellow-alerts"][scenario.YELLOW]
    counts[next(iter(counts))] += 1


def unanswered(outcome: Outcome) -> None:
    """An alert did not reach blue."""
    counts = outcome.tallies["blue-alerts"][scenario.YELLOW]
    counts[next(iter(counts))] -= 1


def second_connection(outcome: Outcome) -> None:
    """Each bridge has a connection of its own."""
    object.__setattr__(outcome, "connections", 2)


def leak_by_name(outcome: Outcome) -> None:
    """A message of one green VPN came to the other."""
    outcome.tallies["core-green-watch"][scenario.EDGE_GREEN] = Counter({"flights/UA/JFK/LAX": 1})


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
    """The report's bridge that brings flights."""
    assert outcome.report is not None
    edge = outcome.report.edges[0]
    assert isinstance(edge, dict)
    return edge


def edge_count(outcome: Outcome) -> None:
    """The report counts another number of crossings."""
    edge_of(outcome)["received"] -= 1


def edge_astray(outcome: Outcome) -> None:
    """The report has an end of the bridge in another message VPN."""
    edge_of(outcome).update(to_vpn="green")


def edge_missing(outcome: Outcome) -> None:
    """The report does not know the bridge that brings answers."""
    assert outcome.report is not None
    outcome.report.edges.pop()


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
        (lose, ["core/yellow flights/#"]),
        (swap, ["edge/blue flights/#"]),
        (twin, ["core/yellow flights/UA/#"]),
        (leak_back, ["messages leaked between VPNs"]),
        (echo, ["core/yellow alerts/#"]),
        (unanswered, ["edge/blue alerts/#"]),
        (second_connection, ["connections between the routers"]),
        (leak_by_name, ["messages leaked between VPNs"]),
        (leak_unknown, ["messages leaked between VPNs"]),
        (crash, ["exit code of router core"]),
        (no_traces, ["trace files of router edge"]),
        (unpublished, ["flights published"]),
        (edge_count, ["report: edge/blue → core/yellow"]),
        (edge_astray, ["report: edge/blue → core/yellow", "report: other bridges"]),
        (edge_missing, ["report: core/yellow → edge/blue"]),
        (node_missing, ["report: published in core/green"]),
        (discarded, ["report: messages discarded"]),
        (no_page, ["report page"]),
    ],
)
def test_one_thing_wrong(
    outcome: Outcome, spoil: Callable[[Outcome], None], what: list[str]
) -> None:
    """Whatever is not as it must be fails its check, and only that."""
    spoil(outcome)
    assert [check.what for check in failed(outcome)] == what


def test_connections_unknown(outcome: Outcome) -> None:
    """Where connections cannot be counted nothing is said of them."""
    found = checks(replace(outcome, connections=None))
    assert "connections between the routers" not in [check.what for check in found]
    assert all(check.passed for check in found)


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
    assert out.splitlines()[-1] == "1 of 25 checks failed"
    (line,) = [line for line in out.splitlines() if "NOT SO" in line]
    assert "core/yellow flights/#" in line
    assert "1 missing, 0 too many" in line


def test_tables(tmp_path: Path) -> None:
    """Nodes and edges are what the report's files say."""
    (tmp_path / "nodes.json").write_text(json.dumps([{"router": "edge"}]))
    (tmp_path / "edges.json").write_text("[]")
    report = read_report(tmp_path)
    assert report.nodes == [{"router": "edge"}]
    assert report.edges == []
    assert report.page == tmp_path / "report.html"


@pytest.mark.parametrize("text", [None, "[{]"])
def test_damaged(tmp_path: Path, text: str | None) -> None:
    """A table that is missing or damaged is an error that names it."""
    (tmp_path / "edges.json").write_text("[]")
    if text is not None:
        (tmp_path / "nodes.json").write_text(text)
    with pytest.raises(OperationError, match=r"nodes\.json"):
        read_report(tmp_path)


def test_command_fails(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Where `vpnrouter report` fails, its words are on stderr and the error names the exit code."""
    (tmp_path / "traces").mkdir()
    with pytest.raises(OperationError, match="ended with exit code 1"):
        make_report(tmp_path)
    assert "nothing to report on" in capfd.readouterr().err
