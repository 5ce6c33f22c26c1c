"""Compares what happened with what had to happen, and prints the checks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from vpnrouter.demo import scenario
from vpnrouter.demo.processes import child_process
from vpnrouter.demo.progress import REPORT, TRACES
from vpnrouter.demo.scenario import Tally
from vpnrouter.errors import OperationError

PAGE: Final = "report.html"
_COMMAND: Final = "vpnrouter.cli.app:main"

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Report:
    """A report's page and the tables that the summary compares with the data."""

    page: Path
    nodes: list[Row]
    edges: list[Row]


def make_report(folder: Path) -> Report:
    """Run `vpnrouter report` on the traces in the directory.

    It runs as a process of its own, so that Spark and Java end with it, whatever becomes of them.

    Raises:
        OperationError: no report was made; what the command said is on standard error.
    """
    output = folder / REPORT
    arguments = ["report", str(folder / TRACES), "--output", str(output)]
    with child_process("the report", _COMMAND, arguments) as process:
        process.process.communicate()
        code = process.process.returncode
    if code != 0:
        raise OperationError(f"`vpnrouter {' '.join(arguments)}` ended with exit code {code}")
    return read_report(output)


def read_report(output: Path) -> Report:
    """Return what a report directory holds.

    Raises:
        OperationError: a table is missing or damaged.
    """
    return Report(output / PAGE, _table(output / "nodes.json"), _table(output / "edges.json"))


def _table(path: Path) -> list[Row]:
    try:
        rows: list[Row] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise OperationError(f"the report has no readable {path.name}: {error}") from error
    return rows


_WIDE: Final = 160
"""Columns of the table where no terminal sets them."""

_NOTHING: Final[Counter[str]] = Counter()


@dataclass(frozen=True)
class Check:
    """One thing that must be so. `wanted` and `found` are for people; `remark` says more."""

    what: str
    wanted: str
    found: str
    passed: bool
    remark: str = ""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Everything a run left to judge. Tallies are by subscriber, counts by publisher, place, or two
    places that messages cross between. `connections` is None where they cannot be counted.
    """

    published: Mapping[str, int]
    published_due: Mapping[str, int]
    tallies: Mapping[str, Tally]
    tallies_due: Mapping[str, Tally]
    places_due: Mapping[str, int]
    crossings_due: Mapping[tuple[str, str], int]
    connections: int | None
    exit_codes: Mapping[str, int]
    trace_files: Mapping[str, int]
    report: Report | None
    report_error: str = ""
    report_wanted: bool = field(default=True)


def checks(outcome: Outcome) -> list[Check]:
    """Return every check of a run, in the order in which messages travel."""
    checked = [
        _equal(
            "flights published",
            sum(outcome.published_due.values()),
            sum(outcome.published.values()),
            outcome.published == outcome.published_due,
        )
    ]
    checked += [
        _received(
            subscriber,
            outcome.tallies.get(subscriber.name, {}),
            outcome.tallies_due[subscriber.name],
        )
        for subscriber in scenario.SUBSCRIBERS
    ]
    checked.append(_leaks(outcome))
    if outcome.connections is not None:
        checked.append(
            _equal("connections between the routers", 1, outcome.connections, remark="both bridges")
        )
    for name, code in outcome.exit_codes.items():
        checked.append(_equal(f"exit code of router {name}", 0, code))
    for name, files in outcome.trace_files.items():
        checked.append(Check(f"trace files of router {name}", "≥ 1", f"{files}", files > 0))
    if outcome.report_wanted:
        checked += _report(outcome)
    return checked


def allowed_origins(subscriber: scenario.Subscriber) -> set[str]:
    """Return the message VPNs whose messages may reach a subscriber: its own, and over a bridge blue, or
    yellow, which alone publishes alerts.
    """
    if subscriber.wants_alerts:
        return {scenario.YELLOW}
    over_the_bridge = {scenario.BLUE} if subscriber.place == scenario.YELLOW else set()
    return {subscriber.place} | over_the_bridge


def _received(subscriber: scenario.Subscriber, tally: Tally, due: Tally) -> Check:
    allowed = {place: tally.get(place, _NOTHING) for place in due}
    missing = sum((due[place] - allowed[place]).total() for place in due)
    excess = sum((allowed[place] - due[place]).total() for place in due)
    topics = sum(len(counts) for counts in due.values())
    remark = f"{topics} topics agree"
    if subscriber.proves:
        remark += f", {subscriber.proves}"
    if missing or excess:
        worst = _worst(allowed, due)
        remark = f"{missing:,} missing, {excess:,} too many, for example {worst}"
    return _equal(
        f"{subscriber.place} {subscriber.filter}",
        sum(counts.total() for counts in due.values()),
        sum(counts.total() for counts in allowed.values()),
        not (missing or excess),
        remark,
    )


def _worst(tally: Tally, due: Tally) -> str:
    """Return the topic that differs most."""
    differences: Counter[str] = Counter()
    for place in due:
        for topic in due[place].keys() | tally[place].keys():
            differences[topic] += abs(due[place][topic] - tally[place][topic])
    return max(differences, key=lambda topic: differences[topic])


def _leaks(outcome: Outcome) -> Check:
    strays = [
        f"{counts.total():,} of {origin} at {one.name}"
        for one in scenario.SUBSCRIBERS
        for origin, counts in outcome.tallies.get(one.name, {}).items()
        if origin not in allowed_origins(one)
    ]
    total = sum(
        counts.total()
        for one in scenario.SUBSCRIBERS
        for origin, counts in outcome.tallies.get(one.name, {}).items()
        if origin not in allowed_origins(one)
    )
    return _equal("messages leaked between VPNs", 0, total, remark=", ".join(strays))


def _report(outcome: Outcome) -> list[Check]:
    report = outcome.report
    if report is None:
        return [Check("report", "made", "not made", passed=False, remark=outcome.report_error)]
    size = report.page.stat().st_size if report.page.is_file() else 0
    checked = [
        Check("report page", "there", f"{size:,} bytes" if size else "missing", size > 0),
        *_edges(report.edges, outcome.crossings_due),
    ]
    nodes = {f"{node['router']}/{node['vpn']}": node for node in report.nodes}
    for place, due in outcome.places_due.items():
        entered = nodes[place]["ingress"] if place in nodes else 0
        checked.append(_equal(f"report: published in {place}", due, entered))
    discarded = sum(node["discarded"] for node in report.nodes)
    checked.append(_equal("report: messages discarded", 0, discarded))
    return checked


def _edges(
    edges: Sequence[Mapping[str, Any]], crossings_due: Mapping[tuple[str, str], int]
) -> list[Check]:
    """Return the check that the report has these bridges and no other, with all messages that must cross."""
    rows = {
        (f"{edge['from_router']}/{edge['from_vpn']}", f"{edge['to_router']}/{edge['to_vpn']}"): edge
        for edge in edges
    }
    checked = []
    for (start, goal), due in crossings_due.items():
        label = f"report: {start} → {goal}"
        edge = rows.get((start, goal))
        if edge is None:
            checked.append(Check(label, f"{due:,}", "no bridge", passed=False))
            continue
        counts = (edge["messages"], edge["sent"], edge["received"])
        remark = f"{edge['sent']:,} sent, {edge['received']:,} received"
        checked.append(_equal(label, due, edge["messages"], counts == (due, due, due), remark))
    others = [" → ".join(pair) for pair in rows if pair not in crossings_due]
    checked.append(_equal("report: other bridges", 0, len(others), remark=", ".join(others)))
    return checked


def _equal(
    what: str, wanted: int, found: int, passed: bool | None = None, remark: str = ""
) -> Check:
    agrees = wanted == found if passed is None else passed
    return Check(what, f"{wanted:,}", f"{found:,}", agrees, remark)


def show(checks: Sequence[Check], page: Path | None, took: Mapping[str, float]) -> None:
    """Print the closing table, the verdict, and where to look, on stdout."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    table.add_column("what")
    table.add_column("must be", justify="right")
    table.add_column("is", justify="right")
    table.add_column("", style="dim", overflow="fold")
    for check in checks:
        mark = "[green]ok[/]" if check.passed else "[bold red]NOT SO[/]"
        table.add_row(mark, _plain(check.what), check.wanted, check.found, _plain(check.remark))
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _WIDE
    console.print(table)
    console.print()
    console.print(", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in took.items()))
    failed = sum(not check.passed for check in checks)
    if page is not None:
        console.print(f"report: {_plain(str(page))}", soft_wrap=True)
    if failed:
        console.print(f"[bold red]{failed} of {len(checks)} checks failed[/]")
    else:
        console.print(f"[green]all {len(checks)} checks passed[/]")


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)
