"""The models of the classes in `settings` that other models hold. For mypy they are those classes."""

from typing import TYPE_CHECKING

from vpnrouter.config.model import model_of
from vpnrouter.settings import (
    acl_profile,
    bridge,
    client_profile,
    client_username,
    endpoint,
    message_vpn,
)

if TYPE_CHECKING:
    from vpnrouter.settings.acl_profile import AclProfile
    from vpnrouter.settings.bridge import ClientCertRemoteAuthentication, RemoteMsgVpn
    from vpnrouter.settings.client_profile import ClientProfile
    from vpnrouter.settings.client_username import ClientUsername
    from vpnrouter.settings.endpoint import GuaranteedMsging, Queue, ReplayLog, TopicEndpoint
    from vpnrouter.settings.message_vpn import TlsServerCert
else:
    AclProfile = model_of(acl_profile.AclProfile)
    ClientCertRemoteAuthentication = model_of(bridge.ClientCertRemoteAuthentication)
    ClientProfile = model_of(client_profile.ClientProfile)
    ClientUsername = model_of(client_username.ClientUsername)
    GuaranteedMsging = model_of(endpoint.GuaranteedMsging)
    Queue = model_of(endpoint.Queue)
    RemoteMsgVpn = model_of(bridge.RemoteMsgVpn)
    ReplayLog = model_of(endpoint.ReplayLog)
    TlsServerCert = model_of(message_vpn.TlsServerCert)
    TopicEndpoint = model_of(endpoint.TopicEndpoint)

__all__ = (
    "AclProfile",
    "ClientCertRemoteAuthentication",
    "ClientProfile",
    "ClientUsername",
    "GuaranteedMsging",
    "Queue",
    "RemoteMsgVpn",
    "ReplayLog",
    "TlsServerCert",
    "TopicEndpoint",
)
