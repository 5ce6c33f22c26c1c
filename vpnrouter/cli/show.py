"""`vpnrouter show bridges|queues [NAME]`: what a running router is and does."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from vpnrouter.cli._router_access import DEFAULT_URL, CaFile, PasswordFile, Url, User, connect

if TYPE_CHECKING:
    from vpnrouter.cli._bridge_tables import Tables
    from vpnrouter.cli._queue_tables import QueueTables

_FAILED: Final = 1


class What(StrEnum):
    """What can be shown."""

    BRIDGES = "bridges"
    QUEUES = "queues"

    @property
    def one(self) -> str:
        """One of them."""
        return self.value.removesuffix("s")


def command(
    what: Annotated[What, typer.Argument(help="What to show.", show_default=False)],
    name: Annotated[
        str, typer.Argument(help="Only this one; * stands for any characters.", show_default=False)
    ] = "",
    msg_vpn: Annotated[str, typer.Option(metavar="VPN", help="Only those in this VPN.")] = "",
    detail: Annotated[bool, typer.Option("--detail", help="Everything about each one.")] = False,
    stats: Annotated[bool, typer.Option("--stats", help="Counts, rates and discards.")] = False,
    balance: Annotated[
        bool, typer.Option("--balance", help="Is every message accounted for? Exit code 1 if not.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all attributes as JSON.")] = False,
    url: Url = DEFAULT_URL,
    user: User = "",
    password_file: PasswordFile = None,
    ca_file: CaFile = None,
) -> None:
    """Show what a running router is and does, as its management API tells.

    Exit code 0 when it was shown, 1 when there is no answer, nothing of that name, or, with
    --balance, a message that is not accounted for.
    """
    rows = _named(what, _asked(what, msg_vpn, url, user, password_file, ca_file), name, msg_vpn)
    tables = _tables(what)
    if as_json:
        print(json.dumps(rows, indent=2))
    elif not rows:
        print(f"vpnrouter: no {what}", file=sys.stderr)
    else:
        if detail:
            tables.detail(rows)
        if stats:
            tables.stats(rows)
        if balance:
            tables.balance(rows)
        if not (detail or stats or balance):
            tables.overview(rows)
    if balance and not all(tables.is_balanced(row) for row in rows):
        raise typer.Exit(_FAILED)


def _tables(what: What) -> "Tables | QueueTables":
    if what is What.QUEUES:
        from vpnrouter.cli._queue_tables import QueueTables

        return QueueTables(sys.stdout)
    from vpnrouter.cli._bridge_tables import Tables

    return Tables(sys.stdout)


def _asked(
    what: What,
    msg_vpn: str,
    url: str,
    user: str,
    password_file: Path | None,
    ca_file: Path | None,
) -> list[dict[str, Any]]:
    with connect(url, user, password_file, ca_file) as client:
        return {What.BRIDGES: client.bridges, What.QUEUES: client.queues}[what](msg_vpn)


def _named(what: What, rows: list[dict[str, Any]], name: str, msg_vpn: str) -> list[dict[str, Any]]:
    if not name:
        return rows
    from vpnrouter.errors import OperationError
    from vpnrouter.management.where import matches

    key = f"{what.one}Name"
    found = [row for row in rows if matches(name, row[key])]
    if not found:
        where = f" in message VPN {msg_vpn}" if msg_vpn else ""
        have = ", ".join(dict.fromkeys(row[key] for row in rows)) or "none"
        raise OperationError(f"there is no {what.one} {name}{where}; there are: {have}")
    return found
