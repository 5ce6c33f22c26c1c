"""`vpnrouter client disconnect NAME`: clients of a running router."""

from typing import Annotated

import typer

from vpnrouter.cli._completion import client_names
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

group = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@group.callback()
def _clients() -> None:
    """Disconnect a client of a running router."""


@group.command("disconnect")
def disconnect(
    name: Annotated[
        str, typer.Argument(help="The client.", show_default=False, autocompletion=client_names)
    ],
    msg_vpn: Annotated[str, msg_vpn_option("client")] = "",
    url: Url = DEFAULT_URL,
    user: User = "",
    password_file: PasswordFile = None,
    ca_file: CaFile = None,
) -> None:
    """End the connection of a client. Nothing keeps it from connecting again; its session stays.

    Exit code 0 when it was disconnected, 1 when there is none of that name or it is away.
    """
    with connect(url, user, password_file, ca_file) as client:
        if not msg_vpn:
            # A condition has no form for a comma: then all names are looked at here.
            where = "" if "," in name or "*" in name else f"clientName=={name}"
            msg_vpn = msg_vpn_of(list(client.clients(where=where)), "client", name)
        client.disconnect_client(msg_vpn, name)
    print_lines(f"client {name} in message VPN {msg_vpn} is disconnected")
