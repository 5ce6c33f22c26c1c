"""`vpnrouter show bridges [NAME]`: what a running router is and does."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

DEFAULT_URL: Final = "http://127.0.0.1:8080"

_FAILED: Final = 1


class What(StrEnum):
    """What can be shown."""

    BRIDGES = "bridges"


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
    url: Annotated[
        str, typer.Option(envvar="VPNROUTER_URL", help="The router's http listener.")
    ] = DEFAULT_URL,
    user: Annotated[str, typer.Option(help="A user of its management.")] = "",
    password_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File with the user's password.")
    ] = None,
    ca_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Authority of an https listener (PEM).")
    ] = None,
) -> None:
    """Show what a running router is and does, as its management API tells.

    Exit code 0 when it was shown, 1 when there is no answer, nothing of that name, or, with
    --balance, a message that is not accounted for.
    """
    rows = _asked(what, url, user, _password(user, password_file), msg_vpn, ca_file)
    rows = _named(rows, name, msg_vpn)
    from vpnrouter.cli._bridge_tables import Tables, is_balanced

    if as_json:
        print(json.dumps(rows, indent=2))
    elif not rows:
        print("vpnrouter: no bridges", file=sys.stderr)
    else:
        tables = Tables(sys.stdout)
        if detail:
            tables.detail(rows)
        if stats:
            tables.stats(rows)
        if balance:
            tables.balance(rows)
        if not (detail or stats or balance):
            tables.overview(rows)
    if balance and not all(is_balanced(row) for row in rows):
        raise typer.Exit(_FAILED)


def _asked(
    what: What, url: str, user: str, password: str, msg_vpn: str, ca_file: Path | None
) -> list[dict[str, Any]]:
    from vpnrouter.management.client import ManagementClient

    try:
        client = ManagementClient(
            url, user, password, ca_file="" if ca_file is None else str(ca_file)
        )
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--url") from error
    with client:
        return {What.BRIDGES: client.bridges}[what](msg_vpn)


def _named(rows: list[dict[str, Any]], name: str, msg_vpn: str) -> list[dict[str, Any]]:
    if not name:
        return rows
    from vpnrouter.errors import OperationError
    from vpnrouter.management.where import matches

    found = [row for row in rows if matches(name, row["bridgeName"])]
    if not found:
        where = f" in message VPN {msg_vpn}" if msg_vpn else ""
        have = ", ".join(dict.fromkeys(row["bridgeName"] for row in rows)) or "none"
        raise OperationError(f"there is no bridge {name}{where}; there are: {have}")
    return found


def _password(user: str, password_file: Path | None) -> str:
    if password_file is None:
        if not user:
            return ""
        if not sys.stdin.isatty():
            raise typer.BadParameter("a user needs its password", param_hint="--password-file")
        return str(typer.prompt("Password", hide_input=True, err=True))
    if not user:
        raise typer.BadParameter("whose password it is is missing", param_hint="--user")
    try:
        return password_file.read_text(encoding="utf-8").partition("\n")[0].rstrip("\r")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise typer.BadParameter(
            f"cannot read {password_file}: {why}", param_hint="--password-file"
        ) from error
