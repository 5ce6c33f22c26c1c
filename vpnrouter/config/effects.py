"""What a change of each key does to a running router: the table that a reload follows.

Every key of the models has a row (a test walks them), so that a new key makes its author decide.
Where the field takes a bridge down for a change (maxTtl, credentials, deliver-to-one priority,
window), this router does not; where the field leaves those logged in alone
(allowBridgeConnectionsEnabled and the other permissions of a client profile) or disables a client username
for a moment (aclProfileName, clientProfileName), this one lets what is taken away go at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from vpnrouter.config.model import Model
from vpnrouter.config.secrets import Secret
from vpnrouter.text import printable

SECRET: Final = "***"  # noqa: S105 - what is shown in place of one
_LONGEST_SHOWN: Final = 60


class Effect(Enum):
    """What a change does to a running router. The value is how it is told."""

    IN_PLACE = "at once"
    """Takes effect at once; nobody is disconnected."""

    NEXT_LOGIN = "for logins from now on"
    """Whoever is logged in keeps what held at the login."""

    DISCONNECT = "its clients are disconnected"
    """Holds at once, so those whom it shuts out are disconnected; nobody else."""

    RECONNECT = "reconnects after draining"
    """The bridge above it (of a message VPN's `bridging`: each of its TLS bridges) reconnects."""

    RECONNECT_IF_USED = "reconnects after draining if it is in use"
    """The bridge above it reconnects if this is the remote message VPN that it is connected to."""

    REBIND = "the listener is bound anew"
    """The listener closes if it was bound, and is bound if it is enabled."""

    ADDED = "added"
    """An object that was not there."""

    REMOVED = "removed"
    """An object that is no longer there. A message VPN, a client username and a bridge take their
    connections with them; a listener only takes no new ones."""

    RESTART = "needs restart"
    """The running router keeps what it started with."""


class Item(NamedTuple):
    """An item of a list in a path: what identifies it, and which one it is of several alike (0 the
    first).
    """

    identity: tuple[str, ...]
    nth: int = 0

    def __str__(self) -> str:
        again = f" #{self.nth + 1}" if self.nth else ""
        return f"[{' '.join(self.identity)}{again}]"


ChangePath = tuple[str | Item, ...]
"""Keys and names, and an `Item` where a list has its items."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. `before` and `after` are values of the models; None where nothing stood.

    An object that is added or removed is one change, whatever is in it.
    """

    path: ChangePath
    before: object
    after: object
    kind: Effect

    def __repr__(self) -> str:
        """Shows no secret, nor any other value of the configuration at length."""
        return f"Change({describe(self)})"


def describe(change: Change) -> str:
    """One line for people, without secrets: `msg_vpns.blue.max_msg_size: 8 -> 4 (at once)`."""
    where = show_change_path(change.path)
    if change.kind in (Effect.ADDED, Effect.REMOVED):
        return f"{where}: {change.kind.value}"
    return f"{where}: {_shown(change.before)} -> {_shown(change.after)} ({change.kind.value})"


def show_change_path(path: ChangePath) -> str:
    """`msg_vpns.blue.bridges.from-x.remote_msg_vpns[red 192.0.2.1:55555].enabled`."""
    text = ""
    for step in path:
        shown = printable(str(step))
        text += shown if isinstance(step, Item) or not text else f".{shown}"
    return text


def _shown(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, Secret):
        return SECRET
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (Model, dict)):
        # Values by name may be secrets.
        return "{…}"
    if isinstance(value, tuple) and not isinstance(value, Item):
        text = printable(f"[{', '.join(_shown(item) for item in value)}]")
        many = any(isinstance(item, Model) for item in value) or len(text) > _LONGEST_SHOWN
        return f"{len(value)} items" if many and value else text
    return printable(str(value), _LONGEST_SHOWN)


ANY: Final = "*"
"""In a pattern: every name or item at that place."""

Pattern = tuple[str, ...]
"""Keys from the top of the configuration, `ANY` for names of objects and items of lists."""


class Row(NamedTuple):
    """The effect of a change; `off` instead where a switch goes to false."""

    effect: Effect
    off: Effect | None = None


def _rows(prefix: str, effect: Effect, keys: str, off: Effect | None = None) -> dict[Pattern, Row]:
    """A row for each of `keys` below `prefix`; both are dotted."""
    return {
        _pattern(f"{prefix}.{key}" if prefix else key): Row(effect, off) for key in keys.split()
    }


def _pattern(dotted: str) -> Pattern:
    return tuple(dotted.split("."))


_LISTENER: Final = "listeners.*"
_VPN: Final = "msg_vpns.*"
_PROFILE: Final = "msg_vpns.*.client_profiles.*"
_ACL: Final = "msg_vpns.*.acl_profiles.*"
_USERNAME: Final = "msg_vpns.*.client_usernames.*"
_QUEUE: Final = "msg_vpns.*.queues.*"
_TOPIC_ENDPOINT: Final = "msg_vpns.*.topic_endpoints.*"
_BRIDGE: Final = "msg_vpns.*.bridges.*"
_REMOTE: Final = "msg_vpns.*.bridges.*.remote_msg_vpns.*"
_SUBSCRIPTION: Final = "msg_vpns.*.bridges.*.remote_subscriptions.*"

_ENDPOINT_KEYS: Final = (
    "access_type dead_msg_queue delivery_count_enabled delivery_delay egress_enabled"
    " ingress_enabled max_delivered_unacked_msgs_per_flow max_msg_size max_redelivery_count max_ttl"
    " max_spooled_msg_count owner permission redelivery.enabled redelivery.delay.enabled"
    " redelivery.delay.initial_interval redelivery.delay.max_interval redelivery.delay.multiplier"
    " reject_low_priority_msg.enabled reject_low_priority_msg.limit respect_dmq_eligible_enabled"
    " respect_msg_priority_enabled respect_ttl_enabled max_bind_count"
    " reject_msg_to_sender_on_discard_behavior"
    " event.bind_count_threshold.set_percent event.bind_count_threshold.clear_percent"
    " event.reject_low_priority_msg_limit_threshold.set_percent"
    " event.reject_low_priority_msg_limit_threshold.clear_percent"
)

TABLE: Final[dict[Pattern, Row]] = {
    # What the router is, and what writes files, is set up once.
    **_rows("router", Effect.RESTART, "name data_dir umask"),
    **_rows("guaranteed_msging", Effect.RESTART, "enabled"),
    **_rows("guaranteed_msging", Effect.IN_PLACE, "max_msg_spool_usage"),
    # It is checked when a bridge is dialled.
    **_rows("bridging", Effect.IN_PLACE, "allowed_locations"),
    **_rows(
        "",
        Effect.RESTART,
        "trace trace.enabled trace.directory trace.sample trace.rotation.max_bytes"
        " trace.rotation.max_rows trace.rotation.max_seconds trace.retention.max_days"
        " trace.always trace.filters trace.traceparent trace.emit_traceparent"
        " trace.otlp.enabled trace.otlp.endpoint trace.otlp.headers trace.otlp.timeout_s"
        " trace.otlp.max_queue"
        " trace.retention.max_bytes",
    ),
    # Asked at each request.
    **_rows("management.users.*", Effect.IN_PLACE, "password role msg_vpns"),
    # The next line is written under what holds then.
    **_rows("logging", Effect.IN_PLACE, "format level rate_limit"),
    **_rows(
        "logging.levels",
        Effect.IN_PLACE,
        "system vpn client bridge queue management config trace",
    ),
    **_rows(_LISTENER, Effect.NEXT_LOGIN, "msg_vpn"),
    **_rows(_LISTENER, Effect.REBIND, "enabled tls"),
    **_rows(_LISTENER, Effect.IN_PLACE, "max_connection_count allowed_origins"),
    # A handshake that is over is not looked at again.
    **_rows(
        _LISTENER,
        Effect.IN_PLACE,
        "tls.certificate tls.key tls.key_password tls.min_version tls.client_ca tls.client_crl",
    ),
    **_rows(_VPN, Effect.IN_PLACE, "enabled", off=Effect.DISCONNECT),
    # Where authentication is enabled, names that are not listed may not stay.
    **_rows(
        _VPN,
        Effect.DISCONNECT,
        "authentication.basic.enabled authentication.client_cert.enabled",
        off=Effect.NEXT_LOGIN,
    ),
    **_rows(
        _VPN,
        Effect.NEXT_LOGIN,
        "authentication.client_cert.ca authentication.client_cert.max_chain_depth"
        " authentication.client_cert.username_source"
        " authentication.client_cert.validate_date_enabled",
    ),
    # As in the field: every TLS bridge of the message VPN shakes hands again.
    **_rows(
        _VPN,
        Effect.RECONNECT,
        "bridging.tls_server_cert.ca bridging.tls_server_cert.crl"
        " bridging.tls_server_cert.max_chain_depth bridging.tls_server_cert.trusted_common_names"
        " bridging.tls_server_cert.validate_date_enabled"
        " bridging.tls_server_cert.validate_name_enabled",
    ),
    **_rows(
        _VPN,
        Effect.IN_PLACE,
        "max_connection_count max_egress_flow_count max_endpoint_count max_ingress_flow_count"
        " max_msg_spool_usage max_retained_msg_count max_subscription_count max_topic_bytes"
        " max_topic_levels",
    ),
    **_rows(
        f"{_VPN}.event",
        Effect.IN_PLACE,
        "log_tag publish.client_enabled publish.msg_vpn_enabled publish.subscription_mode"
        " publish.topic_format.mqtt_enabled publish.topic_format.smf_enabled"
        " ingress_msg_rate_threshold.set_value ingress_msg_rate_threshold.clear_value"
        " egress_msg_rate_threshold.set_value egress_msg_rate_threshold.clear_value",
    ),
    **{
        _pattern(f"{_VPN}.event.{watched}_threshold.{mark}_percent"): Row(Effect.IN_PLACE)
        for watched in (
            *("connection_count", "subscription_count", "endpoint_count", "msg_spool_usage"),
            *("ingress_flow_count", "egress_flow_count"),
        )
        for mark in ("set", "clear")
    },
    **_rows(f"{_VPN}.event", Effect.NEXT_LOGIN, "large_msg_threshold"),
    **_rows(f"{_VPN}.mqtt", Effect.IN_PLACE, "max_session_count retain_max_memory"),
    # The session's queue keeps what it was made with until the client logs in again.
    **_rows(
        f"{_VPN}.mqtt.session_queue",
        Effect.NEXT_LOGIN,
        "dead_msg_queue max_delivered_unacked_msgs_per_flow max_msg_size max_msg_spool_usage"
        " max_redelivery_count max_spooled_msg_count max_ttl reject_low_priority_msg.enabled"
        " reject_low_priority_msg.limit reject_msg_to_sender_on_discard_behavior"
        " respect_ttl_enabled",
    ),
    **_rows(
        f"{_VPN}.replay_logs.*",
        Effect.IN_PLACE,
        "egress_enabled ingress_enabled max_spool_usage topic_filter.enabled"
        " topic_filter.subscriptions topic_filter.topic_syntax",
    ),
    # A client and a link were told at their login how large a message may be.
    **_rows(_VPN, Effect.NEXT_LOGIN, "max_msg_size"),
    # Rights are taken away and given back at once (promise OWNER).
    **_rows(
        _PROFILE,
        Effect.IN_PLACE,
        "allow_guaranteed_endpoint_create_durability allow_guaranteed_endpoint_create_enabled"
        " allow_guaranteed_msg_receive_enabled allow_guaranteed_msg_send_enabled"
        " allow_shared_subscriptions_enabled",
    ),
    **_rows(
        _PROFILE, Effect.IN_PLACE, "allow_bridge_connections_enabled", off=Effect.DISCONNECT
    ),
    **_rows(
        _PROFILE,
        Effect.NEXT_LOGIN,
        "compression_enabled eliding.enabled eliding.delay eliding.max_topic_count"
        " end_to_end_bridge max_keepalive_timeout"
        " max_mqtt_session_count_per_client_username max_mqtt_session_expiry_interval max_outbox_bytes"
        " reject_msg_to_sender_on_no_subscription_match_enabled",
    ),
    **_rows(
        _PROFILE,
        Effect.IN_PLACE,
        "event.connection_count_per_client_username_threshold.set_percent"
        " event.connection_count_per_client_username_threshold.clear_percent"
        " max_connection_count_per_client_username max_egress_flow_count"
        " max_endpoint_count_per_client_username max_ingress_flow_count max_subscription_count",
    ),
    **_rows(
        _ACL,
        Effect.DISCONNECT,
        "client_connect.default_action client_connect.exceptions",
    ),
    **_rows(
        _ACL,
        Effect.IN_PLACE,
        "publish_topic.default_action publish_topic.exceptions publish_topic.topic_syntax"
        " subscribe_topic.default_action subscribe_topic.exceptions subscribe_topic.topic_syntax"
        " subscribe_share_name.default_action subscribe_share_name.exceptions"
        " subscribe_share_name.topic_syntax",
    ),
    **_rows(_USERNAME, Effect.NEXT_LOGIN, "enabled", off=Effect.DISCONNECT),
    **_rows(_USERNAME, Effect.NEXT_LOGIN, "password password_required"),
    **_rows(_USERNAME, Effect.IN_PLACE, "client_profile acl_profile"),
    **_rows(_USERNAME, Effect.IN_PLACE, "guaranteed_endpoint_permission_override_enabled"),
    **_rows(_QUEUE, Effect.IN_PLACE, _ENDPOINT_KEYS),
    **_rows(
        _QUEUE,
        Effect.IN_PLACE,
        "event.msg_spool_usage_threshold.set_percent event.msg_spool_usage_threshold.clear_percent"
        " max_msg_spool_usage partition.count partition.rebalance_delay"
        " partition.rebalance_max_handoff_time subscriptions topic_syntax",
    ),
    **_rows(
        _TOPIC_ENDPOINT,
        Effect.IN_PLACE,
        f"{_ENDPOINT_KEYS} max_spool_usage event.spool_usage_threshold.set_percent"
        " event.spool_usage_threshold.clear_percent",
    ),
    # `enabled` is in place: the bridge comes up or goes down, nobody else notices.
    **_rows(
        _BRIDGE,
        Effect.IN_PLACE,
        "enabled guaranteed_retry_interval lane_by max_parked_msg_spool_usage max_ttl on_reject retained"
        " remote_deliver_to_one_priority topic_syntax topic_mapping"
        " remote_connection.retry_count remote_connection.retry_delay"
        " remote_connection.failback_delay",
    ),
    **_rows(
        _BRIDGE, Effect.RECONNECT, "remote_connection.heartbeat_interval tls_cipher_suite_list"
    ),
    # Credentials are looked up at each login, so no link goes down for a rotated password.
    **_rows(
        _BRIDGE,
        Effect.NEXT_LOGIN,
        "remote_authentication.scheme remote_authentication.basic.client_username"
        " remote_authentication.basic.mechanism remote_authentication.basic.password"
        " remote_authentication.client_cert.certificate"
        " remote_authentication.client_cert.key remote_authentication.client_cert.password",
    ),
    # The list itself: its order counts among remotes of one connect order.
    **_rows(_BRIDGE, Effect.IN_PLACE, "remote_msg_vpns"),
    **_rows(_REMOTE, Effect.IN_PLACE, "connect_order queue_binding egress_flow_window_size"),
    **_rows(_REMOTE, Effect.IN_PLACE, "enabled", off=Effect.RECONNECT_IF_USED),
    **_rows(
        _REMOTE, Effect.RECONNECT_IF_USED, "router tls_enabled compressed_data_enabled"
    ),
    **_rows(
        _REMOTE,
        Effect.NEXT_LOGIN,
        "client_username password authentication_scheme client_cert client_cert.certificate"
        " client_cert.key client_cert.password",
    ),
    **_rows(_SUBSCRIPTION, Effect.IN_PLACE, "deliver_always_enabled selector"),
}  # fmt: skip

IDENTITIES: Final[dict[Pattern, tuple[str, ...]]] = {
    ("listeners",): ("protocol", "bind"),
    _pattern(f"{_BRIDGE}.remote_msg_vpns"): ("name", "location"),
    _pattern(f"{_BRIDGE}.remote_subscriptions"): ("topic",),
}
"""Lists whose items are objects of their own, and the keys that say which: another value there is
another object, removed and added. Any other list is one value."""


def effect_of(pattern: Pattern, after: object) -> Effect:
    """What a change at `pattern` to the value `after` does. KeyError for what has no row."""
    row = TABLE[pattern]
    return row.off if after is False and row.off is not None else row.effect
