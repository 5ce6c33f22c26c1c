"""`vpnrouter drift MESH`: are the routers what the mesh file says? For monitoring."""

import sys
from typing import Annotated

import typer

from vpnrouter.cli import _mesh
from vpnrouter.cli._mesh import MeshPath, Prune
from vpnrouter.cli._output import print_notes

_DRIFTED = 1


def command(
    mesh: MeshPath,
    prune: Prune = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the drift as JSON.")] = False,
) -> None:
    """Tell whether routers that run are what one mesh file says.

    Exit code 0 when all are, 1 when one differs or does not answer, 2 when the file is refused.
    """
    from vpnrouter.cli._mesh import print_plans
    from vpnrouter.errors import OperationError
    from vpnrouter.plan.compare import compare

    read = _mesh.read(mesh)
    plans = []
    silent = False
    with _mesh.reached(read) as clients:
        for planned in read.routers:
            try:
                plans.append(compare(planned, clients[planned.name], prune=prune))
            except OperationError as error:
                # The others are compared all the same: a router that is away hides no drift.
                print_notes(f"vpnrouter: {planned.name}: {error}")
                silent = True
    print_plans(plans, sys.stdout, as_json=as_json)
    if silent or not all(plan.is_same and not plan.problems for plan in plans):
        raise typer.Exit(_DRIFTED)
