"""`vpnrouter simulate score`: has a report found what was planted, and nothing else?"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vpnrouter.cli._told import say, say_json

if TYPE_CHECKING:
    from vpnrouter.simulation.score import Row, Score


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
        say_json(result.as_json())
    else:
        _print(result)
    if not result.good:
        raise typer.Exit(1)


def _print(result: "Score") -> None:
    from rich.table import Table

    from vpnrouter.cli._printed import console_for

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
            say(f"{name}: {_line(row)}")


def _line(row: "Row") -> str:
    stated = {name: value for name, value in row.items() if value is not None}
    kind = stated.pop("kind")
    return " ".join([str(kind), *(f"{name}={value}" for name, value in stated.items())])
