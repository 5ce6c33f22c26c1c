"""Makes the core's objects from a checked configuration."""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import TYPE_CHECKING

from vpnrouter.config.configured_connector import provider_clients_of
from vpnrouter.config.model import is_said
from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.core.credentials import ClientCertRules, ClientUsername, Credentials
from vpnrouter.core.guaranteed.endpoint_settings import endpoint_settings_of
from vpnrouter.core.profile import ClientProfile
from vpnrouter.core.router import Router
from vpnrouter.core.vpn import MessageVpn, VpnLimits
from vpnrouter.server.net.tls import authorities_in
from vpnrouter.server.traces import terms_of as trace_terms_of
from vpnrouter.settings.schema import apply_settings
from vpnrouter.topics.grammar import MQTT, SMF
from vpnrouter.trace.recorder import Recorder

if TYPE_CHECKING:
    from vpnrouter.config import msg_vpn
    from vpnrouter.config.router import RouterConfig
    from vpnrouter.settings import acl_profile, client_profile, client_username


def build_router(config: RouterConfig, seed: int, secret: bytes) -> Router:
    """The router a configuration describes, without connections.

    `seed` is 64 random bits for ids and sampling, `secret` random bytes for remembered passwords.
    """
    trace = config.trace
    sample = trace.sample if trace is not None and trace.enabled else 0.0
    router = Router(config.router.name, seed, Recorder(), sample, trace_terms_of(trace, seed))
    router.context.ids.draw_by(sha256(b"message ids" + secret).digest())
    for name, configured in config.msg_vpns.items():
        router.add(vpn_of(router, name, configured, secret))
    return router


def vpn_of(router: Router, name: str, configured: msg_vpn.MsgVpn, secret: bytes) -> MessageVpn:
    """One message VPN of `router`, without clients."""
    vpn = MessageVpn(
        name,
        router.context,
        credentials_of(name, configured, secret),
        {key: profile_of(key, value) for key, value in configured.client_profiles.items()},
        {key: acl_of(key, value) for key, value in configured.acl_profiles.items()},
        bounds_of(configured),
    )
    vpn.enabled = configured.enabled
    vpn.session_terms = endpoint_settings_of(configured.mqtt.session_queue)
    vpn.queue_terms = endpoint_settings_of(configured.queue_defaults)
    vpn.provider_clients = provider_clients_of(configured.connectors)
    return vpn


def bounds_of(configured: msg_vpn.MsgVpn) -> VpnLimits:
    """The bounds of a message VPN."""
    return apply_settings(VpnLimits(), configured)


def credentials_of(name: str, configured: msg_vpn.MsgVpn, secret: bytes) -> Credentials:
    """Who may log in to the message VPN `name`; nothing is remembered as verified yet."""
    basic = configured.authentication.basic
    rules = configured.authentication.client_cert
    return Credentials(
        basic.enabled,
        [username_of(key, value) for key, value in configured.client_usernames.items()],
        # Of its own: what is drawn for unknown names of one message VPN does not show which of another are known.
        hmac.digest(secret, b"message VPN\0" + name.encode(), "sha256"),
        ClientCertRules(
            rules.username_source,
            rules.max_chain_depth,
            rules.validate_date_enabled,
            # Nobody's until the file has been read: that is done where it may fail (take_authorities).
            None if rules.ca is None else frozenset(),
        )
        if rules.enabled
        else None,
    )


def read_authorities(config: RouterConfig) -> dict[str, frozenset[bytes]]:
    """By message VPN, the authorities of those that take only certificates of their own ones.

    Raises OperationError naming the file that cannot be used.
    """
    rules = ((name, vpn.authentication.client_cert) for name, vpn in config.msg_vpns.items())
    return {
        name: authorities_in(rule.ca)
        for name, rule in rules
        if rule.enabled and rule.ca is not None
    }


def take_authorities(router: Router, found: dict[str, frozenset[bytes]]) -> None:
    """Let what `read_authorities` found hold from the next login on."""
    for name, authorities in found.items():
        rules = router.vpns[name].credentials.client_cert
        if rules is not None:
            rules.authorities = authorities


def username_of(name: str, configured: client_username.ClientUsername) -> ClientUsername:
    """A client username, its password included."""
    password = configured.password
    computed = ClientUsername(
        name,
        password=None if password is None else password.reveal(),
        # The built-in one is not written, or says nothing.
        listed=name != "default" or is_said(configured),
    )
    return apply_settings(computed, configured)


def profile_of(name: str, configured: client_profile.ClientProfile) -> ClientProfile:
    """What the clients of a client profile may do."""
    return apply_settings(ClientProfile(name), configured)


def acl_of(name: str, configured: acl_profile.AclProfile) -> AclProfile:
    """What an ACL profile allows."""
    connect = configured.client_connect
    return AclProfile(
        name,
        connect_default_allow=connect.default_action == "allow",
        connect_exceptions=connect.exceptions,
        publish=_rule(configured.publish_topic),
        subscribe=_rule(configured.subscribe_topic),
        share_name=_rule(configured.subscribe_share_name),
    )


def _rule(
    configured: acl_profile.PublishTopic
    | acl_profile.SubscribeTopic
    | acl_profile.SubscribeShareName,
) -> TopicRule:
    dialect = MQTT if configured.topic_syntax == "mqtt" else SMF
    return TopicRule(
        configured.default_action == "allow", [(text, dialect) for text in configured.exceptions]
    )
