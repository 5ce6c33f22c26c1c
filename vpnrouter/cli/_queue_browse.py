"""`vpnrouter queue browse NAME`: the messages of a queue, which all stay there."""

import sys
from datetime import UTC, datetime
from typing import Annotated, Any, Final

import typer

from vpnrouter.cli._queue_place import MsgVpn, Name, find
from vpnrouter.cli._router_access import DEFAULT_URL, CaFile, PasswordFile, Url, User, connect
from vpnrouter.cli._told import note, say_bytes, say_json

COUNT: Final = 20

_NONE: Final = "-"


def browse(
    name: Name,
    msg_vpn: MsgVpn = "",
    count: Annotated[int, typer.Option(min=1, help="Messages to show.")] = COUNT,
    after: Annotated[int, typer.Option(metavar="ID", min=0, help="Begin behind this message.")] = 0,
    payload: Annotated[
        int | None,
        typer.Option(
            metavar="ID", min=0, help="Write the payload of this message and nothing else."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all attributes as JSON.")] = False,
    url: Url = DEFAULT_URL,
    user: User = "",
    password_file: PasswordFile = None,
    ca_file: CaFile = None,
) -> None:
    """Show the messages of a queue, the oldest first. They stay there, and consumers notice nothing.

    Exit code 0 when they were shown, also when there are none, 1 when there is no such queue or
    message.
    """
    with connect(url, user, password_file, ca_file) as client:
        place = find(client, name, msg_vpn)
        if payload is not None:
            from vpnrouter.cli._mqtt_shown import shown_payload

            found = client.payload(place, name, payload)
            # Control characters must not reach a terminal.
            say_bytes(shown_payload(found) if sys.stdout.isatty() else found)
            return
        rows = client.msgs(place, name, count, after)
    if as_json:
        say_json(rows, 2)
    elif not rows:
        note(f"vpnrouter: no messages in queue {name}")
    else:
        _show(rows)


def _show(rows: list[dict[str, Any]]) -> None:
    from rich.table import Table

    from vpnrouter.cli._bridge_tables import console_for

    table = Table(box=None, pad_edge=False)
    table.add_column("Message", justify="right")
    table.add_column("Topic", overflow="fold")
    for title in ("Bytes", "Priority", "Redelivered"):
        table.add_column(title, justify="right")
    for title in ("Spooled", "Expires"):
        table.add_column(title)
    table.add_column("Publisher", overflow="fold")
    for row in rows:
        table.add_row(
            str(row["msgId"]),
            row["topic"],
            f"{row['contentSize']:,}",
            str(row["priority"]),
            str(row["redeliveryCount"]),
            when(row["spooledTime"]),
            when(row["expiryTime"]),
            row["publisherId"] or _NONE,
        )
    console_for(sys.stdout).print(table)


def when(seconds: int) -> str:
    """A time in UTC, as in ISO 8601."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}" if seconds else _NONE
