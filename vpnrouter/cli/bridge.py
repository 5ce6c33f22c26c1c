"""`vpnrouter bridge enable|disable|pause|resume|reconnect NAME`: bridges of a running router."""

from typing import Final

from vpnrouter.cli._actions import BridgeName, BridgeVpn, add_bridge_action
from vpnrouter.cli._actions import group as new_group
from vpnrouter.cli._output import print_lines
from vpnrouter.cli._router_access import (
    DEFAULT_URL,
    CaFile,
    PasswordFile,
    Url,
    User,
    connect,
    msg_vpn_of,
)
from vpnrouter.settings.kinds import BRIDGE

group: Final = new_group()

for _action in BRIDGE.actions:
    add_bridge_action(group, _action)


@group.command("reconnect")
def reconnect(
    name: BridgeName,
    msg_vpn: BridgeVpn = "",
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
