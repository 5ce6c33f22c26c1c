"""Defines a message VPN: its own topic space, clients, subscriptions, retained messages, bounds and counters.

Totals are summed on request, so that counting costs nothing per message.

Nothing here refers to another message VPN, and no method takes one: the only way across is a bridge, which is a client
in each of the two (promise ISOLATE).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, cast, final

from vpnrouter import limits
from vpnrouter.core import tracing
from vpnrouter.core.deliver import (
    ABSENT,
    NOBODY,
    OFFERED,
    OFFERS_SHIFT,
    copies_to_links,
    deliver_special,
    deliver_to_one,
    to_links,
)
from vpnrouter.core.discard_reasons import (
    CLIENT_NOT_CONNECTED,
    NO_SUBSCRIPTION_MATCH,
    PUBLISH_TOPIC_ACL,
    TRANSMIT_CONGESTION,
    DiscardCounts,
)
from vpnrouter.core.fault_barrier import TASK
from vpnrouter.core.forward import RouteTable
from vpnrouter.core.guaranteed.endpoint_settings import EndpointSettings, default_session_settings
from vpnrouter.core.guaranteed.refusals import QUOTA_EXCEEDED, TOO_MANY_ENDPOINTS
from vpnrouter.core.known_deliveries import KnownLinks
from vpnrouter.core.memory_account import MemoryAccount
from vpnrouter.core.retained import Retained, retain
from vpnrouter.core.route import Route, ShareGroup, build, point_to_point
from vpnrouter.core.timers import Job
from vpnrouter.core.unsettled_deliveries import LinksAway
from vpnrouter.core.username_quota import UsernameQuota
from vpnrouter.errors import Refused
from vpnrouter.events import table
from vpnrouter.settings.message_vpn import MsgVpn
from vpnrouter.settings.schema import held_defaults
from vpnrouter.topics.cache import RouteCache
from vpnrouter.topics.grammar import QUEUE_PREFIX, name_meant, parse_topic
from vpnrouter.topics.trie import SubscriptionTrie
from vpnrouter.trace.events import DIRECT, DISCARD, SUBSCRIBE, UNSUBSCRIBE

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.core.access import AclProfile, BoundRule, ProviderClient
    from vpnrouter.core.context import RouterContext
    from vpnrouter.core.credentials import Credentials
    from vpnrouter.core.duplicates import SeenIds
    from vpnrouter.core.message import Message
    from vpnrouter.core.outbox import Outbox
    from vpnrouter.core.profile import ClientProfile
    from vpnrouter.core.publisher import Publisher
    from vpnrouter.core.subscriber import EndpointSubscriber, Subscriber, Subscription
    from vpnrouter.events.table import EventType
    from vpnrouter.topics.grammar import Filter


_BOUNDS: Final = held_defaults(MsgVpn)


@final
class VpnLimits:
    """Bounds of one message VPN, as `settings/message_vpn.py` declares them; 0 is no bound of its own.

    `max_retained_bytes` -1 is no bound. A message above `large_msg_size` bytes is accepted and reported.
    """

    __slots__ = tuple(_BOUNDS)

    large_msg_size: int
    max_connection_count: int
    max_egress_flow_count: int
    max_endpoint_count: int
    max_ingress_flow_count: int
    max_memory_bytes: int
    max_mqtt_session_count: int
    max_msg_size: int
    max_msg_spool_usage: int
    max_retained_bytes: int
    max_retained_msg_count: int
    max_subscription_count: int
    max_topic_bytes: int
    max_topic_levels: int

    def __init__(self, **given: int) -> None:
        """The defaults but for what is `given`, by the names of bounds."""
        for name, value in {**_BOUNDS, **given}.items():
            setattr(self, name, value)


class VpnTotals(NamedTuple):
    """Counts since the router started; names follow SEMP's monitor attributes."""

    rx_msg_count: int
    rx_byte_count: int
    tx_msg_count: int
    tx_byte_count: int
    discards: dict[str, int]


def _counted(publisher: Publisher) -> list[tuple[str, int]]:
    pairs = [
        (NO_SUBSCRIPTION_MATCH, publisher.unmatched),
        (PUBLISH_TOPIC_ACL, publisher.acl_denied),
        (TRANSMIT_CONGESTION, publisher.subscriber.outbox.discarded),
    ]
    return [(reason, count) for reason, count in pairs if count]


@final
class TotalsSum:
    """Sums up the counters of a message VPN in portions, between which its clients go on.

    Each count lies between its values at the beginning and the end of the sum. So a later sum has no lower counts, but
    for messages that were lost with a connection after they had been counted as sent.
    """

    __slots__ = (
        "_at",
        "_congested",
        "_denied",
        "_outboxes",
        "_publishers",
        "_unmatched",
        "_vpn_sums",
    )

    def __init__(self, vpn: MessageVpn) -> None:
        # What ends from here on is in the list, with all that it counts.
        self._publishers = list(vpn.publishers.values())
        # A session that another connection takes over has another outbox then.
        self._outboxes = [publisher.subscriber.outbox for publisher in self._publishers]
        self._at = 0
        self._unmatched = 0
        self._denied = 0
        self._congested = 0
        self._vpn_sums = VpnTotals(
            vpn.rx_messages,
            vpn.rx_bytes,
            vpn.tx_messages,
            vpn.tx_bytes,
            dict(vpn.discards.counts),
        )

    def step(self, most: int) -> bool:
        """Add up to `most` connections more; True when all are in."""
        rx_messages, rx_bytes, tx_messages, tx_bytes, counts = self._vpn_sums
        publishers = self._publishers
        end = min(self._at + most, len(publishers))
        for index in range(self._at, end):
            publisher = publishers[index]
            outbox = self._outboxes[index]
            rx_messages += publisher.messages
            rx_bytes += publisher.bytes_
            tx_messages += outbox.messages
            tx_bytes += outbox.bytes_
            self._unmatched += publisher.unmatched
            self._denied += publisher.acl_denied
            self._congested += outbox.discarded
        self._at = end
        self._vpn_sums = VpnTotals(rx_messages, rx_bytes, tx_messages, tx_bytes, counts)
        return end == len(publishers)

    def totals(self) -> VpnTotals:
        """The sums of all that was counted until now."""
        sums = self._vpn_sums
        counts = dict(sums.discards)
        for reason, count in (
            (NO_SUBSCRIPTION_MATCH, self._unmatched),
            (PUBLISH_TOPIC_ACL, self._denied),
            (TRANSMIT_CONGESTION, self._congested),
        ):
            if count:
                counts[reason] = counts.get(reason, 0) + count
        return VpnTotals(
            sums.rx_msg_count, sums.rx_byte_count, sums.tx_msg_count, sums.tx_byte_count, counts
        )


ROUTE_WORK: Final = 15
"""What a new route costs, without its receivers, in parts of a turn (RouterContext.work)."""

SUBSCRIPTION_WORK: Final = 5
"""What a new or removed subscription costs, without the routes that it changes."""

LEVEL_COST: Final = 400
"""Bytes that one level of a filter takes in the trie, if no other filter has it."""

TOO_LONG: Final = "400 Max Num Subscriptions Exceeded: their topic filters are too long"

AT_ONCE: Final = 64
"""So many subscriptions of a subscriber that is gone are removed at once; more of them in slices."""


@final
class MessageVpn:
    """One message VPN of a router. `context` holds what all VPNs of the router share (ids, traces, time)."""

    __slots__ = (
        "acl_profiles",
        "cache",
        "clients",
        "connections_of",
        "containers",
        "context",
        "credentials",
        "discards",
        "due_wills",
        "egress_flows",
        "enabled",
        "endpoints",
        "endpoints_of",
        "groups",
        "ingress_flows",
        "known_links",
        "lasting",
        "leaving",
        "limits",
        "links_away",
        "memory",
        "nack_disconnects",
        "name",
        "on_subscription",
        "profiles",
        "provider_clients",
        "publishers",
        "queue_terms",
        "rejected",
        "retained",
        "route_table",
        "rx_bytes",
        "rx_messages",
        "seen",
        "session_terms",
        "spooled_bytes",
        "subscription_count",
        "trie",
        "tx_bytes",
        "tx_messages",
        "vpn_id",
        "wills",
    )

    def __init__(
        self,
        name: str,
        context: RouterContext,
        credentials: Credentials,
        profiles: dict[str, ClientProfile],
        acl_profiles: dict[str, AclProfile],
        bounds: VpnLimits | None = None,
    ) -> None:
        self.name = name
        self.context = context
        self.vpn_id = f"{context.router_name}/{name}"
        self.credentials = credentials
        self.profiles = profiles
        self.acl_profiles = acl_profiles
        self.limits = bounds or VpnLimits()
        self.enabled = True
        self.trie = SubscriptionTrie()
        self.cache = RouteCache(limits.ROUTE_CACHE_ENTRIES)
        self.route_table = RouteTable()
        self.groups: dict[Filter, ShareGroup] = {}
        self.clients: dict[str, Subscriber] = {}
        self.publishers: dict[str, Publisher] = {}
        self.connections_of: dict[str, int] = {}
        # Clients of AMQP among them, by client username and container id.
        self.containers: dict[tuple[str, str], dict[Subscriber, None]] = {}
        # Connections that have ended and still let go of links, by the same.
        self.leaving: dict[tuple[str, str], int] = {}
        self.retained = Retained(
            self.limits.max_retained_msg_count,
            self.limits.max_retained_bytes,
            context.retained if self.limits.max_msg_spool_usage else None,
        )
        # Queues and topic endpoints by kind and name; what they hold together, and flows bound to them.
        self.endpoints: dict[tuple[int, str], EndpointSubscriber] = {}
        # Those that clients made, by client username.
        self.endpoints_of: dict[str, int] = {}
        # Clients by name that belong to the provider of a connector.
        self.provider_clients: dict[str, ProviderClient] = {}
        self.session_terms = default_session_settings()
        # Of what AMQP clients make.
        self.queue_terms = EndpointSettings()
        self.links_away = LinksAway()
        self.known_links = KnownLinks(name)
        # What its clients and links hold.
        self.memory = MemoryAccount(name, self.limits.max_memory_bytes, context.memory)
        # Sessions that outlive their connection, and bytes of wills, by client username.
        self.lasting = UsernameQuota(self.limits.max_mqtt_session_count)
        self.wills = UsernameQuota(limits.WILL_BYTES, context.wills)
        # Those that wait until selectors are evaluated (mqtt/due_wills.py), once there were some.
        self.due_wills: Job | None = None
        self.spooled_bytes = 0
        self.egress_flows = 0
        # Connections that have published guaranteed messages.
        self.ingress_flows = 0
        self.rejected = 0
        # MQTT 3.1.1 publishers that were disconnected, for there is no other way to refuse a message.
        self.nack_disconnects = 0
        self.discards = DiscardCounts()
        self.subscription_count = 0
        # Whoever publishes the subscriptions that come and go (True: come) as events, None for nobody.
        self.on_subscription: Callable[[Subscription, bool], None] | None = None
        # Made by the first link that brings a message with an id.
        self.seen: SeenIds | None = None
        # Totals of connections that ended; the living ones are added when somebody asks.
        self.rx_messages = 0
        self.rx_bytes = 0
        self.tx_messages = 0
        self.tx_bytes = 0

    def take_bounds(self, bounds: VpnLimits) -> None:
        """Apply other bounds. Clients, sessions and subscriptions beyond one already stay."""
        before = self.limits
        self.limits = bounds
        self.retained.most = bounds.max_retained_msg_count
        self.retained.most_bytes = bounds.max_retained_bytes
        if bounds.max_msg_spool_usage:
            self.retained.keep_in(self.context.retained)
        else:
            self.retained.keep_nowhere()
        self.lasting.most = bounds.max_mqtt_session_count
        self.memory.most = bounds.max_memory_bytes
        if (
            bounds.max_topic_bytes < before.max_topic_bytes
            or bounds.max_topic_levels < before.max_topic_levels
        ):
            # A topic in the cache is not looked at again.
            self.forget_all_routes()

    def subscribe_rule(self, acl: AclProfile, username: str, client_name: str) -> BoundRule | None:
        """Return what a client may be sent by its ACL profile, without what a connector carries if it belongs to its
        provider; None is everything.
        """
        rule = acl.subscribe.bound(username, client_name)
        provided = self.provider_clients.get(client_name)
        return rule if provided is None else provided.rule_without(rule)

    def local_name(self, client_name: str) -> str:
        """The name by which no-local knows a client."""
        found = self.provider_clients.get(client_name)
        return client_name if found is None else found.local_name

    @property
    def spool_taken(self) -> int:
        """Bytes of its endpoints and of its retained messages in the spool."""
        retained = self.retained
        return self.spooled_bytes + (0 if retained.account is None else retained.bytes_)

    def report_once(self, kind: EventType, text: str) -> None:
        """Raise an event about a bound of the message VPN that is reached; not again until that has ended."""
        events = self.context.events
        if events is not None:
            events.raise_once(kind, self.name, "", f"VPN {self.name}: {text}")

    # -- routing ---------------------------------------------------------------------------------

    def resolve(self, topic: bytes) -> Route:
        """The route for a published topic, from the trie; cached for the next time.

        Raises TopicError when the topic breaks the grammar or this VPN's limits: a cached topic has
        been through here, so the batch path needs no check of its own.
        """
        text = parse_topic(topic, self.limits.max_topic_levels, self.limits.max_topic_bytes)
        if text.startswith(QUEUE_PREFIX):
            name = text[len(QUEUE_PREFIX) :]
            queue = self.queue(name)
            if queue is None and "%" in name:
                return self._escaped(topic, name)
            route = point_to_point(text, topic, queue)
        else:
            steps = self.trie.steps
            matched = self.trie.match(text)
            route = build(text, topic, matched, self.groups)
            self.context.work += (len(matched) + self.trie.steps - steps) >> 2
        # A KB of a topic is a microsecond to check.
        self.context.work += ROUTE_WORK + (len(topic) >> 8)
        evicted = self.cache.evicted
        try:
            self.cache.put(topic, text, route, route.size())
        except Exception:
            self._forget_all_routes()
            raise
        if self.cache.evicted != evicted:
            self.route_table.drop()
        return route

    def _escaped(self, topic: bytes, written: str) -> Route:
        """The route of a topic that writes the name of a queue with escapes.

        It is not cached, as queues of both names may come and go. Rights are those to the topic with the name itself.
        """
        name = name_meant(written)
        self.context.work += ROUTE_WORK + (len(topic) >> 8)
        # Only the router sends to a queue whose name begins so.
        queue = None if name.startswith("#") else self.queue(name)
        return point_to_point(QUEUE_PREFIX + name, topic, queue)

    def route(self, topic: bytes) -> Route:
        """The route for a published topic; see `resolve`."""
        found = self.cache.entries.get(topic)
        return self.resolve(topic) if found is None else cast(Route, found)

    def publish(self, message: Message) -> str:
        """Deliver one Direct message to all receivers, or to one for deliver-to-one.

        The caller has checked size and permission. Returns "" when it was offered to at least one receiver, which
        counts it if it has no room. Else returns the reason under which it was counted among `discards`:
        NO_SUBSCRIPTION_MATCH or CLIENT_NOT_CONNECTED. Raises TopicError for a bad topic.
        """
        route = self.route(message.topic)
        if message.retain:
            retain(self, message)
        if message.deliver_to_one:
            outcome = deliver_to_one(self, route, message)
            spool = self.context.spool
            if route.endpoints and spool is not None and spool.promote(self, route, message):
                outcome = OFFERED
        else:
            outcome = self._deliver(route, message)
        if outcome == OFFERED:
            return ""
        if outcome == ABSENT:
            return CLIENT_NOT_CONNECTED
        self.discard(message, NO_SUBSCRIPTION_MATCH)
        return NO_SUBSCRIPTION_MATCH

    def _deliver(self, route: Route, message: Message) -> int:
        traced = message.traced
        self.context.work += route.fan_out >> OFFERS_SHIFT
        for subscriber in route.receivers4:
            taken = subscriber.outbox.offer(message.frame4(), 1)
            if traced:
                self.trace_outcome(subscriber, message, taken)
        for subscriber in route.receivers5:
            taken = subscriber.outbox.offer(tracing.frame5(self, subscriber, message), 1)
            if traced:
                self.trace_outcome(subscriber, message, taken)
        outcome = NOBODY if route.plain else deliver_special(self, route, message, False)
        return OFFERED if route.receivers4 or route.receivers5 else outcome

    def announce(self, message: Message) -> bool:
        """Deliver a message of the router itself; False without a receiver."""
        route = self.announcement(message)
        return route is not None and self._deliver(route, message) == OFFERED

    def announcement(self, message: Message) -> Route | None:
        """The route of a message of the router itself, None without a receiver.

        Clients cannot publish to its topic, so its route is not cached. A filter with a wildcard in its first level
        does not match it, and no link carries it away.
        """
        text = message.topic.decode()
        first = text.partition("/")[0]
        wanted: list[object] = []
        for entry in self.trie.match(text):
            subscription = cast("Subscription", entry)
            if not subscription.subscriber.is_link and subscription.filter.levels[0] == first:
                wanted.append(entry)
        return build(text, message.topic, wanted, self.groups) if wanted else None

    def queue(self, name: str) -> EndpointSubscriber | None:
        """The queue of this name."""
        return self.endpoints.get((0, name))

    def forget_queue(self, name: str) -> None:
        """Drop the cached route that names a queue, which has come or gone. Its subscriptions drop theirs."""
        if self.cache.drop(QUEUE_PREFIX + name):
            self.route_table.drop()

    def forget_all_routes(self) -> None:
        """Drop all cached routes, after a change of the configuration or of clients' rights."""
        self.cache.clear()
        self.route_table.drop()

    # -- meshes ----------------------------------------------------------------------------------

    def relay(self, message: Message) -> bool:
        """Deliver to links only a message that has been here before over more links (duplicates.SHORTER).

        True when a link was offered it. Raises TopicError for a bad topic.
        """
        route = self.route(message.topic)
        if message.deliver_to_one:
            return copies_to_links(route, message)
        return to_links(route, message)

    # -- traces ----------------------------------------------------------------------------------

    def trace_outcome(self, subscriber: Subscriber, message: Message, taken: int) -> None:
        """Record that the traced `message` was queued for `subscriber` (`taken` 1) or had no room (0)."""
        tracing.outcome(self, subscriber, message, taken)

    def discard(self, message: Message, reason: str, receiver: Subscriber | None = None) -> None:
        """Count and record a message that was discarded for `reason`; see `tracing`."""
        self.discards.add(reason)
        tracing.lost(self, DISCARD, message, DIRECT, "", reason, receiver)

    # -- clients ---------------------------------------------------------------------------------

    def occupy(self, client_username: str) -> None:
        """Count one more connection of `client_username`."""
        self.connections_of[client_username] = self.connections_of.get(client_username, 0) + 1

    def check_endpoint_count(self, creator: str, most_of_creator: int) -> None:
        """Check that the client username `creator` may make one more endpoint.

        Raises Refused at the bound of the message VPN, or at that of its profile; 0 is none.
        """
        most = self.limits.max_endpoint_count
        if (most and len(self.endpoints) >= most) or (
            most_of_creator and self.endpoints_of.get(creator, 0) >= most_of_creator
        ):
            raise Refused(TOO_MANY_ENDPOINTS, QUOTA_EXCEEDED)

    def count_endpoint(self, creator: str, more: int) -> None:
        """Count endpoints that the client username `creator` made; nothing is counted for ""."""
        count = self.endpoints_of.get(creator, 0) + more
        if creator and count > 0:
            self.endpoints_of[creator] = count
        else:
            self.endpoints_of.pop(creator, None)

    def count_lost(self, messages: int, outbox: Outbox) -> None:
        """Count messages as lost with the connection of `outbox`, which had been counted as sent."""
        self.tx_messages -= messages
        self.discards.add(CLIENT_NOT_CONNECTED, messages)
        if outbox.losses is not None:
            outbox.losses.dropped(messages)

    def release(self, client_username: str) -> None:
        """Count one connection of `client_username` less."""
        left = self.connections_of.get(client_username, 0) - 1
        if left > 0:
            self.connections_of[client_username] = left
        else:
            self.connections_of.pop(client_username, None)

    def absorb(self, publisher: Publisher) -> None:
        """Keep the counters of a connection that ends."""
        outbox = publisher.subscriber.outbox
        self.rx_messages += publisher.messages
        self.rx_bytes += publisher.bytes_
        self.tx_messages += outbox.messages
        self.tx_bytes += outbox.bytes_
        for reason, count in _counted(publisher):
            self.discards.add(reason, count)

    def totals(self) -> VpnTotals:
        """Everything counted in the message VPN: connections that ended and those that live."""
        sums = TotalsSum(self)
        sums.step(len(self.publishers))
        return sums.totals()

    # -- subscriptions ---------------------------------------------------------------------------

    def subscribe(self, subscription: Subscription, bounded: bool = True) -> bool:
        """Add or replace a subscription of its subscriber; True when it is new.

        Raises Refused "400 Max Num Subscriptions Exceeded" at the message VPN's bound. The bound is for subscriptions
        of clients: one of the configuration is always taken, and so is one that was granted before (`bounded` False).
        """
        subscriber = subscription.subscriber
        key = subscription.key
        old = subscriber.subscriptions.get(key)
        if old is not None:
            self._remove(old)
        elif (
            bounded
            and not subscription.configured
            and self.limits.max_subscription_count
            and self.subscription_count >= self.limits.max_subscription_count
        ):
            most = self.limits.max_subscription_count
            text = f"max_subscription_count {most:,} reached; subscriptions are refused"
            self.report_once(table.SUBSCRIPTIONS_EXCEEDED, text)
            raise Refused("400 Max Num Subscriptions Exceeded", 0x97)
        self._count_filter(subscription, bounded)
        # The subscriber has it first: if the code below raises, it goes when the subscriber ends.
        subscriber.subscriptions[key] = subscription
        if not subscription.configured:
            self.subscription_count += 1
        self._enter(subscription)
        if old is None:
            tracing.subscribed(self, SUBSCRIBE, subscription)
            if self.on_subscription is not None:
                self.on_subscription(subscription, True)
        return old is None

    def unsubscribe(self, subscriber: Subscriber, key: str) -> bool:
        """Remove the subscription `key` (the filter as written); False when there is none."""
        subscription = subscriber.subscriptions.get(key)
        if subscription is None:
            return False
        # The subscriber has it last: if the code below raises, it is removed again when the subscriber ends.
        self._remove(subscription)
        subscriber.subscriptions.pop(key, None)
        tracing.subscribed(self, UNSUBSCRIBE, subscription)
        if self.on_subscription is not None:
            self.on_subscription(subscription, False)
        return True

    def suspend(self, subscription: Subscription, suspended: bool) -> None:
        """Take a subscription out of all routes, or bring it back; its subscriber keeps it."""
        if suspended and not subscription.suspended:
            self._leave(subscription)
        elif subscription.suspended and not suspended:
            self._enter(subscription)
        subscription.suspended = suspended

    def _enter(self, subscription: Subscription) -> None:
        filter_ = subscription.filter
        if filter_.share:
            group = self.groups.get(filter_)
            if group is None:
                group = ShareGroup(filter_.share)
                self.groups[filter_] = group
            group.add(subscription)
        self.trie.insert(filter_, subscription)
        self._invalidate(filter_)

    def _count_filter(self, subscription: Subscription, bounded: bool) -> None:
        """Count the memory of a long filter for its subscriber. Raises Refused where that is too much."""
        filter_ = subscription.filter
        size = 3 * len(filter_.original) + LEVEL_COST * len(filter_.levels)
        selector = subscription.selector
        if selector is not None:
            size += selector.memory
        size -= limits.FILTER_SPARE_BYTES
        if size <= 0 or subscription.configured:
            return
        account = subscription.subscriber.memory()
        if account is None:
            return
        if account.keep(size):
            subscription.account = account
            subscription.counted = size
        elif bounded:
            raise Refused(TOO_LONG, 0x97)

    def _remove(self, subscription: Subscription) -> None:
        account = subscription.account
        subscription.account = None
        if account is not None:
            account.forget(subscription.counted)
        if not subscription.suspended:
            self._leave(subscription)
        if not subscription.configured:
            self.subscription_count -= 1

    def _leave(self, subscription: Subscription) -> None:
        filter_ = subscription.filter
        self.trie.remove(filter_, subscription)
        self._invalidate(filter_)
        if filter_.share:
            group = self.groups.get(filter_)
            if group is not None:
                group.remove(subscription.subscriber)
                if not group.members:
                    del self.groups[filter_]

    def _invalidate(self, filter_: Filter) -> None:
        cache = self.cache
        steps = cache.steps
        try:
            if cache.invalidate(filter_):
                self.route_table.drop()
        except Exception:
            self._forget_all_routes()
            raise
        self.context.work += SUBSCRIPTION_WORK + ((cache.steps - steps) >> 2)

    def _forget_all_routes(self) -> None:
        """Drop all that is cached of topics: after an exception it may be wrong."""
        self.cache.clear()
        self.route_table.drop()

    def forget_routes(self, subscriber: Subscriber) -> None:
        """Drop the cached routes that `subscriber` is part of: it connected, left, or changed its frame."""
        cache = self.cache
        most = cache.steps + limits.ROUTE_CACHE_INVALIDATION_STEPS
        dropped = 0
        for subscription in subscriber.subscriptions.values():
            cache.steps += 1
            if cache.steps > most:
                cache.clear()
                dropped = 1
                break
            try:
                dropped += cache.invalidate(subscription.filter)
            except Exception:
                self._forget_all_routes()
                raise
        if dropped:
            self.route_table.drop()

    def drop(self, subscriber: Subscriber) -> None:
        """Remove all subscriptions of `subscriber`, which may make others."""
        for key in list(subscriber.subscriptions):
            self.unsubscribe(subscriber, key)

    def forget(self, subscriber: Subscriber) -> None:
        """Remove all subscriptions of `subscriber`, which is gone: nothing reaches it from now on.

        Many subscriptions are removed in slices.
        """
        subscriber.gone = True
        if len(subscriber.subscriptions) <= AT_ONCE:
            self.drop(subscriber)
            return
        self.forget_routes(subscriber)
        self.context.jobs.add(SubscriptionRemoval(self, subscriber))


@final
class SubscriptionRemoval(Job):
    """Removes the subscriptions of a subscriber that is gone."""

    __slots__ = ("_keys", "_subscriber", "_vpn")

    def __init__(self, vpn: MessageVpn, subscriber: Subscriber) -> None:
        super().__init__()
        self._vpn = vpn
        self._subscriber = subscriber
        self._keys = list(subscriber.subscriptions)

    def step(self) -> bool:
        """Remove subscriptions until this turn has done enough or none is left."""
        vpn = self._vpn
        context = vpn.context
        while self._keys and not context.turn_spent:
            key = self._keys.pop()
            try:
                vpn.unsubscribe(self._subscriber, key)
            except Exception as error:  # noqa: BLE001 - given to the barrier
                context.barrier.of(None, error, TASK)
        return not self._keys
