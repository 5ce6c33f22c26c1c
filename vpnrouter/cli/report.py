"""`vpnrouter report TRACES… --output DIR`: a report on the topology from the routers' traces."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from vpnrouter.cli._output import print_json, print_lines, print_notes
from vpnrouter.errors import OperationError
from vpnrouter.text import counted
from vpnrouter.units import DAY_NS

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

    from vpnrouter.report.engine.progress import Progress
    from vpnrouter.report.output import Summary

_LAKEHOUSE: Final = frozenset({"delta", "iceberg"})
_FORMATS: Final = _LAKEHOUSE | {"html", "json", "parquet"}
_TIMES: Final = "2026-03-01, 2026-03-01T12:30, or 90m (so long ago)"


def _place(text: str) -> str:
    """The place that an argument names: a path of this machine, or the URI of another file system."""
    from vpnrouter.report.traces.storage import place_of

    try:
        return place_of(text)
    except OperationError as error:
        raise typer.BadParameter(str(error)) from None


def _folder(text: str) -> str:
    place = _place(text)
    if Path(place).is_file():
        raise typer.BadParameter(f"'{place}' is a file, not a directory")
    return place


def _settings(texts: list[str]) -> dict[str, str]:
    """The settings of Spark, from KEY=VALUE."""
    pairs = [text.partition("=") for text in texts]
    for text, (key, equals, _) in zip(texts, pairs, strict=True):
        if not equals or not key.strip():
            raise typer.BadParameter(f"--conf '{text}' is no setting: write KEY=VALUE")
    return {key.strip(): value.strip() for key, _, value in pairs}


Traces = Annotated[
    list[str],
    typer.Argument(
        help="Trace directories, or single trace files: paths, or URIs such as s3a://bucket/traces.",
        parser=_place,
        metavar="TRACES...",
        show_default=False,
    ),
]
Output = Annotated[
    str,
    typer.Option(
        help="Directory for the report, a path or a URI; made when missing.",
        parser=_folder,
        metavar="DIRECTORY",
        show_default=False,
    ),
]
Since = Annotated[
    str | None,
    typer.Option(help=f"Leave out what was before: {_TIMES}.", show_default=False),
]
Until = Annotated[
    str | None,
    typer.Option(help="Leave out what was at that time or later.", show_default=False),
]
Against = Annotated[
    str | None,
    typer.Option(
        help="Compare with another time, SINCE..UNTIL.", metavar="RANGE", show_default=False
    ),
]
Config = Annotated[
    list[Path] | None,
    typer.Option(
        help="Configuration to compare the mesh with, a file or a directory of them; may be repeated.",
        exists=True,
        show_default=False,
    ),
]
Without = Annotated[
    list[str] | None,
    typer.Option(
        help="What if this router, or this bridge (ROUTER/VPN:BRIDGE), were gone? Several go together.",
        metavar="NAME",
        show_default=False,
    ),
]
Double = Annotated[
    list[str] | None,
    typer.Option(
        help="What if twice as much were published in this message VPN? May be repeated.",
        metavar="ROUTER/VPN",
        show_default=False,
    ),
]
Follow = Annotated[
    bool, typer.Option("--follow", help="Keep the report up to date while traces come in.")
]
Every = Annotated[
    float | None,
    typer.Option(
        help="With --follow: seconds between looks for files, 5 unless given.",
        min=0.5,
        max=3600,
        show_default=False,
    ),
]
Late = Annotated[
    int | None,
    typer.Option(
        help="With --follow: seconds that rows of a message may be later than others, 90 unless given.",
        min=1,
        max=86_400,
        show_default=False,
    ),
]
Formats = Annotated[
    str,
    typer.Option(
        "--format", help="What to write: html, json, parquet, iceberg, delta, or several."
    ),
]
Catalog = Annotated[
    str | None,
    typer.Option(
        help="With --format iceberg: a catalog of Spark's settings, and a namespace there, not OUTPUT/lakehouse.",
        metavar="NAME[.NAMESPACE]",
        show_default=False,
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        help="Spark master, for example spark://host:7077; local[*] where Spark's settings name none.",
        show_default=False,
    ),
]
Connect = Annotated[
    str | None,
    typer.Option(
        help="Work on a Spark Connect server, for example sc://host:15002; this needs no Java.",
        metavar="URL",
        show_default=False,
    ),
]
Conf = Annotated[
    list[str] | None,
    typer.Option(
        help="A setting of Spark; may be repeated.",
        metavar="KEY=VALUE",
        show_default=False,
    ),
]
Packages = Annotated[
    str | None,
    typer.Option(
        help="Java packages that Spark loads, as for spark-submit, for example those for s3a://.",
        metavar="GROUP:NAME:VERSION,…",
        show_default=False,
    ),
]
AsyncApi = Annotated[
    str | None,
    typer.Option(
        "--asyncapi",
        help="Write an AsyncAPI document of each message VPN to this directory, a path or a URI.",
        parser=_folder,
        metavar="DIRECTORY",
        show_default=False,
    ),
]
Incremental = Annotated[
    bool,
    typer.Option(
        "--incremental",
        help="Keep the digests of each day in DIR/days, and read only days whose files have changed.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")]


def command(
    traces: Traces,
    output: Output,
    since: Since = None,
    until: Until = None,
    against: Against = None,
    config: Config = None,
    without: Without = None,
    double: Double = None,
    follow: Follow = False,
    every: Every = None,
    late: Late = None,
    formats: Formats = "html,json,parquet",
    catalog: Catalog = None,
    asyncapi: AsyncApi = None,
    incremental: Incremental = False,
    master: Master = None,
    connect: Connect = None,
    conf: Conf = None,
    packages: Packages = None,
    as_json: AsJson = False,
) -> None:
    """Turn trace files into a topology report.

    Writes DIR/report.html (one file, opens offline), its tables as DIR/*.json and DIR/tables/*/date=*/*.parquet, and
    prints a summary. Files that are damaged, empty or no traces are named and left out. Exit code 1: there
    is nothing to report on, or Spark failed; 2: wrong use.
    """
    named = _formats(formats)
    try:
        from vpnrouter.report.build import ReportRequest, build_report
        from vpnrouter.report.change.configured import load_configured
        from vpnrouter.report.days import require_whole_days
        from vpnrouter.report.engine.session import SparkSettings
        from vpnrouter.report.follow import Follower, FollowTimes
        from vpnrouter.report.planning.questions import parse_questions
        from vpnrouter.report.traces.span import parse_range, parse_span
    except ImportError as error:
        raise OperationError(
            f"the report needs the package {error.name}: pip install '.[spark]' in vpnrouter's source"
        ) from error
    now_ns = time.time_ns()
    if incremental:
        # The last midnight: `7d` before it is one too.
        now_ns -= now_ns % DAY_NS
    try:
        span = parse_span(since, until, now_ns)
        before = None if against is None else parse_range(against, now_ns)
        questions = parse_questions(without or (), double or ())
        if incremental:
            require_whole_days(span, before)
    except OperationError as error:
        raise typer.BadParameter(str(error)) from None
    if follow and (until is not None or against is not None):
        raise typer.BadParameter("--follow has no end: leave out --until and --against")
    if follow and asyncapi is not None:
        raise typer.BadParameter("--asyncapi is of a whole report: leave out --follow")
    if not follow and (every is not None or late is not None):
        raise typer.BadParameter("--every and --late are of --follow: add it, or leave them out")
    if incremental and (follow or asyncapi is not None):
        raise typer.BadParameter(
            "--incremental reads a day once: leave out --follow and --asyncapi"
        )
    for name, value in (("connect", connect), ("master", master), ("packages", packages)):
        if value is not None and not value.strip():
            raise typer.BadParameter(f"--{name} is empty: leave it out, or say what it names")
    if connect is not None and master is not None:
        raise typer.BadParameter("--connect and --master exclude each other")
    if follow and connect is not None:
        raise typer.BadParameter("--follow works beside Spark's driver: it cannot use --connect")
    _check_lakehouse(named, catalog, follow=follow, connect=connect is not None)
    settings = _settings(conf or [])
    if packages is not None:
        settings[_PACKAGES] = packages
    request = ReportRequest(
        traces=_present(traces, here=connect is None),
        output=output,
        spark=SparkSettings(master=master or "", connect=connect or "", conf=settings),
        span=span,
        against=before,
        mesh=load_configured(_files(config)) if config else None,
        questions=questions,
        formats=named,
        catalog=catalog or "",
        asyncapi=asyncapi,
        incremental=incremental,
    )
    with _shown_progress() as progress:
        if not follow:
            with _telling_interrupt():
                summary = build_report(request, progress)
            _print_whole(summary, as_json=as_json)
            return
        times = FollowTimes(every_s=every or 5.0, late_s=late or 90)
        update = partial(_print_update, NewlyAside(), as_json=as_json)
        with _until_signal() as stop:
            Follower(request, times, progress, update).run(stop)


def _check_lakehouse(
    formats: frozenset[str], catalog: str | None, *, follow: bool, connect: bool
) -> None:
    """Refuse what tables of Iceberg and Delta cannot be."""
    if catalog is not None and "iceberg" not in formats:
        raise typer.BadParameter("--catalog is of Iceberg tables: add --format iceberg")
    if catalog is not None and not all(catalog.split(".")):
        raise typer.BadParameter(f"--catalog '{catalog}': write NAME or NAME.NAMESPACE")
    for form in sorted(formats & _LAKEHOUSE):
        if follow:
            raise typer.BadParameter(
                f"--follow writes every few seconds, and a table of {form} keeps each state: leave out --format {form}"
            )
        if connect:
            raise typer.BadParameter(
                f"--format {form} is written beside Spark's driver: leave out --connect"
            )


_PACKAGES: Final = "spark.jars.packages"


def _present(traces: list[str], *, here: bool) -> list[str]:
    """The places of traces; a path of this machine has to be there. Not `here`: they are of another one."""
    from vpnrouter.report.traces.storage import is_uri

    for place in traces:
        if here and not is_uri(place) and not Path(place).exists():
            raise typer.BadParameter(f"path '{place}' does not exist", param_hint="'TRACES...'")
    return traces


def _files(paths: list[Path]) -> list[Path]:
    """The configuration files among the paths given, and those in the directories."""
    found: list[Path] = []
    for path in paths:
        inside = sorted((*path.glob("*.yaml"), *path.glob("*.yml"))) if path.is_dir() else [path]
        if not inside:
            raise typer.BadParameter(f"--config {path}: no .yaml file in this directory")
        found += inside
    return found


def _formats(text: str) -> frozenset[str]:
    """The formats named in a list with commas."""
    named = frozenset(part.strip() for part in text.split(",") if part.strip())
    unknown = sorted(named - _FORMATS)
    if unknown or not named:
        raise typer.BadParameter(
            f"--format knows {', '.join(sorted(_FORMATS))}, not {', '.join(unknown) or 'nothing'}"
        )
    return named


_NAMED_AT_MOST: Final = 20


class NewlyAside:
    """Names files that were set aside, each once."""

    def __init__(self) -> None:
        self._told = 0

    def tell(self, set_aside: "Sequence[Mapping[str, str]]") -> None:
        """Name on stderr the files that a list has more than at the last call; of many some, and how many more."""
        fresh = set_aside[self._told :]
        self._told = len(set_aside)
        named = fresh[:_NAMED_AT_MOST]
        print_notes(*(f"set aside: {one['path']}: {one['reason']}" for one in named))
        more = len(fresh) - len(named)
        if more:
            print_notes(f"set aside: {counted(more, 'more file')}, all named in summary.json")


def _print_whole(summary: "Summary", *, as_json: bool) -> None:
    NewlyAside().tell(summary.set_aside)
    if as_json:
        print_json(asdict(summary))
    else:
        print_summary(summary)


def _print_update(aside: NewlyAside, summary: "Summary", *, as_json: bool) -> None:
    """One line that a followed report was written again, or its summary as JSON."""
    aside.tell(summary.set_aside)
    if as_json:
        print_json(asdict(summary))
        return
    print_lines(
        f"report of {counted(summary.rows, 'row')} in {counted(summary.files, 'file')}: {_found(summary)}"
    )


@contextmanager
def _telling_interrupt() -> Iterator[None]:
    """Tell of an interrupt, and end like that on SIGTERM too: what Spark has on disk goes with its session."""
    ended = threading.Event()

    def interrupt(*_: object) -> None:
        ended.set()
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        print_notes("vpnrouter: interrupted before the report was written")
        if ended.is_set():
            raise typer.Exit(128 + signal.SIGTERM) from None
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _until_signal() -> Iterator[Callable[[], bool]]:
    """Catch SIGINT and SIGTERM; gives a function that says whether one of them was received."""
    signalled = threading.Event()
    names = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(name, lambda *_: signalled.set()) for name in names]
    try:
        yield signalled.is_set
    finally:
        for name, handler in zip(names, before, strict=True):
            signal.signal(name, handler)


@contextmanager
def _shown_progress() -> Iterator["Progress"]:
    """Progress on stderr: a live line on a terminal, a line a stage elsewhere."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from vpnrouter.cli._format import console_for

    console = console_for(sys.stderr)
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
        print_notes(f"report: {name}")

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


def _found(summary: "Summary") -> str:
    return f"{counted(summary.errors, 'error')}, {counted(summary.warnings, 'warning')}"


def print_summary(summary: "Summary") -> None:
    """Print the summary as a table on stdout."""
    from rich.table import Table

    from vpnrouter.cli._format import console_for
    from vpnrouter.report.page import contents

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()

    def estimated(value: int, estimate: int | None) -> str:
        if estimate is None or estimate == value:
            return contents.count(value)
        return f"{contents.count(value)} traced, about {contents.count(estimate)} in all"

    table.add_row(
        "trace rows",
        f"{contents.count(summary.rows)} in {contents.count(summary.files)} files"
        f" ({contents.size(summary.size_bytes)})",
    )
    table.add_row(
        "time",
        f"{contents.moment(summary.first_ns)} – {contents.moment(summary.last_ns)} UTC",
    )
    for name, value in (
        ("routers", summary.routers),
        ("message VPNs", summary.vpns),
        ("bridges", summary.bridges),
        ("topics", summary.topics),
    ):
        table.add_row(name, contents.count(value))
    table.add_row("published", estimated(summary.ingress, summary.ingress_estimated))
    table.add_row("bridge crossings", estimated(summary.bridged, summary.bridged_estimated))
    table.add_row("delivered", estimated(summary.delivered, summary.delivered_estimated))
    table.add_row("discarded", contents.count(summary.discarded))
    table.add_row("rejected", contents.count(summary.rejected))
    table.add_row(
        "findings",
        _found(summary),
    )
    table.add_row("advice", contents.count(summary.advice))
    if summary.set_aside:
        table.add_row("files set aside", contents.count(len(summary.set_aside)))
    table.add_row("seconds", str(summary.seconds))
    if summary.page:
        table.add_row("page", summary.page)
    console_for(sys.stdout, soft_wrap=True).print(table)
