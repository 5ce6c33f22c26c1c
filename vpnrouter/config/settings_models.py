"""The models of the classes in `settings` that other models hold. For mypy they are those classes."""

from typing import TYPE_CHECKING

from vpnrouter.config.model import model_of
from vpnrouter.settings import (
    acl_profile,
    bridge,
    client_profile,
    client_username,
    endpoint,
    listener,
    logging,
    management,
    message_vpn,
    router,
    trace,
)

if TYPE_CHECKING:
    from vpnrouter.settings.acl_profile import AclProfile
    from vpnrouter.settings.bridge import ClientCertRemoteAuthentication, RemoteMsgVpn
    from vpnrouter.settings.client_profile import ClientProfile
    from vpnrouter.settings.client_username import ClientUsername
    from vpnrouter.settings.endpoint import GuaranteedMsging, Queue, ReplayLog, TopicEndpoint
    from vpnrouter.settings.listener import Listener, ListenerTls
    from vpnrouter.settings.logging import Logging
    from vpnrouter.settings.management import Management, User
    from vpnrouter.settings.message_vpn import TlsServerCert
    from vpnrouter.settings.router import Router, RouterBridging
    from vpnrouter.settings.trace import Otlp, Trace, TraceFilter
else:
    AclProfile = model_of(acl_profile.AclProfile)
    ClientCertRemoteAuthentication = model_of(bridge.ClientCertRemoteAuthentication)
    ClientProfile = model_of(client_profile.ClientProfile)
    ClientUsername = model_of(client_username.ClientUsername)
    GuaranteedMsging = model_of(endpoint.GuaranteedMsging)
    Listener = model_of(listener.Listener)
    ListenerTls = model_of(listener.ListenerTls)
    Logging = model_of(logging.Logging)
    Management = model_of(management.Management)
    Otlp = model_of(trace.Otlp)
    Queue = model_of(endpoint.Queue)
    RemoteMsgVpn = model_of(bridge.RemoteMsgVpn)
    ReplayLog = model_of(endpoint.ReplayLog)
    Router = model_of(router.Router)
    RouterBridging = model_of(router.RouterBridging)
    TlsServerCert = model_of(message_vpn.TlsServerCert)
    TopicEndpoint = model_of(endpoint.TopicEndpoint)
    Trace = model_of(trace.Trace)
    TraceFilter = model_of(trace.TraceFilter)
    User = model_of(management.User)

__all__ = (
    "AclProfile",
    "ClientCertRemoteAuthentication",
    "ClientProfile",
    "ClientUsername",
    "GuaranteedMsging",
    "Listener",
    "ListenerTls",
    "Logging",
    "Management",
    "Otlp",
    "Queue",
    "RemoteMsgVpn",
    "ReplayLog",
    "Router",
    "RouterBridging",
    "TlsServerCert",
    "TopicEndpoint",
    "Trace",
    "TraceFilter",
    "User",
)
