"""Makes the settings of a running bridge, its flow and its remotes from its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from typing_extensions import override

from vpnrouter import limits
from vpnrouter.bridges.bridge import BridgeFacts
from vpnrouter.bridges.machine import BridgeSettings
from vpnrouter.bridges.remote_links import ConfiguredRemotes
from vpnrouter.bridges.remote_order import Remote
from vpnrouter.bridges.remote_settings import FlowSettings, RemoteSettings
from vpnrouter.config.configured_failures import failures_of
from vpnrouter.config.model import changed
from vpnrouter.settings.address import router_of
from vpnrouter.settings.bridge import DEFAULT_WINDOW
from vpnrouter.settings.schema import apply_settings
from vpnrouter.topics.grammar import MQTT, SMF, parse_filter, to_smf
from vpnrouter.topics.mapping import TopicMapping, add_prefix, directed, parse_rule, strip_prefix
from vpnrouter.wire.link.encode import subscription_flags
from vpnrouter.wire.link.frames import BASIC, CLIENT_CERTIFICATE, SCRAM

if TYPE_CHECKING:
    from vpnrouter.config.bridge import Bridge
    from vpnrouter.core.credentials import PeerCertificate
    from vpnrouter.settings.bridge import ClientCertRemoteAuthentication, RemoteMsgVpn
    from vpnrouter.settings.listener import ListenerTls
    from vpnrouter.settings.message_vpn import TlsServerCert


PRIORITIES: Final = {"da": 0, "p1": 1, "p2": 2, "p3": 3, "p4": 4}


def subscriptions(bridge: Bridge) -> list[tuple[int, str]]:
    """Return the remote subscriptions of a bridge as (flags, filter in `*` `>` dialect), exceptions first.

    A filter in the other dialect may be two in this one.
    """
    dialect = MQTT if bridge.topic_syntax == "mqtt" else SMF
    priority = PRIORITIES[bridge.remote_deliver_to_one_priority]
    flags_by_filter: dict[str, int] = {}
    excepted: dict[str, int] = {}
    for subscription in bridge.remote_subscriptions:
        flags = subscription_flags(
            priority,
            deliver_always=subscription.deliver_always_enabled,
            retained=bridge.retained == "replay",
        )
        filter_ = parse_filter(subscription.topic, dialect, exceptions=True)
        for text in to_smf(filter_):
            if filter_.exception:
                excepted[text] = flags
            else:
                flags_by_filter[text] = flags
    # Where something excepted was asked for first, a message of it could slip through in between.
    return [(flags, text) for text, flags in (excepted | flags_by_filter).items()]


def selectors(bridge: Bridge) -> dict[str, str]:
    """Return the selector of each filter that has one, by the filter as `subscriptions` gives it."""
    dialect = MQTT if bridge.topic_syntax == "mqtt" else SMF
    return {
        text: subscription.selector
        for subscription in bridge.remote_subscriptions
        if subscription.selector
        for text in to_smf(parse_filter(subscription.topic, dialect, exceptions=True))
    }


def scheme_of(bridge: Bridge, remote: RemoteMsgVpn) -> str:
    """Return how the bridge logs in to this remote: "basic" or "client-certificate"."""
    return remote.authentication_scheme or bridge.remote_authentication.scheme


def client_cert_of(
    bridge: Bridge, remote: RemoteMsgVpn, server: ListenerTls | None = None
) -> ClientCertRemoteAuthentication | None:
    """Return the certificate that the bridge shows to this remote, None where it does not log in by certificate.

    Where none is configured it is that of the router, `server`.
    """
    if scheme_of(bridge, remote) != "client-certificate":
        return None
    chosen = remote.client_cert or bridge.remote_authentication.client_cert
    if server is not None and chosen.certificate is None and chosen.key is None:
        return changed(
            chosen,
            certificate=server.certificate,
            key=server.key,
            password=server.key_password,
        )
    return chosen


def expected_router(remote: RemoteMsgVpn) -> str:
    """Return the name that the remote router must give, "" for any."""
    return remote.router or router_of(remote.location) or ""


def verifies_name(remote: RemoteMsgVpn, server_cert: TlsServerCert) -> bool:
    """Return whether TLS verifies the name of the remote."""
    checked = server_cert.validate_name_enabled or bool(server_cert.trusted_common_names)
    return remote.tls_enabled and checked


def remote_settings_of(
    name: str, bridge: Bridge, remote: RemoteMsgVpn, server_cert: TlsServerCert
) -> RemoteSettings:
    """Return the settings of the bridge `name` towards one of its remotes, its password included."""
    basic = bridge.remote_authentication.basic
    username = basic.client_username or ""
    password = basic.password
    if remote.client_username is not None:
        username = remote.client_username
        password = remote.password
    by_certificate = scheme_of(bridge, remote) == "client-certificate"
    scheme = CLIENT_CERTIFICATE if by_certificate else BASIC
    if not by_certificate and password is not None and basic.mechanism != "plain":
        scheme = SCRAM
    computed = RemoteSettings(
        bridge=name,
        remote_vpn=remote.name,
        remote_router=expected_router(remote),
        client_username="" if by_certificate else username,
        password="" if by_certificate or password is None else password.reveal(),
        scheme=scheme,
        verified=verifies_name(remote, server_cert),
        # What is paused stays bound to its queue, and asks for nothing.
        filters=[] if bridge.paused else subscriptions(bridge),
        selectors={} if bridge.paused else selectors(bridge),
        mapping=mapping_of(bridge, "in"),
        window=0 if bridge.paused else window_of(remote),
        flow=flow_settings_of(bridge),
    )
    return apply_settings(computed, bridge, remote)


def window_of(remote: RemoteMsgVpn) -> int:
    """Return how many guaranteed messages from a remote may be on the way; its queue and their bytes bound them too."""
    window = remote.egress_flow_window_size
    return limits.LINK_FLOW_POSITIONS if window == DEFAULT_WINDOW else window


def flow_settings_of(bridge: Bridge) -> FlowSettings:
    """Return how the bridge handles guaranteed messages, from whichever remote they come."""
    computed = FlowSettings(mapping=mapping_of(bridge, "in"), failures=failures_of(bridge))
    return apply_settings(computed, bridge)


def mapping_of(bridge: Bridge, direction: str) -> TopicMapping | None:
    """Return how topics are renamed where messages come "in" or go "out"; None where they are not.

    A rule for both directions renames what goes out by its inverse.
    """
    dialect = MQTT if bridge.topic_syntax == "mqtt" else SMF
    rules = []
    for rule in bridge.topic_mapping:
        if rule.add_prefix is not None:
            rules.append(add_prefix(rule.add_prefix, dialect))
        elif rule.strip_prefix is not None:
            rules.append(strip_prefix(rule.strip_prefix, dialect))
        else:
            rules.append(parse_rule(rule.from_ or "", rule.to or "", dialect))
    inward, outward = directed(rules, [rule.direction for rule in bridge.topic_mapping])
    chosen = inward if direction == "in" else outward
    return chosen if chosen.rules else None


@final
class ConfiguredBridge(ConfiguredRemotes):
    """The bridge `name` as it is configured. `identity` is the certificate of the router."""

    def __init__(
        self,
        name: str,
        bridge: Bridge,
        server_cert: TlsServerCert,
        identity: ListenerTls | None = None,
    ) -> None:
        self.name = name
        self.bridge = bridge
        self.server_cert = server_cert
        self.identity = identity
        self.out_mapping = mapping_of(bridge, "out") if bridge.enabled else None
        self.remotes = tuple(_remote(remote_msg_vpn) for remote_msg_vpn in bridge.remote_msg_vpns)
        self._by_key = {
            (remote_msg_vpn.name, remote_msg_vpn.location): remote_msg_vpn
            for remote_msg_vpn in bridge.remote_msg_vpns
        }

    def of(self, remote: Remote) -> RemoteMsgVpn:
        """Return a remote as it is configured. Raises KeyError for one that is not."""
        return self._by_key[remote.msg_vpn, remote.location]

    def settings(self, *, vpn_enabled: bool) -> BridgeSettings:
        """Return the settings of when and where the bridge connects."""
        computed = BridgeSettings(remotes=self.remotes, vpn_enabled=vpn_enabled)
        return apply_settings(computed, self.bridge)

    def facts(self, router: str, msg_vpn: str) -> BridgeFacts:
        """Return what monitoring shows of the bridge in every state."""
        username = self.bridge.remote_authentication.basic.client_username or ""
        return apply_settings(BridgeFacts(router, msg_vpn, self.name, username), self.bridge)

    @override
    def terms(self, remote: Remote) -> RemoteSettings:
        return remote_settings_of(self.name, self.bridge, self.of(remote), self.server_cert)

    def client_cert(self, remote: Remote) -> ClientCertRemoteAuthentication | None:
        """Return the certificate that it shows to a remote, None where it does not log in by certificate."""
        return client_cert_of(self.bridge, self.of(remote), self.identity)

    @override
    def trusts(
        self, certificate: PeerCertificate | None, names: tuple[str, ...], wall_ns: int
    ) -> bool:
        return passes(certificate, self.server_cert, names, wall_ns)


def _remote(remote: RemoteMsgVpn) -> Remote:
    address = remote.address
    computed = Remote(
        router=expected_router(remote),
        host="" if address is None else address.host,
        port=0 if address is None else address.port,
        router_at=router_of(remote.location) or "",
    )
    return apply_settings(computed, remote)


def passes(
    certificate: PeerCertificate | None, rules: TlsServerCert, names: tuple[str, ...], wall_ns: int
) -> bool:
    """Return whether what a peer that dialled us has shown would suffice, by `rules`, if we had dialled it.

    Its chain has been verified by the listener. `names` are the router's and the host's, one of which it is to be
    made out to.
    """
    if certificate is None or certificate.chain_depth > rules.max_chain_depth:
        return False
    if (
        rules.validate_date_enabled
        and not certificate.not_before_ns <= wall_ns <= certificate.not_after_ns
    ):
        return False
    if rules.trusted_common_names and certificate.common_name not in rules.trusted_common_names:
        return False
    named = {text.lower() for text in (certificate.common_name, *certificate.san)}
    return not rules.validate_name_enabled or any(name.lower() in named for name in names)
