"""`vpnrouter spool verify CONFIG|DIRECTORY`: is everything in a spool as it must be?"""

from pathlib import Path
from typing import Annotated

import typer

from vpnrouter.cli._spool_place import PRESENT, config_of, held, spool_of
from vpnrouter.cli._told import note, say, say_json


def verify(
    place: Annotated[
        Path,
        typer.Argument(
            metavar="CONFIG|DIRECTORY",
            help="A router's YAML file, or the directory of a spool or of a backup.",
            show_default=False,
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Read a whole spool or backup and check all that must hold in it. Nothing in it changes.

    The router must be stopped; a running one is backed up, and the backup verified. Exit code 0
    when the spool is sound, 1 when not, or when there is none.
    """
    from vpnrouter.errors import OperationError

    spool = place if place.is_dir() else spool_of(config_of(place))
    if not (spool / PRESENT).is_file():
        raise OperationError(f"{spool}: there is no spool")
    from vpnrouter.cli._spool_findings import findings

    with held(spool):
        problems = findings(spool)
    if as_json:
        say_json({"spool": str(spool), "sound": not problems, "problems": problems})
    else:
        note(*problems)
        say(f"{spool}: {'damaged' if problems else 'sound'}")
    if problems:
        raise typer.Exit(1)
