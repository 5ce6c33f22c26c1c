"""`vpnrouter check CONFIG…`: are these configurations right, each by itself and together?"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from vpnrouter.cli._output import print_json, print_lines, print_notes

if TYPE_CHECKING:
    from vpnrouter.config.load import Reading
    from vpnrouter.config.problem import Problem

_REFUSED: Final = 2


def command(
    configs: Annotated[
        list[Path],
        typer.Argument(metavar="CONFIG...", help="Routers' YAML files.", show_default=False),
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print summary and problems as JSON on stdout.")
    ] = False,
    no_overlay: Annotated[
        bool,
        typer.Option(
            "--no-overlay", help="Leave out what was changed by the management API of the routers."
        ),
    ] = False,
) -> None:
    """Check configurations, each by itself and all together, without starting anything.

    What was changed by a router's management API lies over its file (overlay.yaml in its data directory) and
    is read with it; the summary says so.

    Problems go to stderr, a summary of each file to stdout. Exit code 0 when all are accepted,
    warnings and notes or not, and 2 when one is refused.
    """
    from vpnrouter.config.load import read
    from vpnrouter.config.mesh.check import check_mesh

    readings = [read(path, overlay=not no_overlay) for path in configs]
    together = check_mesh([reading.loaded for reading in readings if reading.loaded is not None])
    rows = [(reading, _problems_of(reading, together)) for reading in readings]
    if as_json:
        print_json([_row(reading, problems) for reading, problems in rows], 2)
    else:
        for reading, problems in rows:
            print_notes(*problems)
            print_lines(_summary(reading, problems))
    if any(_count(problems, "error") for _, problems in rows):
        raise typer.Exit(_REFUSED)


def _problems_of(reading: "Reading", together: Sequence["Problem"]) -> list["Problem"]:
    """The problems of a file and its overlay, those of the mesh that stand there, and what is missing on this machine,
    in their order.
    """
    files = (reading.file, reading.overlay_file)
    mine = [finding for finding in together if finding.position.file in files]
    return sorted(
        {*reading.problems, *mine, *_missing_here(reading)},
        key=lambda one: (one.position, one.message),
    )


def _missing_here(reading: "Reading") -> list["Problem"]:
    """Warn of what the router needs and this machine, which may be another one, does not have."""
    from vpnrouter.config.otel_sdk import NO_SDK, has_sdk
    from vpnrouter.config.problem import Problem

    loaded = reading.loaded
    trace = None if loaded is None else loaded.config.trace
    if loaded is None or trace is None or not (trace.enabled and trace.otlp.enabled) or has_sdk():
        return []
    place = loaded.positions.value_at(("trace", "otlp"))
    return [Problem(place, "warning", f"on this machine a router would not start: {NO_SDK}")]


def _count(problems: Sequence["Problem"], severity: str) -> int:
    return sum(problem.severity == severity for problem in problems)


def _summary(reading: "Reading", problems: Sequence["Problem"]) -> str:
    errors = _count(problems, "error")
    details = [
        _counted(number, severity)
        for severity in ("error", "warning", "note")
        if (number := _count(problems, severity))
    ]
    parts = []
    if reading.loaded is not None:
        config = reading.loaded.config
        bridges = sum(len(vpn.bridges) for vpn in config.msg_vpns.values())
        parts = [
            f"router {config.router.name}",
            _counted(len(config.listeners), "listener"),
            _counted(len(config.msg_vpns), "message VPN"),
            _counted(bridges, "bridge"),
        ]
    if reading.overlay_file is not None:
        parts.append(f"with {reading.overlay_file}")
    return f"{reading.file}: {'refused' if errors else 'ok'}: {', '.join([*parts, *details])}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _row(reading: "Reading", problems: Sequence["Problem"]) -> dict[str, object]:
    return {
        "file": reading.file,
        "overlay": reading.overlay_file,
        "accepted": _count(problems, "error") == 0,
        "router": reading.loaded.config.router.name if reading.loaded is not None else None,
        "problems": [
            {
                "severity": problem.severity,
                "file": problem.position.file,
                "line": problem.position.line,
                "column": problem.position.column,
                "message": problem.message,
            }
            for problem in problems
        ],
    }
