"""Makes commands of the actions that a kind of objects declares: `vpnrouter connector pause NAME`."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from vpnrouter.cli._completion import bridge_names, connector_names
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
from vpnrouter.settings.kinds import BRIDGE, CONNECTOR, CONNECTOR_LINK, Action, Kind

if TYPE_CHECKING:
    from vpnrouter.management.client import ManagementClient

BridgeName = Annotated[
    str, typer.Argument(help="The bridge.", show_default=False, autocompletion=bridge_names)
]

BridgeVpn = Annotated[str, msg_vpn_option("bridge")]

ConnectorName = Annotated[
    str, typer.Argument(help="The connector.", show_default=False, autocompletion=connector_names)
]

ConnectorVpn = Annotated[str, msg_vpn_option("connector")]

LinkName = Annotated[str, typer.Option(metavar="LINK", help="One of its links, and not all of it.")]

_EXIT_CODES: Final = "\n\nExit code 0 when that is done, 1 when it could not be done."


def group() -> typer.Typer:
    """Return a command that has others below it."""
    return typer.Typer(
        no_args_is_help=True,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def add_bridge_action(commands: typer.Typer, action: Action) -> None:
    """Add what may be done to bridges."""

    @commands.command(action.name, help=f"{action.doc}{_EXIT_CODES}")
    def act(
        name: BridgeName,
        msg_vpn: BridgeVpn = "",
        url: Url = DEFAULT_URL,
        user: User = "",
        password_file: PasswordFile = None,
        ca_file: CaFile = None,
    ) -> None:
        with connect(url, user, password_file, ca_file) as client:
            place = msg_vpn_of(client.bridges(msg_vpn), "bridge", name, msg_vpn)
            _act(client, BRIDGE, action, place, (name, "auto"))
        print_lines(f"bridge {name} in message VPN {place} {action.now}")


def add_connector_action(commands: typer.Typer, action: Action) -> None:
    """Add what may be done to connectors and to their links."""

    @commands.command(action.name, help=f"{action.doc}{_EXIT_CODES}")
    def act(
        name: ConnectorName,
        link: LinkName = "",
        msg_vpn: ConnectorVpn = "",
        url: Url = DEFAULT_URL,
        user: User = "",
        password_file: PasswordFile = None,
        ca_file: CaFile = None,
    ) -> None:
        with connect(url, user, password_file, ca_file) as client:
            place = msg_vpn_of(client.connectors(msg_vpn), "connector", name, msg_vpn)
            if link:
                _act(client, CONNECTOR_LINK, action, place, (name,), (link,))
            else:
                _act(client, CONNECTOR, action, place, (name,))
        which = f"link {link} of connector {name}" if link else f"connector {name}"
        print_lines(f"{which} in message VPN {place} {action.now}")


def _act(
    client: "ManagementClient", kind: Kind, action: Action, msg_vpn: str, *keys: tuple[str, ...]
) -> None:
    """Do it to the object with these keys below the message VPN."""
    places: list[str | tuple[str, ...]] = []
    for each, key in zip(kind.chain, ((msg_vpn,), *keys), strict=True):
        places += [each.collection, key]
    client.act(action.name, *places)
