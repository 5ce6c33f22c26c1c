"""`vpnrouter report TRACES… --output DIR`: what the routers' traces tell of the topology."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vpnrouter.errors import OperationError

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

    from vpnrouter.topology.engine.progress import Progress
    from vpnrouter.topology.report import Summary


def command(
    traces: Annotated[
        list[Path],
        typer.Argument(
            help="Trace directories, or single trace files.", exists=True, show_default=False
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            help="Directory for the report; made when missing.", file_okay=False, show_default=False
        ),
    ],
    master: Annotated[
        str, typer.Option(help="Spark master, for example spark://host:7077.")
    ] = "local[*]",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the summary as one JSON object.")
    ] = False,
) -> None:
    """Turn trace files into a topology report.

    Writes DIR/report.html (one file, opens offline), the same tables as DIR/*.json and
    DIR/tables/*.parquet, and prints a summary. Files that are damaged, empty or no traces are named
    and left out. Exit code 1: there is nothing to report on, or Spark failed.
    """
    try:
        from vpnrouter.topology.report import build_report
    except ImportError as error:
        raise OperationError(
            f"the report needs the package {error.name}: install vpnrouter[spark]"
        ) from error
    with _shown_progress() as progress:
        summary = build_report(traces, output, master, progress)
    for one in summary.set_aside:
        print(f"set aside: {one['path']}: {one['reason']}", file=sys.stderr)
    if as_json:
        print(json.dumps(asdict(summary), ensure_ascii=False))
    else:
        print_summary(summary)


@contextmanager
def _shown_progress() -> Iterator["Progress"]:
    """Progress on stderr: a live line on a terminal, a line a stage elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines()
        return
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[tasks]}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    ) as display:
        yield _Live(display)


class _Lines:
    """Progress for a pipe or a file."""

    def stage(self, name: str) -> None:
        print(f"report: {name}", file=sys.stderr)

    def tasks(self, done: int, total: int) -> None:
        """Tasks come and go too fast for lines."""


class _Live:
    """Progress for a terminal."""

    def __init__(self, display: "RichProgress") -> None:
        self._display = display
        self._task = display.add_task("report", total=None, tasks="")

    def stage(self, name: str) -> None:
        self._display.reset(self._task, total=None, description=name, tasks="")

    def tasks(self, done: int, total: int) -> None:
        self._display.update(self._task, total=total, completed=done, tasks=f"{done}/{total} tasks")


def print_summary(summary: "Summary") -> None:
    """Print the summary as a table on stdout."""
    from rich.console import Console
    from rich.table import Table

    from vpnrouter.topology.page import figures

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()

    def counted(value: int, estimate: int | None) -> str:
        if estimate is None or estimate == value:
            return figures.count(value)
        return f"{figures.count(value)} traced, about {figures.count(estimate)} in all"

    table.add_row(
        "trace rows",
        f"{figures.count(summary.rows)} in {figures.count(summary.files)} files"
        f" ({figures.size(summary.size_bytes)})",
    )
    table.add_row(
        "time",
        f"{figures.moment(summary.first_ns)} – {figures.moment(summary.last_ns)} UTC",
    )
    for name, value in (
        ("routers", summary.routers),
        ("message VPNs", summary.vpns),
        ("bridges", summary.bridges),
        ("topics", summary.topics),
    ):
        table.add_row(name, figures.count(value))
    table.add_row("published", counted(summary.ingress, summary.ingress_estimated))
    table.add_row("bridge crossings", counted(summary.bridged, summary.bridged_estimated))
    table.add_row("delivered", counted(summary.delivered, summary.delivered_estimated))
    table.add_row("discarded", figures.count(summary.discarded))
    table.add_row("rejected", figures.count(summary.rejected))
    if summary.set_aside:
        table.add_row("files set aside", figures.count(len(summary.set_aside)))
    table.add_row("seconds", str(summary.seconds))
    table.add_row("page", summary.page)
    Console(soft_wrap=True, highlight=False, markup=False).print(table)
