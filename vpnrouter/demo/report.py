"""The topology report on the demonstration's traces, and what its tables say."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from vpnrouter.demo.children import child
from vpnrouter.demo.folder import REPORT, TRACES
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
    with child("the report", _COMMAND, arguments) as process:
        process.process.communicate()
        code = process.process.returncode
    if code != 0:
        raise OperationError(f"`vpnrouter {' '.join(arguments)}` ended with exit code {code}")
    return read_report(output)


def read_report(output: Path) -> Report:
    """What a report directory holds.

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
