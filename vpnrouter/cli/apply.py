"""`vpnrouter apply MESH`: make routers what a mesh file says, all of them or none."""

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from vpnrouter.cli import _mesh
from vpnrouter.cli._confirm import agreed
from vpnrouter.cli._mesh import MeshPath, Prune
from vpnrouter.cli._output import print_json, print_notes

if TYPE_CHECKING:
    from vpnrouter.plan.execute import Outcome

_FAILED = 1


def command(
    mesh: MeshPath,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    prune: Prune = False,
    settle: Annotated[
        float,
        typer.Option(
            help="Seconds in which bridges have to be up again; 0 does not look.", min=0, max=3600
        ),
    ] = 15.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")] = False,
) -> None:
    """Change routers that run into what one mesh file says.

    What is new comes first at all routers, then bridges, then goes what is no longer wanted. When a step
    fails, or a bridge does not come up, every router goes back to what it was. Exit code 0 when all is as
    the file says, 1 when nothing was changed or everything was taken back, 2 when the file is refused.
    """
    from vpnrouter.cli._mesh import print_plans
    from vpnrouter.plan.compare import compare_all
    from vpnrouter.plan.execute import PlanExecution

    read = _mesh.read(mesh)
    with _mesh.reached(read) as clients:
        plans = compare_all(read.routers, clients, prune=prune)
        print_plans(plans, sys.stderr, as_json=False)
        if any(plan.problems for plan in plans):
            print_notes("vpnrouter: nothing was changed")
            raise typer.Exit(_FAILED)
        if not any(plan.steps for plan in plans):
            if as_json:
                print_json({"applied": True, "done": []})
            return
        if not yes and not agreed("Apply this?"):
            print_notes("vpnrouter: nothing was changed")
            raise typer.Exit(_FAILED)
        carry_out = PlanExecution(clients, _print_step, time.monotonic, time.sleep, settle)
        outcome = carry_out(plans)
    if as_json:
        print_json(outcome.as_dict(), 2)
    _print_outcome(outcome)
    if outcome.failure:
        raise typer.Exit(_FAILED)


def _print_step(text: str) -> None:
    print_notes(text)


def _print_outcome(outcome: "Outcome") -> None:
    if not outcome.failure:
        print_notes("applied")
        return
    print_notes(f"vpnrouter: {outcome.failure}")
    if outcome.returned:
        print_notes(f"vpnrouter: back to what it was: {', '.join(outcome.returned)}")
    for router, why in outcome.stuck.items():
        print_notes(f"vpnrouter: {router} is NOT back to what it was: {why}")
    if not outcome.done:
        print_notes("vpnrouter: nothing was changed")
