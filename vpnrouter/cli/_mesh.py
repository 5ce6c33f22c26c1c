"""Reads a mesh file, connects to its routers, and prints plans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TextIO

import typer
from rich.text import Text

from vpnrouter.cli._format import console_for, line
from vpnrouter.cli._output import print_json, print_notes
from vpnrouter.plan.risks import effect_name
from vpnrouter.settings.schema import Effect

if TYPE_CHECKING:
    from vpnrouter.management.answers.rows import Row
    from vpnrouter.management.client import ManagementClient
    from vpnrouter.plan.compare import RouterPlan
    from vpnrouter.plan.mesh_file import Mesh, PlannedRouter


MeshPath = Annotated[
    Path, typer.Argument(metavar="MESH", help="The mesh file (YAML).", show_default=False)
]

Prune = Annotated[
    bool, typer.Option("--prune", help="Message VPNs that the file does not name go.")
]


def read(path: Path) -> Mesh:
    """Read a mesh file and print its warnings and notes. Raises ConfigError if it is refused."""
    from vpnrouter.errors import ConfigError
    from vpnrouter.plan.mesh_file import read_mesh

    mesh = read_mesh(str(path))
    if mesh.errors:
        raise ConfigError(mesh.errors)
    for problem in mesh.problems:
        print_notes(problem)
    return mesh


@contextmanager
def reached(mesh: Mesh) -> Iterator[dict[str, ManagementClient]]:
    """A client for each router of a mesh, by name."""
    with ExitStack() as stack:
        yield {planned.name: stack.enter_context(_client(planned)) for planned in mesh.routers}


def _client(planned: PlannedRouter) -> ManagementClient:
    from vpnrouter.management.client import ManagementClient

    entry = planned.entry
    password = "" if entry.password is None else entry.password.reveal()
    return ManagementClient(entry.url, entry.user, password, ca_file=planned.ca_file)


_MARKS: Final = {
    effect_name(Effect.ADDED): ("+", "green"),
    effect_name(Effect.REMOVED): ("-", "red"),
}
_CHANGED: Final = ("~", "yellow")


def print_plans(plans: Sequence[RouterPlan], out: TextIO, *, as_json: bool) -> None:
    """Every plan: its changes, and what they cost."""
    if as_json:
        print_json([plan.as_dict() for plan in plans], 2)
        return
    console = console_for(out, soft_wrap=True)
    for plan in plans:
        for each in _lines(plan):
            console.print(each)


def _lines(plan: RouterPlan) -> Iterator[Text]:
    yield line(f"{plan.name}: {_summary(plan)}", "bold")
    for change in plan.changes:
        yield _change(change)
    for text in plan.restart:
        yield line(f"  * {text}: not applied", "yellow")
    for risk in plan.risks:
        yield line(f"  ! {risk.kind}: {risk.text}", "bold yellow")
    for problem in plan.problems:
        yield line(f"  x {problem}", "bold red")
    if plan.unnamed:
        names = ", ".join(plan.unnamed)
        yield line(f"  message VPNs that stay as they are: {names}", "dim")


def _summary(plan: RouterPlan) -> str:
    if plan.problems:
        return "refused"
    if plan.is_same:
        return "as the file says"
    number = len(plan.changes)
    return f"{number} change{'' if number == 1 else 's'}"


def _change(change: Row) -> Text:
    mark, style = _MARKS.get(change["effect"], _CHANGED)
    return line(f"  {mark} {change['text']}", style)
