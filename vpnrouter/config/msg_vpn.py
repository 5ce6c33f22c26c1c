"""The model of a message VPN: what `settings/message_vpn.py` declares, and its objects by name."""

from typing import TYPE_CHECKING, Annotated, Final

from pydantic import BeforeValidator, Field, model_validator

from vpnrouter.config.bridge import Bridge
from vpnrouter.config.connector import Connector
from vpnrouter.config.model import (
    AclProfileName,
    BridgeName,
    ClientProfileName,
    ClientUsernameName,
    ConnectorName,
    Model,
    Named,
    QueueName,
    ReplayLogName,
    TopicEndpointName,
    model_of,
)
from vpnrouter.config.settings_models import (
    AclProfile,
    ClientProfile,
    ClientUsername,
    Queue,
    ReplayLog,
    TopicEndpoint,
)
from vpnrouter.settings import message_vpn
from vpnrouter.settings.endpoint import QueueDefaults

if TYPE_CHECKING:

    class _Declared(message_vpn.MsgVpn, Model):
        pass
else:
    _Declared = model_of(message_vpn.MsgVpn)


GROUPS: Final = ("client_connect", "publish_topic", "subscribe_topic", "subscribe_share_name")


def allow_by_default(value: object) -> object:
    """Return what is written for the profile `default`, with `allow` wherever no action is written."""
    value = {} if value is None else value
    if not isinstance(value, dict):
        return value
    opened = dict(value)
    for group in GROUPS:
        inner = opened.get(group) or {}
        if isinstance(inner, dict):
            opened[group] = {"default_action": "allow", **inner}
    return opened


def _with_default(value: object) -> object:
    """Add the built-in `default` where it is not configured."""
    value = {} if value is None else value
    return {"default": {}, **value} if isinstance(value, dict) else value


def _with_default_acl(value: object) -> object:
    """Add the built-in `default`, which allows everything, or fill in what is configured for it."""
    value = {} if value is None else value
    if not isinstance(value, dict):
        return value
    return {**value, "default": allow_by_default(value.get("default", {}))}


def _with_queue_defaults(value: object) -> object:
    """Let queues and topic endpoints that say nothing of it have what the message VPN says in `queue_defaults`."""
    if not isinstance(value, dict):
        return value
    defaults = value.get("queue_defaults")
    if not defaults or not isinstance(defaults, dict):
        return value
    filled = dict(value)
    # What is wrong in them is told once, and not of each queue.
    known: dict[str, bool] = {
        key: one
        for key, one in defaults.items()
        if key in QueueDefaults.declared and isinstance(one, bool)
    }
    for group in ("queues", "topic_endpoints"):
        named = value.get(group)
        if isinstance(named, dict):
            filled[group] = {name: _below(one, known) for name, one in named.items()}
    return filled


def _below(value: object, defaults: dict[str, bool]) -> object:
    """Return what is written for an object, with what is written elsewhere for those that say nothing."""
    value = {} if value is None else value
    return {**defaults, **value} if isinstance(value, dict) else value


class MsgVpn(_Declared):
    """One message VPN.

    Client profile, ACL profile and client username `default` always exist. The last one holds for
    clients that log in without a listed client username, where the message VPN lets them in.
    """

    _filled = model_validator(mode="before")(_with_queue_defaults)

    client_profiles: Annotated[
        Named[ClientProfileName, ClientProfile], BeforeValidator(_with_default)
    ] = Field(default={}, validate_default=True, examples=["standard"])
    """Client profiles by name."""

    acl_profiles: Annotated[
        Named[AclProfileName, AclProfile], BeforeValidator(_with_default_acl)
    ] = Field(default={}, validate_default=True, examples=["restricted"])
    """ACL profiles by name."""

    client_usernames: Annotated[
        Named[ClientUsernameName, ClientUsername], BeforeValidator(_with_default)
    ] = Field(default={}, validate_default=True, examples=["alice"])
    """Client usernames by name."""

    queues: Named[QueueName, Queue] = Field(default_factory=dict, examples=["orders"])
    """Queues by name."""

    topic_endpoints: Named[TopicEndpointName, TopicEndpoint] = Field(
        default_factory=dict, examples=["audit"]
    )
    """Topic endpoints by name."""

    replay_logs: Named[ReplayLogName, ReplayLog] = Field(default_factory=dict, examples=["replay"])
    """The replay log by its name; a message VPN has at most one."""

    bridges: Named[BridgeName, Bridge] = Field(default_factory=dict, examples=["from-yellow"])
    """Bridges by name."""

    connectors: Named[ConnectorName, Connector] = Field(
        default_factory=dict, examples=["to-mosquitto"]
    )
    """Connectors to foreign brokers by name."""
