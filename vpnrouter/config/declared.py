"""The models of what `settings` declares, for the models that hold them. For mypy they are the declarations."""

from typing import TYPE_CHECKING

from vpnrouter.config.model import model_of
from vpnrouter.settings import acl_profile, client_profile, endpoint, event

if TYPE_CHECKING:
    from vpnrouter.settings.acl_profile import AclProfile
    from vpnrouter.settings.client_profile import ClientProfile
    from vpnrouter.settings.endpoint import GuaranteedMsging, Mqtt, Queue, ReplayLog, TopicEndpoint
    from vpnrouter.settings.event import VpnEvent
else:
    AclProfile = model_of(acl_profile.AclProfile)
    ClientProfile = model_of(client_profile.ClientProfile)
    GuaranteedMsging = model_of(endpoint.GuaranteedMsging)
    Mqtt = model_of(endpoint.Mqtt)
    Queue = model_of(endpoint.Queue)
    ReplayLog = model_of(endpoint.ReplayLog)
    TopicEndpoint = model_of(endpoint.TopicEndpoint)
    VpnEvent = model_of(event.VpnEvent)

__all__ = (
    "AclProfile",
    "ClientProfile",
    "GuaranteedMsging",
    "Mqtt",
    "Queue",
    "ReplayLog",
    "TopicEndpoint",
    "VpnEvent",
)
