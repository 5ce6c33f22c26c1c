"""`vpnrouter bridge enable|disable|reconnect NAME`: bridges of a running router."""

from typing import TYPE_CHECKING, Annotated

import typer

from vpnrouter.cli._completion import bridge_names, vpn_names
from vpnrouter.cli._output import print_lines
from vpnrouter.cli._router_access import DEFAULT_URL, CaFile, PasswordFile, Url, User, connect
from vpnrouter.errors import OperationError

if TYPE_CHECKING:
    from vpnrouter.management.client import ManagementClient

Name = Annotated[
    str, typer.Argument(help="The bridge.", show_default=False, autocompletion=bridge_names)
]

MsgVpn = Annotated[
    str,
    typer.Option(
        metavar="VPN",
        help="Its message VPN; needed where several have a bridge of that name.",
        autocompletion=vpn_names,
    ),
]

group = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@group.command("enable")
def enable(
    name: Name,
    msg_vpn: MsgVpn = "",
    url: Url = DEFAULT_URL,
    user: User = "",
    password_file: PasswordFile = None,
    ca_file: CaFile = None,
) -> None:
    """Switch a bridge on. The router keeps that over a restart.

    Exit code 0 when it is switched on, 1 when that could not be done.
    """
    with connect(url, user, password_file, ca_file) as client:
        place = find(client, name, msg_vpn)
        client.enable_bridge(place, name, enabled=True)
    print_lines(f"bridge {name} in message VPN {place} is enabled")


@group.command("disable")
def disable(
    name: Name,
    msg_vpn: MsgVpn = "",
    url: Url = DEFAULT_URL,
    user: User = "",
    password_file: PasswordFile = None,
    ca_file: CaFile = None,
) -> None:
    """Switch a bridge off: it disconnects. The router keeps that over a restart.

    Exit code 0 when it is switched off, 1 when that could not be done.
    """
    with connect(url, user, password_file, ca_file) as client:
        place = find(client, name, msg_vpn)
        client.enable_bridge(place, name, enabled=False)
    print_lines(f"bridge {name} in message VPN {place} is disabled")


@group.command("reconnect")
def reconnect(
    name: Name,
    msg_vpn: MsgVpn = "",
    url: Url = DEFAULT_URL,
    user: User = "",
    password_file: PasswordFile = None,
    ca_file: CaFile = None,
) -> None:
    """End the connection of a bridge; it connects again by itself, to its first remote that answers.

    Exit code 0 when the connection was ended, 1 when that could not be done.
    """
    with connect(url, user, password_file, ca_file) as client:
        place = find(client, name, msg_vpn)
        client.disconnect_bridge(place, name)
    print_lines(f"bridge {name} in message VPN {place} connects again")


def find(client: "ManagementClient", name: str, msg_vpn: str) -> str:
    """The message VPN of bridge `name`. Raises OperationError where there is none, or several are."""
    rows = client.bridges(msg_vpn)
    found = [row["msgVpnName"] for row in rows if row["bridgeName"] == name]
    if not found:
        where = f" in message VPN {msg_vpn}" if msg_vpn else ""
        have = ", ".join(dict.fromkeys(row["bridgeName"] for row in rows)) or "none"
        raise OperationError(f"there is no bridge {name}{where}; there are: {have}")
    if len(found) > 1:
        raise OperationError(
            f"message VPNs {', '.join(found)} each have a bridge {name}; --msg-vpn says which"
        )
    return str(found[0])
