"""`vpnrouter bridge enable|disable|reconnect NAME`: bridges of a running router."""

from typing import Annotated

import typer

from vpnrouter.cli._completion import bridge_names
from vpnrouter.cli._output import print_lines
from vpnrouter.cli._router_access import (
    DEFAULT_URL,
    CaFile,
    PasswordFile,
    Url,
    User,
    connect,
    msg_vpn_of,
    msg_vpn_option,
)

Name = Annotated[
    str, typer.Argument(help="The bridge.", show_default=False, autocompletion=bridge_names)
]

MsgVpn = Annotated[str, msg_vpn_option("bridge")]

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
        place = msg_vpn_of(client.bridges(msg_vpn), "bridge", name, msg_vpn)
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
        place = msg_vpn_of(client.bridges(msg_vpn), "bridge", name, msg_vpn)
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
        place = msg_vpn_of(client.bridges(msg_vpn), "bridge", name, msg_vpn)
        client.disconnect_bridge(place, name)
    print_lines(f"bridge {name} in message VPN {place} connects again")
