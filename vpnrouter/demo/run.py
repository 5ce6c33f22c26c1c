"""Runs the demonstration from beginning to end."""

import time
from collections.abc import Sequence
from pathlib import Path

from vpnrouter.demo import scenario, summary
from vpnrouter.demo.clients import ClientCounts, accepted, connected_clients
from vpnrouter.demo.processes import signals_as_exceptions, signals_deferred
from vpnrouter.demo.progress import PUBLISHED, TRACES, ProgressReporter, claimed, progress_reporter
from vpnrouter.demo.routers import running_routers
from vpnrouter.demo.scenario import Flights, read_flights
from vpnrouter.demo.summary import Report, make_report
from vpnrouter.errors import OperationError


def run_demo(
    rows: int | None,
    output: Path,
    *,
    remote_subscriptions: Sequence[str] = scenario.REMOTE_SUBSCRIPTIONS,
    with_report: bool = True,
) -> bool:
    """Run everything and print the summary; returns whether all checks passed.

    `rows` is how many flights to publish (None: all) and `output` the directory to fill.
    `remote_subscriptions` is what the bridge is configured with; what must arrive is always counted
    by those of the scene, so another list must fail.

    Raises:
        OperationError: the directory cannot be used, or a process does not start or ends early.
    """
    begun_s = time.monotonic()
    with signals_as_exceptions(), claimed(output) as folder:
        flights = read_flights(rows)
        due = {
            subscriber.name: scenario.received(flights, subscriber)
            for subscriber in scenario.SUBSCRIBERS
        }
        published_due = {
            publisher.name: int(scenario.published(flights, publisher).sum())
            for publisher in scenario.PUBLISHERS
        }
        totals = {PUBLISHED: sum(published_due.values())} | {
            name: sum(int(mask.sum()) for mask in masks.values()) for name, masks in due.items()
        }
        with progress_reporter(totals) as reporter:
            counted, connections, exit_codes = _messages(
                flights, folder, reporter, remote_subscriptions
            )
            if with_report:
                reporter.stage("Spark reads the traces")
        messages_s = time.monotonic()
        report, report_error = _report(folder) if with_report else (None, "")
        outcome = summary.Outcome(
            published=counted.published,
            published_due=published_due,
            tallies=counted.tallies,
            tallies_due={
                subscriber.name: scenario.tally(flights, subscriber)
                for subscriber in scenario.SUBSCRIBERS
            },
            places_due={
                place: scenario.published_count(flights, place) for place in scenario.PLACES
            },
            crossings_due=scenario.crossings(flights),
            connections=connections,
            exit_codes=exit_codes,
            trace_files={
                name: len(list((folder / TRACES).glob(f"date=*/router={name}/part-*.parquet")))
                for name in exit_codes
            },
            report=report,
            report_error=report_error,
            report_wanted=with_report,
        )
        checks = summary.checks(outcome)
        took = {
            "messages": counted.seconds,
            "report": time.monotonic() - messages_s,
            "all": time.monotonic() - begun_s,
        }
        summary.show(checks, None if report is None else report.page, took)
    return all(check.passed for check in checks)


def _messages(
    flights: Flights, folder: Path, reporter: ProgressReporter, remote_subscriptions: Sequence[str]
) -> tuple[ClientCounts, int | None, dict[str, int]]:
    """Run routers and clients. Returns the counts, the connections between the routers, and the routers' exit codes."""
    reporter.stage("two routers start, and the bridge between them, each way over one connection")
    with running_routers(folder, remote_subscriptions) as routers:
        reporter.stage("MQTT clients connect")
        with connected_clients(folder, len(flights), routers.addresses) as clients:
            reporter.stage(f"{len(flights):,} flights leave New York")
            counted = clients.run(flights, reporter)
        connections = accepted(routers.link_ports)
        reporter.stage("routers stop and finish their trace files")
        with signals_deferred():
            exit_codes = {"edge": routers.edge.stop(), "core": routers.core.stop()}
    return counted, connections, exit_codes


def _report(folder: Path) -> tuple[Report | None, str]:
    try:
        return make_report(folder), ""
    except OperationError as error:
        return None, str(error)
