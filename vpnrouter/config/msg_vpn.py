"""The model of a message VPN, with its objects by name. For mypy it has those of the kinds that other code names."""

from typing import TYPE_CHECKING

from vpnrouter.config.model import Model, model_of
from vpnrouter.settings import message_vpn

if TYPE_CHECKING:
    from vpnrouter.config.bridge import Bridge
    from vpnrouter.config.connector import Connector
    from vpnrouter.config.settings_models import (
        AclProfile,
        ClientProfile,
        ClientUsername,
        Queue,
        ReplayLog,
        TopicEndpoint,
    )

    class MsgVpn(message_vpn.MsgVpn, Model):
        """One message VPN."""

        client_profiles: dict[str, ClientProfile]
        acl_profiles: dict[str, AclProfile]
        client_usernames: dict[str, ClientUsername]
        queues: dict[str, Queue]
        topic_endpoints: dict[str, TopicEndpoint]
        replay_logs: dict[str, ReplayLog]
        bridges: dict[str, Bridge]
        connectors: dict[str, Connector]
else:
    MsgVpn = model_of(message_vpn.MsgVpn)

__all__ = ("MsgVpn",)
