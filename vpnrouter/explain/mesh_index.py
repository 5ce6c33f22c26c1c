"""Finds the objects of a mesh in memory by name, and the lines of configuration that decide something."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, final

from vpnrouter.config.configured_bridge import mapping_of
from vpnrouter.core import discard_reasons
from vpnrouter.core.access import TopicRule
from vpnrouter.core.credentials import DEFAULT
from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.dead_letters import CONSUMER
from vpnrouter.core.guaranteed.endpoint import endpoints_of
from vpnrouter.core.guaranteed.failure_policy import TOO_LATE_TO_CROSS
from vpnrouter.core.guaranteed.spool import PROMOTION_CONGESTION
from vpnrouter.core.message import Message
from vpnrouter.core.mqtt.session import ENDPOINT_PREFIX
from vpnrouter.errors import TopicError
from vpnrouter.explain.request import Rule
from vpnrouter.topics.algebra import matches
from vpnrouter.topics.grammar import MQTT, SMF
from vpnrouter.wire.mqtt.properties import with_user_properties

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from vpnrouter.bridges.link import Link
    from vpnrouter.config.problem import Path
    from vpnrouter.config.router import Loaded
    from vpnrouter.connectors.outward import OutwardLink
    from vpnrouter.core.access import BoundRule
    from vpnrouter.core.credentials import ClientUsername
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.route import Route
    from vpnrouter.core.subscriber import Subscriber, Subscription
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.explain.bridge import MemoryBridge
    from vpnrouter.explain.connector import MemoryConnector
    from vpnrouter.explain.mesh import MemoryMesh
    from vpnrouter.explain.request import Event
    from vpnrouter.explain.visits import Visit
    from vpnrouter.settings.acl_profile import PublishTopic, SubscribeTopic
    from vpnrouter.topics.grammar import Filter


def rule(loaded: Loaded | None, path: Path, text: str) -> Rule:
    """Return the rule `text` at `path` of a configuration; of a default, the place of the object it is of."""
    if loaded is None:
        return Rule(text)
    positions = loaded.positions
    configured = positions.has(path)
    at = positions.key_at(path)
    return Rule(text, at.file, at.line, at.column, configured)


def shown(loaded: Loaded, path: Path) -> str:
    """Return `key: value` of an attribute as it is in force."""
    value: Any = loaded.config
    for step in path:
        if isinstance(value, dict) or isinstance(step, int):
            value = value[step]
        else:
            value = getattr(value, step)
    if isinstance(value, bool):
        value = "true" if value else "false"
    return f"{path[-1]}: {value}"


def attribute(loaded: Loaded, path: Path) -> Rule:
    """Return the rule that an attribute is, as `key: value`."""
    return rule(loaded, path, shown(loaded, path))


WORDS: Final[dict[str, str]] = {
    discard_reasons.NO_SUBSCRIPTION_MATCH: "nobody subscribes to it",
    refusals.NO_SUBSCRIPTION_MATCH: "nobody subscribes to it",
    discard_reasons.TOPIC_PARSE_ERROR: "its topic is not allowed there",
    discard_reasons.MSG_TOO_BIG: "it is too big",
    discard_reasons.NOT_TRANSFORMED: "a step of its transform cannot change it",
    discard_reasons.TTL_EXPIRED: TOO_LATE_TO_CROSS,
    discard_reasons.TTL_EXCEEDED: "it has crossed too many bridges",
    discard_reasons.PUBLISH_TOPIC_ACL: "the publisher may not publish to this topic",
    refusals.ACL_DENIED: "the publisher may not publish to this topic",
    refusals.PERMISSION_DENIED: "the publisher may not do that",
    discard_reasons.SUBSCRIBE_TOPIC_ACL: "its receiver may not have this topic any more",
    discard_reasons.TRANSMIT_CONGESTION: "the receiver was too slow and its outbox full",
    discard_reasons.CLIENT_NOT_CONNECTED: "who subscribes is not connected",
    discard_reasons.PAUSED: "its link is paused, and keeps nothing that comes at most once",
    discard_reasons.NO_LOCAL_DELIVERY: "it came over this link",
    discard_reasons.NOT_SUBSCRIBED: "the bridge did not ask for its topic",
    discard_reasons.LOOP_DETECTED: "it has been there",
    discard_reasons.DUPLICATE: "another copy came before, over another way",
    discard_reasons.RETURNED: "the link was lost before it was taken; it comes again",
    discard_reasons.REFUSED: "it was refused and is given up, for the dead message queue of the remote",
    discard_reasons.FAULT: "a fault of the router, which was contained, cut it off",
    discard_reasons.UNACCOUNTED: "the router was killed, and nobody knows where it went",
    CONSUMER: "its consumer does not take it, now or ever",
    PROMOTION_CONGESTION: "the spool has no room for it",
    "max-msg-spool-usage-exceeded": "no room: the megabytes that may wait are used up",
    refusals.SPOOL_OVER_QUOTA: "no room: the megabytes that may wait are used up",
    "max-msg-usage-exceeded": "no room: as many messages wait as may",
    refusals.MAX_MESSAGE_USAGE: "no room: as many messages wait as may",
    "low-priority-msg-congestion": "its priority is low and many messages wait",
    refusals.LOW_PRIORITY: "its priority is low and many messages wait",
    "destination-group-error": "the endpoint takes nothing: ingress is off",
    refusals.QUEUE_SHUTDOWN: "the queue takes nothing: ingress is off",
    refusals.TOPIC_ENDPOINT_SHUTDOWN: "the topic endpoint takes nothing: ingress is off",
    refusals.ENDPOINT_SHUTDOWN: "the endpoint takes nothing: ingress is off",
    "queue-not-found": "the topic names a queue that is not there",
    refusals.QUEUE_NOT_FOUND: "the topic names a queue that is not there",
    "max-msg-size-exceeded": "it is too big",
    refusals.TOO_LARGE: "it is too big",
    "spool-to-disk-fail": "the spool cannot be written",
    refusals.SERVICE_UNAVAILABLE: "the spool cannot be written",
    refusals.TOO_MANY_INGRESS_FLOWS: "too many connections publish guaranteed messages there",
}
"""Reason of a trace row or of an answer → what it means for the message."""


def in_words(reason: str) -> str:
    """Return what a reason means, with the router's own name of it."""
    words = WORDS.get(reason)
    return f"{words} ({reason})" if words else reason


LEFT_OUT: Final = "its ACL profile leaves this topic out"
"""The reason why a subscriber whose filter matches is not sent a message."""

Group = Literal["publish_topic", "subscribe_topic"]


def username_rule(loaded: Loaded, vpn: str, username: ClientUsername) -> Rule:
    """Return the client username that a client logs in with, or `default`, which holds for names not listed."""
    listed = loaded.positions.has(("msg_vpns", vpn, "client_usernames", username.name))
    name = username.name if listed else DEFAULT
    text = f"client username {username.name}"
    return rule(loaded, ("msg_vpns", vpn, "client_usernames", name), text)


def profile_rule(loaded: Loaded, vpn: str, username: ClientUsername, key: str) -> Rule:
    """Return one attribute of the client's profile."""
    return attribute(loaded, ("msg_vpns", vpn, "client_profiles", username.client_profile, key))


def publish_rule(
    loaded: Loaded, vpn: str, username: ClientUsername, client: str, topic: str
) -> Rule:
    """Return the line of the ACL profile that decides about publishing to `topic`."""
    return _topic_rule(loaded, vpn, username, client, "publish_topic", topic)


def delivery_rule(
    loaded: Loaded, vpn: str, username: ClientUsername, client: str, topic: str
) -> Rule:
    """Return the line of the ACL profile that decides whether a subscriber is sent `topic`."""
    return _topic_rule(loaded, vpn, username, client, "subscribe_topic", topic)


def subscribe_rule(
    loaded: Loaded, vpn: str, username: ClientUsername, client: str, wanted: Filter
) -> Rule:
    """Return the line of the ACL profile that decides about subscribing to `wanted`."""
    rules = loaded.config.msg_vpns[vpn].acl_profiles[username.acl_profile].subscribe_topic
    allows = rules.default_action == "allow"

    def decides(bound: BoundRule) -> bool:
        return bound.allows_filter(wanted) is not allows

    return _deciding(loaded, vpn, username, client, "subscribe_topic", decides)


def _topic_rule(
    loaded: Loaded, vpn: str, username: ClientUsername, client: str, group: Group, topic: str
) -> Rule:
    rules = getattr(loaded.config.msg_vpns[vpn].acl_profiles[username.acl_profile], group)
    allows = rules.default_action == "allow"

    def decides(bound: BoundRule) -> bool:
        return bound.allows_topic(topic) is not allows

    return _deciding(loaded, vpn, username, client, group, decides)


def _deciding(
    loaded: Loaded,
    vpn: str,
    username: ClientUsername,
    client: str,
    group: Group,
    decides: Callable[[BoundRule], bool],
) -> Rule:
    """Return the first exception that decides alone, else the default action.

    Each exception is asked as a rule of its own by the same code as the whole profile.
    """
    profile = username.acl_profile
    acl = loaded.config.msg_vpns[vpn].acl_profiles[profile]
    rules: PublishTopic | SubscribeTopic = getattr(acl, group)
    dialect = MQTT if rules.topic_syntax == "mqtt" else SMF
    path = ("msg_vpns", vpn, "acl_profiles", profile, group)
    allows = rules.default_action == "allow"
    for index, text in enumerate(rules.exceptions):
        if decides(TopicRule(allows, [(text, dialect)]).bind(username.name, client)):
            rule_text = f"exception {text} of {group} of ACL profile {profile}"
            return rule(loaded, (*path, "exceptions", index), rule_text)
    rule_text = f"default_action: {rules.default_action} of {group} of ACL profile {profile}"
    return rule(loaded, (*path, "default_action"), rule_text)


@final
class MeshIndex:
    """What is known of the mesh: all of it, or nothing where there is none.

    `payload` bytes and user properties `pairs` are those of the message; `all_misses` tells every negative
    answer.
    """

    def __init__(
        self,
        memory_mesh: MemoryMesh | None,
        payload: bytes = b"",
        pairs: Sequence[tuple[str, str]] = (),
        *,
        all_misses: bool = False,
    ) -> None:
        self.memory_mesh = memory_mesh
        self.all_misses = all_misses
        self._payload = payload
        self._block = with_user_properties(b"", list(pairs))
        self._out_of: dict[str, list[MemoryBridge]] = {}
        self._into: dict[tuple[str, str, str], MemoryBridge] = {}
        self._remotes_of: dict[MemoryBridge, list[str]] = {}
        self._connectors: dict[tuple[str, str], list[MemoryConnector]] = {}
        for connector in memory_mesh.connectors if memory_mesh is not None else ():
            at = (connector.node.name, connector.vpn_name)
            self._connectors.setdefault(at, []).append(connector)
        for bridge in memory_mesh.bridges if memory_mesh is not None else ():
            self._into[bridge.node.name, bridge.vpn_name, bridge.name] = bridge
            self._remotes_of[bridge] = list(dict.fromkeys(self._remotes(bridge)))
            for place in self._remotes_of[bridge]:
                self._out_of.setdefault(place, []).append(bridge)

    def _remotes(self, bridge: MemoryBridge) -> list[str]:
        """Return the message VPNs that a bridge may take from, as far as they are known."""
        memory_mesh = self.memory_mesh
        if memory_mesh is None:
            return []
        remotes = []
        for index, remote in enumerate(bridge.configured.bridge.remote_msg_vpns):
            peer = memory_mesh.peer_of(bridge, index)
            if peer:
                remotes.append(f"{peer}/{remote.name}")
        return remotes

    # -- who is meant ----------------------------------------------------------------------------

    def loaded(self, router: str) -> Loaded | None:
        """Return the configuration of a router."""
        node = self.memory_mesh.nodes.get(router) if self.memory_mesh is not None else None
        return None if node is None else node.loaded

    def vpn(self, visit: Visit) -> MessageVpn | None:
        """Return the message VPN of a visit."""
        node = self.memory_mesh.nodes.get(visit.router) if self.memory_mesh is not None else None
        return None if node is None else node.router.vpns.get(visit.msg_vpn)

    def bridge(self, router: str, msg_vpn: str, name: str) -> MemoryBridge | None:
        """Return the bridge `name` into a message VPN."""
        return self._into.get((router, msg_vpn, name))

    def bridges_out_of(self, visit: Visit) -> list[MemoryBridge]:
        """Return all bridges that have the message VPN of a visit among their remotes."""
        return self._out_of.get(visit.place, [])

    def bridges_into(self, visit: Visit) -> list[MemoryBridge]:
        """Return all bridges that bring messages into the message VPN of a visit."""
        memory_mesh = self.memory_mesh
        return (
            []
            if memory_mesh is None
            else [bridge for bridge in memory_mesh.bridges if bridge.place == visit.place]
        )

    def bridges_back(self, bridge: MemoryBridge) -> list[MemoryBridge]:
        """Return the bridges of the other side that take from the message VPN of `bridge` what it sends back."""
        remotes = self._remotes_of.get(bridge, [])
        return [one for one in self._out_of.get(bridge.place, []) if one.place in remotes]

    def serving(self, bridge: MemoryBridge) -> Link | None:
        """Return the link over which the other side serves a bridge that is up."""
        half = bridge.half
        remote = bridge.remote
        if self.memory_mesh is None or half is None or remote is None or not bridge.up:
            return None
        node = self.memory_mesh.nodes.get(half.link.peer_router)
        if node is None:
            return None
        return node.book.serving_link(remote.name, bridge.node.name, bridge.vpn_name, bridge.name)

    def connectors_of(self, visit: Visit) -> list[MemoryConnector]:
        """Return the connectors of the message VPN of a visit."""
        return self._connectors.get((visit.router, visit.msg_vpn), [])

    def link_of(self, visit: Visit, event: Event) -> tuple[MemoryConnector, OutwardLink] | None:
        """Return the connector's link that the row of a delivery names; None for another receiver."""
        for connector in self.connectors_of(visit):
            for link in connector.links.outward:
                if event.client == link.client_name:
                    return connector, link
        return None

    # -- the message -----------------------------------------------------------------------------

    def topic(self, visit: Visit) -> str:
        """Return the topic that the message has in a message VPN: that of the link, renamed on the way in."""
        entered = visit.entered
        if entered is None:
            return visit.events[0].topic if visit.events else ""
        bridge = self.bridge(visit.router, visit.msg_vpn, entered.bridge)
        mapping = None if bridge is None else mapping_of(bridge.configured.bridge, "in")
        if mapping is None:
            return entered.topic
        try:
            return mapping.apply(entered.topic)
        except TopicError:
            return entered.topic

    def message(self, visit: Visit) -> Message:
        """Return the message as it is in a message VPN."""
        message = Message(self.topic(visit).encode(), self._payload, self._block)
        message.path = list(visit.path)
        message.hops = len(visit.path)
        message.persistent = not visit.direct
        return message

    def route(self, visit: Visit) -> Route | None:
        """Return where the message VPN sends messages of this topic; None where it takes none of the kind."""
        vpn = self.vpn(visit)
        if vpn is None:
            return None
        try:
            return vpn.route(self.topic(visit).encode())
        except TopicError:
            return None

    @staticmethod
    def matching(topic: str, subscriber: Subscriber) -> list[Subscription]:
        """Return the subscriptions of a subscriber, those of share groups too, that match a topic."""
        return [
            subscription
            for subscription in subscriber.subscriptions.values()
            if matches(subscription.filter, topic)
        ]

    def endpoint(self, visit: Visit, name: str) -> Endpoint | None:
        """Return the endpoint of this name in the message VPN of a visit."""
        vpn = self.vpn(visit)
        if vpn is None:
            return None
        endpoints = [one for (_, known), one in endpoints_of(vpn).items() if known == name]
        return endpoints[0] if endpoints else None


def client_of(endpoint: str) -> str:
    """Return the client id behind the name of an MQTT session's endpoint, "" for other endpoints."""
    return endpoint.removeprefix(ENDPOINT_PREFIX) if endpoint.startswith(ENDPOINT_PREFIX) else ""
