"""`vpnrouter plan MESH`: what would a mesh file change at its routers?"""

import sys
from typing import Annotated

import typer

from vpnrouter.cli import _mesh
from vpnrouter.cli._mesh import MeshPath, Prune

_FAILED = 1


def command(
    mesh: MeshPath,
    prune: Prune = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Compare routers that run with one mesh file: the differences, and what would flap or be lost.

    Nothing changes. Exit code 0 when the plan can be applied, 1 when a router does not answer or would
    refuse it, 2 when the file is refused.
    """
    from vpnrouter.cli._mesh import print_plans
    from vpnrouter.plan.compare import compare_all

    read = _mesh.read(mesh)
    with _mesh.reached(read) as clients:
        plans = compare_all(read.routers, clients, prune=prune)
    print_plans(plans, sys.stdout, as_json=as_json)
    if any(plan.problems for plan in plans):
        raise typer.Exit(_FAILED)
