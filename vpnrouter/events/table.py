"""The names of all events: level, area, what they tell and what they clear. docs/events.md is the table for people.

Names are those of the field where it has one. Each constant is what `EventLog.raise_event` takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DEBUG: Final = 0
INFO: Final = 1
NOTICE: Final = 2
WARNING: Final = 3
ERROR: Final = 4

NAMES: Final = ("debug", "info", "notice", "warning", "error")
"""By level, as configuration, log lines and management API have them."""

TOPIC_NAMES: Final = ("DEBUG", "INFO", "NOTICE", "WARN", "ERROR")
"""By level, as the field's topics of events have them."""


SYSTEM: Final = "system"
VPN: Final = "vpn"
CLIENT: Final = "client"
BRIDGE: Final = "bridge"
QUEUE: Final = "queue"
MANAGEMENT: Final = "management"
CONFIG: Final = "config"
TRACE: Final = "trace"

AREAS: Final = (SYSTEM, VPN, CLIENT, BRIDGE, QUEUE, MANAGEMENT, CONFIG, TRACE)
"""Parts of the router whose events have a level of their own in `logging.levels`."""


@dataclass(frozen=True, slots=True, eq=False)
class EventType:
    """One type of event. `level` is one of the levels below.

    `clears` is the name of the event that this one ends, "" for none. A `one_shot` event is not repeated until it is
    cleared. `label` begins the text of a readable line, None for the name.
    """

    name: str
    level: int
    area: str
    tells: str
    clears: str = ""
    one_shot: bool = False
    label: str | None = None

    @property
    def scope(self) -> str:
        """`SYSTEM`, `VPN` or `CLIENT`: how the field's names begin."""
        return self.name.partition("_")[0]

    @property
    def level_name(self) -> str:
        """`info`, `warning` and so on."""
        return NAMES[self.level]


# -- the router itself -------------------------------------------------------------------------------

STARTUP: Final = EventType(
    "SYSTEM_SYSTEM_STARTUP_COMPLETE", NOTICE, SYSTEM, "The router is up and serves", label=""
)
SHUTDOWN: Final = EventType(
    "SYSTEM_SYSTEM_SHUTDOWN", NOTICE, SYSTEM, "The router was told to stop", label=""
)
NOTE: Final = EventType(
    "SYSTEM_SYSTEM_NOTE", NOTICE, SYSTEM, "What has no name of its own", label=""
)
SUPPRESSED: Final = EventType(
    "SYSTEM_LOGGING_SUPPRESSED",
    WARNING,
    SYSTEM,
    "Events that `logging.rate_limit` kept out of the log, or that nobody read",
    label="",
)
FAULT: Final = EventType(
    "SYSTEM_SYSTEM_FAULT",
    ERROR,
    SYSTEM,
    "Something unexpected was raised and contained: what it cost, and the place in the code",
    label="",
)
LISTEN_PORT: Final = EventType(
    "SYSTEM_SERVICE_LISTEN_PORT_STATE_CHANGE",
    INFO,
    SYSTEM,
    "A listener answers, or does no more",
)
CERTIFICATE_CHANGED: Final = EventType(
    "SYSTEM_SSL_CERTIFICATE_CHANGED", NOTICE, SYSTEM, "A listener shows another certificate"
)
TLS_FAILED: Final = EventType(
    "SYSTEM_SSL_HANDSHAKE_FAILED", WARNING, SYSTEM, "A TLS handshake came to nothing", label=""
)
STRANGERS_REFUSED: Final = EventType(
    "SYSTEM_CLIENT_CONNECTIONS_REFUSED",
    WARNING,
    SYSTEM,
    "Connections or logins were turned away to stay within a bound; once a minute for each reason",
)
SPOOL_DOWN: Final = EventType(
    "SYSTEM_AD_MSG_SPOOL_DOWN",
    ERROR,
    SYSTEM,
    "The message spool cannot be written; guaranteed messages are refused",
    label="",
)
SPOOL_UP: Final = EventType(
    "SYSTEM_AD_MSG_SPOOL_UP",
    NOTICE,
    SYSTEM,
    "The message spool can be written again",
    clears="SYSTEM_AD_MSG_SPOOL_DOWN",
    label="",
)
SPOOL_TROUBLE: Final = EventType(
    "SYSTEM_AD_MSG_SPOOL_TROUBLE",
    ERROR,
    QUEUE,
    "The spool cannot give a message back, or cannot note that it has gone",
    label="",
)
SPOOL_RECOVERED: Final = EventType(
    "SYSTEM_AD_MSG_SPOOL_RECOVERED",
    NOTICE,
    QUEUE,
    "How many messages waited in the spool at the start",
    label="",
)
SYSTEM_SPOOL_HIGH: Final = EventType(
    "SYSTEM_AD_MSG_SPOOL_HIGH", WARNING, SYSTEM, "The spool of the router fills up"
)
SYSTEM_SPOOL_HIGH_CLEAR: Final = EventType(
    "SYSTEM_AD_MSG_SPOOL_HIGH_CLEAR",
    NOTICE,
    SYSTEM,
    "It has room again",
    clears="SYSTEM_AD_MSG_SPOOL_HIGH",
)
SYSTEM_SPOOL_QUOTA: Final = EventType(
    "SYSTEM_AD_MSG_SPOOL_QUOTA_EXCEED",
    WARNING,
    SYSTEM,
    "The spool of the router is full",
    one_shot=True,
)

# -- configuration and management --------------------------------------------------------------------

RELOAD: Final = EventType(
    "SYSTEM_CONFIG_RELOAD", NOTICE, CONFIG, "The configuration file was read again", label="SIGHUP"
)
CONFIG_CHANGE: Final = EventType(
    "SYSTEM_CONFIG_CHANGE",
    NOTICE,
    CONFIG,
    "Who changed what through the management API",
    label="CONFIG",
)
CONFIG_REFUSED: Final = EventType(
    "SYSTEM_CONFIG_CHANGE_REFUSED", WARNING, CONFIG, "A change that was asked for and not made"
)
ACTION: Final = EventType(
    "SYSTEM_MANAGEMENT_ACTION",
    NOTICE,
    MANAGEMENT,
    "Who did what to clients, queues or bridges through the management API",
)
LOGIN_DENIED: Final = EventType(
    "SYSTEM_AUTHENTICATION_SESSION_DENIED",
    WARNING,
    MANAGEMENT,
    "A login to the management API failed",
)
MANAGEMENT_FAULT: Final = EventType(
    "SYSTEM_MANAGEMENT_FAULT",
    ERROR,
    MANAGEMENT,
    "A request to the management API found a fault of the router",
    label="management",
)
TRACE_TROUBLE: Final = EventType(
    "SYSTEM_TRACE_TROUBLE", WARNING, TRACE, "Traces or spans are lost, or go on again", label=""
)

TRACE_UPLOAD_DOWN: Final = EventType(
    "SYSTEM_TRACE_UPLOAD_DOWN", WARNING, TRACE, "Trace files cannot be uploaded; it goes on trying"
)
TRACE_UPLOAD_UP: Final = EventType(
    "SYSTEM_TRACE_UPLOAD_UP",
    NOTICE,
    TRACE,
    "Trace files are uploaded again",
    clears="SYSTEM_TRACE_UPLOAD_DOWN",
)

# -- message VPNs ------------------------------------------------------------------------------------

VPN_STATE: Final = EventType(
    "VPN_VPN_STATE_CHANGE", NOTICE, VPN, "A message VPN was enabled, disabled, added or removed"
)
CONNECTIONS_HIGH: Final = EventType(
    "VPN_VPN_CONNECTIONS_HIGH", WARNING, VPN, "Clients come close to `max_connection_count`"
)
CONNECTIONS_HIGH_CLEAR: Final = EventType(
    "VPN_VPN_CONNECTIONS_HIGH_CLEAR",
    NOTICE,
    VPN,
    "No longer",
    clears="VPN_VPN_CONNECTIONS_HIGH",
)
USERNAME_CONNECTIONS_HIGH: Final = EventType(
    "VPN_CLIENT_USERNAME_CONNECTIONS_HIGH",
    WARNING,
    VPN,
    "Clients of one client username come close to `max_connection_count_per_client_username`",
)
USERNAME_CONNECTIONS_HIGH_CLEAR: Final = EventType(
    "VPN_CLIENT_USERNAME_CONNECTIONS_HIGH_CLEAR",
    NOTICE,
    VPN,
    "No longer",
    clears="VPN_CLIENT_USERNAME_CONNECTIONS_HIGH",
)
CONNECTIONS_EXCEEDED: Final = EventType(
    "VPN_VPN_MAX_CONNECTIONS_EXCEEDED",
    WARNING,
    VPN,
    "A login was refused at `max_connection_count`",
    one_shot=True,
)
SUBSCRIPTIONS_HIGH: Final = EventType(
    "VPN_VPN_SUBSCRIPTIONS_HIGH",
    WARNING,
    VPN,
    "Subscriptions come close to `max_subscription_count`",
)
SUBSCRIPTIONS_HIGH_CLEAR: Final = EventType(
    "VPN_VPN_SUBSCRIPTIONS_HIGH_CLEAR",
    NOTICE,
    VPN,
    "No longer",
    clears="VPN_VPN_SUBSCRIPTIONS_HIGH",
)
SUBSCRIPTIONS_EXCEEDED: Final = EventType(
    "VPN_VPN_MAX_SUBSCRIPTIONS_EXCEEDED",
    WARNING,
    VPN,
    "A subscription was refused at `max_subscription_count`",
    one_shot=True,
)
RETAINED_EXCEEDED: Final = EventType(
    "VPN_VPN_MAX_RETAINED_EXCEEDED",
    WARNING,
    VPN,
    "A message was not retained at `max_retained_msg_count`, `mqtt.retain_max_memory` or `max_msg_spool_usage`",
    one_shot=True,
)
INGRESS_RATE_HIGH: Final = EventType(
    "VPN_VPN_ING_MSG_RATE_HIGH", WARNING, VPN, "More messages a second come in than wanted"
)
INGRESS_RATE_HIGH_CLEAR: Final = EventType(
    "VPN_VPN_ING_MSG_RATE_HIGH_CLEAR",
    NOTICE,
    VPN,
    "No longer",
    clears="VPN_VPN_ING_MSG_RATE_HIGH",
)
EGRESS_RATE_HIGH: Final = EventType(
    "VPN_VPN_EG_MSG_RATE_HIGH", WARNING, VPN, "More messages a second go out than wanted"
)
EGRESS_RATE_HIGH_CLEAR: Final = EventType(
    "VPN_VPN_EG_MSG_RATE_HIGH_CLEAR",
    NOTICE,
    VPN,
    "No longer",
    clears="VPN_VPN_EG_MSG_RATE_HIGH",
)
SPOOL_HIGH: Final = EventType(
    "VPN_AD_MSG_SPOOL_HIGH",
    WARNING,
    QUEUE,
    "The guaranteed messages of a message VPN, a queue or a topic endpoint come close to their bound",
)
SPOOL_HIGH_CLEAR: Final = EventType(
    "VPN_AD_MSG_SPOOL_HIGH_CLEAR", NOTICE, QUEUE, "No longer", clears="VPN_AD_MSG_SPOOL_HIGH"
)
SPOOL_QUOTA: Final = EventType(
    "VPN_AD_MSG_SPOOL_QUOTA_EXCEED",
    WARNING,
    QUEUE,
    "A guaranteed message was refused for want of room",
    one_shot=True,
)
BINDS_HIGH: Final = EventType(
    "VPN_AD_BIND_COUNT_HIGH", WARNING, QUEUE, "Consumers come close to `max_bind_count`"
)
BINDS_HIGH_CLEAR: Final = EventType(
    "VPN_AD_BIND_COUNT_HIGH_CLEAR", NOTICE, QUEUE, "No longer", clears="VPN_AD_BIND_COUNT_HIGH"
)
LOW_PRIORITY_HIGH: Final = EventType(
    "VPN_AD_MSG_SPOOL_REJECT_LOW_PRIORITY_MSG_LIMIT_HIGH",
    WARNING,
    QUEUE,
    "A queue comes close to where it refuses messages of low priority",
)
LOW_PRIORITY_HIGH_CLEAR: Final = EventType(
    "VPN_AD_MSG_SPOOL_REJECT_LOW_PRIORITY_MSG_LIMIT_HIGH_CLEAR",
    NOTICE,
    QUEUE,
    "No longer",
    clears="VPN_AD_MSG_SPOOL_REJECT_LOW_PRIORITY_MSG_LIMIT_HIGH",
)
ENDPOINTS_HIGH: Final = EventType(
    "VPN_AD_ENDPOINTS_HIGH", WARNING, QUEUE, "Endpoints come close to `max_endpoint_count`"
)
ENDPOINTS_HIGH_CLEAR: Final = EventType(
    "VPN_AD_ENDPOINTS_HIGH_CLEAR", NOTICE, QUEUE, "No longer", clears="VPN_AD_ENDPOINTS_HIGH"
)
INGRESS_FLOWS_HIGH: Final = EventType(
    "VPN_AD_INGRESS_FLOWS_HIGH", WARNING, QUEUE, "Flows come close to `max_ingress_flow_count`"
)
INGRESS_FLOWS_HIGH_CLEAR: Final = EventType(
    "VPN_AD_INGRESS_FLOWS_HIGH_CLEAR",
    NOTICE,
    QUEUE,
    "No longer",
    clears="VPN_AD_INGRESS_FLOWS_HIGH",
)
EGRESS_FLOWS_HIGH: Final = EventType(
    "VPN_AD_EGRESS_FLOWS_HIGH", WARNING, QUEUE, "Flows come close to `max_egress_flow_count`"
)
EGRESS_FLOWS_HIGH_CLEAR: Final = EventType(
    "VPN_AD_EGRESS_FLOWS_HIGH_CLEAR",
    NOTICE,
    QUEUE,
    "No longer",
    clears="VPN_AD_EGRESS_FLOWS_HIGH",
)
ORPHAN: Final = EventType(
    "VPN_AD_ENDPOINT_NOT_CONFIGURED",
    WARNING,
    QUEUE,
    "An endpoint that is not configured any more keeps its messages",
    label="",
)

# -- bridges -----------------------------------------------------------------------------------------

LINK_UP: Final = EventType("VPN_BRIDGING_LINK_UP", NOTICE, BRIDGE, "A bridge is up")
LINK_DOWN: Final = EventType("VPN_BRIDGING_LINK_DOWN", WARNING, BRIDGE, "A bridge is down")
LINK_REJECTED: Final = EventType(
    "VPN_BRIDGING_LINK_REJECTED", WARNING, BRIDGE, "The remote router did not let a bridge in"
)
NOT_CONNECTED: Final = EventType(
    "VPN_BRIDGING_CONNECT_FAILED", WARNING, BRIDGE, "A bridge reaches no remote router", label=""
)
NO_REMOTE: Final = EventType(
    "VPN_BRIDGING_NO_REMOTE", WARNING, BRIDGE, "A bridge has nothing to connect to", label=""
)
SUBSCRIPTION_REFUSED: Final = EventType(
    "VPN_BRIDGING_SUBSCRIPTION_REFUSED",
    WARNING,
    BRIDGE,
    "A remote subscription was not granted",
    label="",
)
NOT_BOUND: Final = EventType(
    "VPN_BRIDGING_QUEUE_NOT_BOUND",
    WARNING,
    BRIDGE,
    "The remote queue lets a bridge not consume",
    label="",
)
STOPPED: Final = EventType(
    "VPN_BRIDGING_STOPPED",
    WARNING,
    BRIDGE,
    "A bridge does nothing more until it is reconnected or changed, and why",
    label="",
)
STALLED: Final = EventType(
    "VPN_BRIDGING_STALLED",
    WARNING,
    BRIDGE,
    "Guaranteed messages of a bridge do not get on",
    label="",
)
STALLED_CLEAR: Final = EventType(
    "VPN_BRIDGING_STALLED_CLEAR",
    NOTICE,
    BRIDGE,
    "They do again",
    clears="VPN_BRIDGING_STALLED",
    label="",
)
BRIDGE_MESSAGE_REFUSED: Final = EventType(
    "VPN_BRIDGING_MESSAGE_REFUSED",
    WARNING,
    BRIDGE,
    "A bridge has given up a guaranteed message, and what it did with it",
    label="",
)
BRIDGE_MESSAGE_STAYS: Final = EventType(
    "VPN_BRIDGING_MESSAGE_NOT_DEAD_LETTERED",
    WARNING,
    BRIDGE,
    "No dead message queue of a bridge takes a message that it has given up; it stays, and is tried again",
    label="",
)
BRIDGE_PAUSED: Final = EventType(
    "VPN_BRIDGING_PAUSED", NOTICE, BRIDGE, "An operator has paused a bridge", label=""
)
BRIDGE_RESUMED: Final = EventType(
    "VPN_BRIDGING_RESUMED", NOTICE, BRIDGE, "It goes on", clears="VPN_BRIDGING_PAUSED", label=""
)
BRIDGE_TTL: Final = EventType(
    "VPN_BRIDGING_TTL_EXCEEDED",
    WARNING,
    BRIDGE,
    "A bridge discarded messages that had crossed as many bridges as `max_ttl` allows",
    one_shot=True,
)

# -- connectors --------------------------------------------------------------------------------------

CONNECTOR_UP: Final = EventType(
    "VPN_CONNECTOR_UP", NOTICE, BRIDGE, "A provider has let a connector in"
)
CONNECTOR_DOWN: Final = EventType(
    "VPN_CONNECTOR_DOWN",
    WARNING,
    BRIDGE,
    "A connector reaches no provider, or has lost it, and why",
)
CONNECTOR_LINK_REFUSED: Final = EventType(
    "VPN_CONNECTOR_LINK_REFUSED",
    WARNING,
    BRIDGE,
    "A link of a connector carries nothing, or less than it should",
)
CONNECTOR_LINK_HELD: Final = EventType(
    "VPN_CONNECTOR_LINK_HELD",
    WARNING,
    BRIDGE,
    "The message VPN refuses a message of a link, and what comes behind it waits",
)
CONNECTOR_LINK_RELEASED: Final = EventType(
    "VPN_CONNECTOR_LINK_RELEASED",
    NOTICE,
    BRIDGE,
    "Nothing of a link waits any more for the message VPN to take it",
)
CONNECTOR_PAUSED: Final = EventType(
    "VPN_CONNECTOR_PAUSED", NOTICE, BRIDGE, "An operator has paused a connector, or a link of one"
)
CONNECTOR_RESUMED: Final = EventType(
    "VPN_CONNECTOR_RESUMED", NOTICE, BRIDGE, "It goes on", clears="VPN_CONNECTOR_PAUSED"
)
CONNECTOR_MESSAGE_REFUSED: Final = EventType(
    "VPN_CONNECTOR_MESSAGE_REFUSED",
    WARNING,
    BRIDGE,
    "A provider has refused a message too often, and what the link did with it",
)
CONNECTOR_MESSAGE_STAYS: Final = EventType(
    "VPN_CONNECTOR_MESSAGE_NOT_DEAD_LETTERED",
    WARNING,
    BRIDGE,
    "No dead message queue of a link takes a message that it has given up; it stays, and is tried again",
)

# -- clients -----------------------------------------------------------------------------------------

CONNECT: Final = EventType("CLIENT_CLIENT_CONNECT", INFO, CLIENT, "A client logged in")
DISCONNECT: Final = EventType(
    "CLIENT_CLIENT_DISCONNECT",
    INFO,
    CLIENT,
    "Its connection ended, and why",
    clears="CLIENT_CLIENT_CONNECT",
)
CONNECT_FAIL: Final = EventType(
    "SYSTEM_CLIENT_CONNECT_FAIL", NOTICE, CLIENT, "A login was refused, and why"
)
PERMISSIONS: Final = EventType(
    "CLIENT_CLIENT_PERMISSIONS_CHANGE",
    NOTICE,
    CLIENT,
    "What a client, or the session that it left, may do was taken away or given back",
)
SESSION_END: Final = EventType(
    "CLIENT_CLIENT_SESSION_END",
    NOTICE,
    CLIENT,
    "A session ended with its client username, and what waited in it is gone, or handed on to others that share it",
)
OPEN_FLOW: Final = EventType(
    "CLIENT_CLIENT_OPEN_FLOW", INFO, CLIENT, "A client published its first guaranteed message"
)
CLOSE_FLOW: Final = EventType(
    "CLIENT_CLIENT_CLOSE_FLOW",
    INFO,
    CLIENT,
    "It publishes no more",
    clears="CLIENT_CLIENT_OPEN_FLOW",
)
BIND: Final = EventType(
    "CLIENT_CLIENT_BIND_SUCCESS", INFO, CLIENT, "A client consumes from an endpoint"
)
UNBIND: Final = EventType(
    "CLIENT_CLIENT_UNBIND",
    INFO,
    CLIENT,
    "It does no more",
    clears="CLIENT_CLIENT_BIND_SUCCESS",
)
BIND_FAILED: Final = EventType(
    "CLIENT_CLIENT_BIND_FAILED",
    NOTICE,
    CLIENT,
    "A client, or the bridge of a peer, may not consume from an endpoint, or there is none of that name",
    one_shot=True,
)
LARGE_MESSAGE: Final = EventType(
    "CLIENT_CLIENT_LARGE_MESSAGE",
    INFO,
    CLIENT,
    "A client published a message above `event.large_msg_threshold`",
    one_shot=True,
)
TOO_BIG: Final = EventType(
    "CLIENT_CLIENT_MESSAGE_TOO_BIG",
    NOTICE,
    CLIENT,
    "A client published a message above `max_msg_size`, which was refused",
    one_shot=True,
)
PARSE_ERROR: Final = EventType(
    "CLIENT_CLIENT_PARSE_ERROR",
    NOTICE,
    CLIENT,
    "A client broke its protocol and was disconnected",
    one_shot=True,
)
PUBLISH_DENIED: Final = EventType(
    "SYSTEM_CLIENT_ACL_PUBLISH_DENIAL",
    NOTICE,
    CLIENT,
    "An ACL profile kept a client from publishing",
    one_shot=True,
)
QUEUE_MEANT: Final = EventType(
    "CLIENT_CLIENT_QUEUE_NOT_NAMED",
    NOTICE,
    CLIENT,
    "An AMQP client sends to a topic that nobody subscribes to, and there is a queue of that name",
    one_shot=True,
)
SUBSCRIBE_DENIED: Final = EventType(
    "SYSTEM_CLIENT_ACL_SUBSCRIBE_DENIAL",
    NOTICE,
    CLIENT,
    "An ACL profile kept a client from subscribing",
    one_shot=True,
)

TABLE: Final[dict[str, EventType]] = {
    each.name: each for each in list(globals().values()) if isinstance(each, EventType)
}
"""All of the above by name."""

LABELLED: Final[dict[str, EventType]] = {each.label: each for each in TABLE.values() if each.label}
"""Those whose readable lines begin with something else than the name, by that."""


def named(name: str) -> EventType:
    """The kind of this name or label; NOTE, under that label, for what is none."""
    known = TABLE.get(name) or LABELLED.get(name)
    if known is not None:
        return known
    return NOTE if not name else EventType(NOTE.name, NOTE.level, NOTE.area, NOTE.tells, label=name)
