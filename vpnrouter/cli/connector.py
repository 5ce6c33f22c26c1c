"""`vpnrouter connector enable|disable|pause|resume|reconnect NAME`: connectors of a running router, and their links."""

from typing import Final

from vpnrouter.cli._actions import add_connector_action
from vpnrouter.cli._actions import group as new_group
from vpnrouter.settings.kinds import CONNECTOR

group: Final = new_group()

for _action in CONNECTOR.actions:
    add_connector_action(group, _action)
