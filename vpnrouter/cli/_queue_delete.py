"""`vpnrouter queue purge NAME` and `vpnrouter queue delete-msg NAME ID…`: messages that nobody will get."""

import sys
from typing import Annotated

import typer

from vpnrouter.cli._queue_place import MsgVpn, Name, find
from vpnrouter.cli._router_access import DEFAULT_URL, CaFile, PasswordFile, Url, User, connect
from vpnrouter.cli._told import say, say_json


def purge(
    name: Name,
    msg_vpn: MsgVpn = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    url: Url = DEFAULT_URL,
    user: User = "",
    password_file: PasswordFile = None,
    ca_file: CaFile = None,
) -> None:
    """Delete all messages of a queue but those that a consumer holds.

    Exit code 0 when they are gone, also from the disk, 1 when that could not be done or was not
    wanted.
    """
    with connect(url, user, password_file, ca_file) as client:
        place = find(client, name, msg_vpn)
        if not yes:
            if not sys.stdin.isatty():
                raise typer.BadParameter("nobody is there to be asked", param_hint="--yes")
            typer.confirm(
                f"Delete all messages of queue {name} in message VPN {place}?", abort=True, err=True
            )
        count = client.delete_msgs(place, name)
    _tell(as_json, count)


def delete_msg(
    name: Name,
    msg_ids: Annotated[
        list[int], typer.Argument(metavar="ID...", help="The messages.", show_default=False)
    ],
    msg_vpn: MsgVpn = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    url: Url = DEFAULT_URL,
    user: User = "",
    password_file: PasswordFile = None,
    ca_file: CaFile = None,
) -> None:
    """Delete messages of a queue by their ids, as `queue browse` shows them.

    Exit code 0 when all of them were there and are gone, 1 when not.
    """
    with connect(url, user, password_file, ca_file) as client:
        place = find(client, name, msg_vpn)
        count = client.delete_msgs(place, name, msg_ids)
    _tell(as_json, count)
    if count < len(set(msg_ids)):
        raise typer.Exit(1)


def _tell(as_json: bool, count: int) -> None:
    if as_json:
        say_json({"msgCount": count})
    else:
        say(f"deleted {count:,} messages")
