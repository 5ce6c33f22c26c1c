"""`vpnrouter simulate`: trace data of a made-up mesh, and whether a report has found what was planted."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vpnrouter.cli._output import print_json, print_lines, print_notes

if TYPE_CHECKING:
    from vpnrouter.simulation.score import Row, Score
    from vpnrouter.simulation.simulate import Options


def score(
    truth: Annotated[Path, typer.Option(help="truth.json of the simulation.", show_default=False)],
    report: Annotated[
        Path, typer.Option(help="Directory of the report on its traces.", show_default=False)
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the score as one JSON object.")
    ] = False,
) -> None:
    """Compare a report's findings with the faults that were planted.

    Prints precision and recall for each kind and lists what was missed and what is wrong. Findings of
    severity info may find a fault and are never wrong. Exit code 1: recall is below 1, or precision below 0.98.
    """
    from vpnrouter.simulation.score import read

    result = read(truth, report)
    if as_json:
        print_json(result.as_json())
    else:
        _print_score(result)
    if not result.good:
        raise typer.Exit(1)


def _print_score(result: Score) -> None:
    from rich.table import Table

    from vpnrouter.cli._format import console_for

    table = Table(box=None, pad_edge=False)
    table.add_column("kind")
    for name in ("planted", "found", "recall", "raised", "right", "precision"):
        table.add_column(name, justify="right")
    for one in (*result.kinds, result.total):
        table.add_row(
            one.kind,
            str(one.planted),
            str(one.found),
            f"{one.recall:.3f}",
            str(one.raised),
            str(one.right),
            f"{one.precision:.3f}",
        )
    console_for(sys.stdout, soft_wrap=True).print(table)
    for name, rows in (("missed", result.missed), ("wrong", result.wrong)):
        for row in rows:
            print_lines(f"{name}: {_line(row)}")


def _line(row: Row) -> str:
    stated = {name: value for name, value in row.items() if value is not None}
    kind = stated.pop("kind")
    return " ".join([str(kind), *(f"{name}={value}" for name, value in stated.items())])


group = typer.Typer(
    rich_markup_mode=None,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
group.command("score")(score)

_PACE_S = 5.0


Output = Annotated[
    Path | None,
    typer.Option(
        help="Directory for traces, configurations and truth; made when missing.",
        file_okay=False,
        show_default=False,
    ),
]
Network = Annotated[str, typer.Option(help="Network graph of the package topohub.", metavar="NAME")]
Networks = Annotated[bool, typer.Option("--networks", help="List the network graphs and end.")]
Vpns = Annotated[int, typer.Option(help="Message VPNs; 0: as suits the rows.", min=0)]
Rows = Annotated[int, typer.Option(help="Trace rows, about.", min=1)]
Seconds = Annotated[float, typer.Option(help="Seconds that are simulated.", min=60)]
Sample = Annotated[float, typer.Option(help="Share of the messages that the routers trace.", max=1)]
Fault = Annotated[
    list[str] | None,
    typer.Option(help="Plant a fault of this kind; may stand several times.", metavar="KIND"),
]
Faults = Annotated[
    str, typer.Option(help="all: plant faults of every kind; none: no more than --fault.")
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same files.", min=0)]
Start = Annotated[
    str | None,
    typer.Option(help="When it begins, UTC, such as 2026-03-01T08:00:00.", show_default=False),
]
Configs = Annotated[bool, typer.Option(help="Write the routers' configurations too.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the truth as JSON.")]


@group.callback()
def command(
    context: typer.Context,
    output: Output = None,
    network: Network = "sndlib/germany50",
    networks: Networks = False,
    vpns: Vpns = 0,
    rows: Rows = 100_000,
    seconds: Seconds = 3_600,
    sample: Sample = 1.0,
    fault: Fault = None,
    faults: Faults = "none",
    seed: Seed = 1,
    start: Start = None,
    configs: Configs = True,
    as_json: AsJson = False,
) -> None:
    """Make the trace files of a mesh of many message VPNs over a real network graph.

    Writes DIR/traces, DIR/mesh/ROUTER.yaml and DIR/truth.json, which says what was planted. Exit code 1:
    options that do not go together, or nothing could be written.
    """
    if context.invoked_subcommand is not None:
        return
    if networks:
        from vpnrouter.simulation.mesh import names

        print_lines(*names())
        return
    if output is None:
        raise typer.BadParameter("Missing option '--output'.")
    from vpnrouter.simulation.simulate import START_NS, Options, simulate

    options = Options(
        network=network,
        vpns=vpns,
        rows=rows,
        seconds=seconds,
        sample=sample,
        faults=_kinds(fault or [], faults, vpns),
        seed=seed,
        start_ns=START_NS if start is None else _moment(start),
        configs=configs,
    )
    begun = time.monotonic()
    truth = simulate(options, output, _Steps())
    if as_json:
        print_json(truth)
    else:
        _print(options, truth, output, time.monotonic() - begun)


def _kinds(named: list[str], faults: str, vpns: int) -> tuple[str, ...]:
    from vpnrouter.simulation.faults.kinds import ALL_KINDS
    from vpnrouter.simulation.simulate import all_faults

    unknown = [kind for kind in named if kind not in ALL_KINDS]
    if unknown:
        raise typer.BadParameter(f"no fault {unknown[0]}; there are {', '.join(ALL_KINDS)}")
    if faults not in {"all", "none"}:
        raise typer.BadParameter("--faults is all or none")
    return (*named, *(all_faults(vpns) if faults == "all" else ()))


def _moment(text: str) -> int:
    import datetime as dt

    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(f"--start: {error}") from error
    moment = moment.replace(tzinfo=moment.tzinfo or dt.UTC)
    return round(moment.timestamp()) * 10**9


class _Steps:
    """Progress on stderr, a line every few seconds."""

    def __init__(self) -> None:
        self._next = time.monotonic() + _PACE_S

    def __call__(self, done: int, rows: int) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _PACE_S
            print_notes(f"simulate: {done:,} of {rows:,} rows")


def _print(options: Options, truth: dict[str, Any], output: Path, seconds: float) -> None:
    from rich.table import Table

    from vpnrouter.cli._format import console_for

    counts = truth["counts"]
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    table.add_row("network", options.network)
    for name, key in (
        ("routers", "routers"),
        ("message VPNs", "vpns"),
        ("bridges", "bridges"),
        ("topics", "topics"),
        ("messages", "messages"),
        ("trace rows", "rows"),
    ):
        table.add_row(name, f"{counts[key]:,}")
    table.add_row("files", f"{truth['files']:,}")
    table.add_row("faults", f"{len(truth['faults'])}")
    table.add_row("seconds", f"{seconds:.1f}")
    table.add_row("truth", str(output / "truth.json"))
    console_for(sys.stdout, soft_wrap=True).print(table)
