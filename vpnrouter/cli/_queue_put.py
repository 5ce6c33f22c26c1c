"""`vpnrouter queue copy|move NAME TO`: messages into another queue of the same message VPN."""

from pathlib import Path
from typing import Annotated

import typer

from vpnrouter.cli._queue_place import MsgIds, MsgVpn, Name, find
from vpnrouter.cli._router_access import DEFAULT_URL, CaFile, PasswordFile, Url, User, connect
from vpnrouter.cli._told import say, say_json

To = Annotated[str, typer.Argument(help="The queue to put them into.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def copy(
    name: Name,
    to: To,
    msg_id: MsgIds = None,
    msg_vpn: MsgVpn = "",
    as_json: AsJson = False,
    url: Url = DEFAULT_URL,
    user: User = "",
    password_file: PasswordFile = None,
    ca_file: CaFile = None,
) -> None:
    """Put the messages of a queue, or those named, into another queue as well.

    Without --msg-id all but those that a consumer holds. Exit code 0 when the other queue has them,
    1 when it did not take all.
    """
    _put(name, to, msg_id, msg_vpn, as_json, url, user, password_file, ca_file, move=False)


def move(
    name: Name,
    to: To,
    msg_id: MsgIds = None,
    msg_vpn: MsgVpn = "",
    as_json: AsJson = False,
    url: Url = DEFAULT_URL,
    user: User = "",
    password_file: PasswordFile = None,
    ca_file: CaFile = None,
) -> None:
    """Put the messages of a queue, or those named, into another queue instead: each is in one of both.

    For example vpnrouter queue move '#DEAD_MSG_QUEUE' orders once what kept them from being consumed
    is put right. Without --msg-id all but those that a consumer holds. Exit code 0 when the other
    queue has them, 1 when it did not take all.
    """
    _put(name, to, msg_id, msg_vpn, as_json, url, user, password_file, ca_file, move=True)


def _put(
    name: str,
    to: str,
    msg_ids: list[int] | None,
    msg_vpn: str,
    as_json: bool,
    url: str,
    user: str,
    password_file: Path | None,
    ca_file: Path | None,
    *,
    move: bool,
) -> None:
    with connect(url, user, password_file, ca_file) as client:
        place = find(client, name, msg_vpn)
        count = client.put_msgs(place, name, to, msg_ids, move=move)
    if as_json:
        say_json({"msgCount": count})
    else:
        say(f"{'moved' if move else 'copied'} {count:,} messages to {to}")
    if msg_ids and count < len(set(msg_ids)):
        raise typer.Exit(1)
