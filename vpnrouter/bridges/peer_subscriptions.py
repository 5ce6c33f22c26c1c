"""The subscriptions of a bridge: at the serving end what to send, at the receiving end what may enter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast, final

from vpnrouter.bridges.link_client import may_enter
from vpnrouter.core.access import BoundRule
from vpnrouter.core.guaranteed.endpoint_settings import CONSUME
from vpnrouter.core.mqtt.subscribe import FRAME_BYTES, LATER_NS, MESSAGE_WORK, STEPS
from vpnrouter.core.selection import counted_match
from vpnrouter.core.subscriber import Subscription
from vpnrouter.core.timers import Job
from vpnrouter.errors import Refused, SelectorError, TopicError
from vpnrouter.events.table import SUBSCRIPTION_REFUSED
from vpnrouter.selectors import parse_selector
from vpnrouter.topics.algebra import matches
from vpnrouter.topics.grammar import QUEUE_PREFIX, SMF, Filter, name_meant, parse_filter
from vpnrouter.topics.trie import SubscriptionTrie
from vpnrouter.wire.link import codes as close_codes
from vpnrouter.wire.link import encode, frames

if TYPE_CHECKING:
    from vpnrouter.bridges.link_client import LinkClient
    from vpnrouter.bridges.link_end import LinkEnd
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.login import Admission
    from vpnrouter.core.message import Message
    from vpnrouter.core.publisher import Publisher
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.topics.index import IndexWalk
    from vpnrouter.topics.mapping import TopicMapping


QUEUE: Final = QUEUE_PREFIX.encode()


@final
class SubscribedRule(BoundRule):
    """The filters subscribed at one time. Routes and publishers cache answers by the rule object, so each change makes
    a new one.
    """

    def __init__(self, trie: SubscriptionTrie) -> None:
        super().__init__(False, [])
        self._trie = trie

    def allows_topic(self, topic: str) -> bool:
        """True when a filter attracts `topic` and no exception keeps it away."""
        found = False
        for entry in self._trie.match(topic):
            if cast("str", entry).startswith("!"):
                return False
            found = True
        return found


@final
class SubscribedFilters:
    """The filters under which messages may enter now, in `*` `>` dialect.

    A filter counts from its request on, a dropped one until the peer has answered. An exception counts from the peer's
    answer on: messages in flight before it are no fault of the peer.
    """

    __slots__ = ("_filters", "_trie")

    def __init__(self) -> None:
        self._trie = SubscriptionTrie()
        self._filters: dict[str, Filter] = {}

    def change(self, after: set[str], unsure: set[str]) -> SubscribedRule:
        """Request `after` from now on. `unsure` are filters, old and new, that the peer has not answered yet."""
        due: set[str] = set()
        for text in after | unsure:
            if not text.startswith("!") or (text in after and text not in unsure):
                due.add(text)
        for text in [known for known in self._filters if known not in due]:
            self._trie.remove(self._filters.pop(text), text)
        for text in due:
            if text not in self._filters:
                try:
                    filter_ = parse_filter(text, SMF, exceptions=True)
                except TopicError:
                    # The peer cannot parse it either, and sends nothing for it.
                    continue
                self._filters[text] = filter_
                self._trie.insert(filter_, text)
        return SubscribedRule(self._trie)


def subscribed_to(sink: Publisher, topic: bytes) -> bool:
    """Return whether `topic`, as received over the link, matches a subscription."""
    rule = sink.rule
    if rule is None:
        return True
    known = sink.permitted.answers.get(topic)
    if known is None:
        known = rule.allows_topic(topic.decode())
        sink.permitted.keep(topic, known)
    return known


def may_queue(topic: bytes, vpn: MessageVpn, taken_from: str) -> bool:
    """True when a guaranteed message with this topic may enter.

    A topic may name a queue of this message VPN: then the message may enter if it was taken from a queue of that
    name, or if everybody may consume from the queue.
    """
    if not topic.startswith(QUEUE):
        return True
    name = topic[len(QUEUE) :].decode()
    queue = vpn.queue(name)
    if queue is None:
        name = name_meant(name)
        queue = vpn.queue(name)
    return queue is None or name == taken_from or queue.settings.permission >= CONSUME


FILTER_WORK: Final = 5
"""What it costs to parse and check a filter, in parts of a turn (TurnContext.work)."""


@final
class PeerSubscriptions:
    """The subscriptions of `client`, who logged in as `admission` says.

    Where `mapping` renames what leaves, the peer speaks of topics as it sees them: each of its filters
    stands for others here (`sources`). `asked` keeps the flags and the selector of each. `wanting_retained` are new
    ones that want what is retained; PeerHalf.send_retained takes them out.
    """

    __slots__ = ("_admission", "_client", "_mapping", "asked", "sources", "wanting_retained")

    def __init__(
        self, client: LinkClient, admission: Admission, mapping: TopicMapping | None
    ) -> None:
        self._client = client
        self._admission = admission
        self._mapping = mapping
        self.sources: dict[str, list[Filter]] = {}
        self.asked: dict[str, tuple[int, str]] = {}
        self.wanting_retained: list[Subscription] = []

    def inherit(self, before: PeerSubscriptions, subscriptions: list[Subscription]) -> None:
        """Take the subscriptions of the connection that this one replaces."""
        client = self._client
        standing = {old.filter.original: old for old in subscriptions}
        for text, sources in before.sources.items():
            flags, selector = before.asked[text]
            try:
                filter_ = self._allowed(text)
                for source in sources:
                    old = standing.get(source.original)
                    if old is not None:
                        client.vpn.subscribe(
                            Subscription(
                                old.filter,
                                client,
                                deliver_always=old.deliver_always,
                                exception=old.exception,
                                selector=old.selector,
                                dto_priority=old.dto_priority,
                            )
                        )
            except Refused as refusal:
                self._tell_dropped(text, refusal.reason)
                self._drop_sources(sources)
                continue
            self.sources[text] = sources
            self.asked[text] = (flags, selector)
            client.asked(text, filter_)

    def _tell_dropped(self, text: str, why: str) -> None:
        """Report that a subscription of the connection before is no longer granted: bounds or rules have changed."""
        client = self._client
        vpn = client.vpn
        events = vpn.context.events
        if events is not None:
            told = f"VPN {vpn.name} bridge {client.client_name}: subscription {text} dropped: {why}"
            events.raise_event(SUBSCRIPTION_REFUSED, vpn.name, client.client_name, told)

    def subscribe_one(self, flags: int, text: str, selector: str) -> None:
        """Add or replace one subscription. Raises Refused."""
        client = self._client
        admission = self._admission
        vpn = client.vpn
        filter_ = self._allowed(text)
        vpn.context.work += FILTER_WORK + (len(selector) >> 1)
        try:
            chosen = parse_selector(selector) if selector else None
        except SelectorError as error:
            raise Refused("406 Invalid Selector", close_codes.SUBSCRIPTION_PARSE_ERROR) from error
        sources = [filter_]
        if self._mapping is not None:
            # An exception speaks of topics as they leave: the client looks at it then.
            texts = [] if filter_.exception else self._mapping.sources(filter_)
            sources = [_parse(vpn, source) for source in texts]
        known = self.sources.get(text, [])
        bound = admission.profile.max_subscription_count
        if bound and not known and len(client.subscriptions) + len(sources) > bound:
            raise Refused("400 Max Num Subscriptions Exceeded", close_codes.QUOTA_EXCEEDED)
        before, _ = self.asked.get(text, (0, ""))
        wants = flags & frames.SEND_RETAINED and not before & frames.SEND_RETAINED
        for source in sources:
            subscription = Subscription(
                source,
                client,
                deliver_always=bool(flags & frames.DELIVER_ALWAYS),
                exception=filter_.exception,
                selector=chosen,
                dto_priority=(flags >> frames.PRIORITY_SHIFT) & 0b111,
            )
            vpn.subscribe(subscription)
            if wants and not source.share and not source.exception:
                self.wanting_retained.append(subscription)
        self.sources[text] = sources
        self.asked[text] = (flags, selector)
        client.asked(text, filter_)

    def _allowed(self, text: str) -> Filter:
        """The parsed filter. Raises Refused where the grammar or the ACL does not allow it."""
        client = self._client
        admission = self._admission
        try:
            filter_ = _parse(client.vpn, text)
        except TopicError as error:
            raise Refused(
                "400 Subscription Parse Error", close_codes.SUBSCRIPTION_PARSE_ERROR
            ) from error
        acl = admission.acl.subscribe
        if (
            not acl.unrestricted
            and not filter_.exception
            and not acl.bind(admission.username.name, client.client_name).allows_filter(filter_)
        ):
            raise Refused("403 Subscription ACL Denied", close_codes.NOT_AUTHORIZED)
        return filter_

    def unsubscribe_one(self, text: str) -> bool:
        """Drop one subscription; False where there is none."""
        client = self._client
        sources = self.sources.pop(text, None)
        self.asked.pop(text, None)
        if sources is None:
            return False
        client.asked_no_more(text)
        self._drop_sources(sources)
        return True

    def _drop_sources(self, sources: list[Filter]) -> None:
        """Drop those of `sources` that no other filter of the peer maps to."""
        client = self._client
        left = {source.original for kept in self.sources.values() for source in kept}
        for source in sources:
            if source.original not in left:
                client.vpn.unsubscribe(client, source.original)


@final
class RetainedReplay(Job):
    """Sends a peer the retained messages that match a new subscription (LINK-26), in slices, as fast as its link takes
    them.

    Each topic is sent once for each new filter. Messages are left out that came from the peer, that its ACL denies, or
    that an exception, a selector or the hop limit excludes.
    """

    __slots__ = (
        "_client",
        "_found",
        "_link",
        "_request_id",
        "_since",
        "_subscription",
        "_waits",
        "_walk",
        "_wanted",
    )

    def __init__(self, link: LinkEnd, client: LinkClient) -> None:
        super().__init__()
        self._link = link
        self._client = client
        self._wanted: list[tuple[Subscription, int]] = []
        self._subscription: Subscription | None = None
        self._since = 0
        self._walk: IndexWalk | None = None
        self._found: list[bytes] = []
        self._waits = False
        # The newest request that is not answered with SNAPSHOT_END, 0 where all are.
        self._request_id = 0

    def want(self, subscriptions: list[Subscription], request_id: int) -> None:
        """Send what is retained under these subscriptions of a SUBSCRIBE as well, and then that this is all."""
        retained = self._client.vpn.retained
        if not self._busy:
            retained.watch()
        self._request_id = request_id
        for subscription in subscriptions:
            self._wanted.append((subscription, retained.last))
        if not self._waits:
            self._client.vpn.context.jobs.add(self)

    @property
    def _busy(self) -> bool:
        return self._request_id != 0

    def step(self) -> bool:
        """Send retained messages until this turn has done enough, or the link has no room."""
        client = self._client
        context = client.vpn.context
        if self._waits or not self._busy:
            return True
        while not context.turn_spent:
            subscription = self._subscription
            gone = not client.connected or self._link.parted
            if gone:
                self._wanted.clear()
            if subscription is not None and (
                gone or client.subscriptions.get(subscription.key) is not subscription
            ):
                self._turn()
            elif self._found:
                if not self._send(self._found[-1]):
                    self._waits = True
                    context.timers.arm(context.now_ns + LATER_NS, self, 0)
                    return True
                self._found.pop()
            elif self._walk is not None and not self._walk.done:
                steps = self._walk.steps
                self._found = self._walk.go_on(STEPS)
                context.work += (self._walk.steps - steps) >> 2
            elif self._wanted:
                self._turn()
                self._subscription, self._since = self._wanted.pop(0)
                filter_ = self._subscription.filter
                if filter_.literal:
                    self._found = [filter_.text.encode()]
                else:
                    self._walk = client.vpn.retained.walk(filter_)
            else:
                self._turn()
                client.vpn.retained.unwatch()
                if not gone:
                    self._link.say(encode.snapshot_end(frames.SnapshotEnd(self._request_id)))
                self._request_id = 0
                return True
        return False

    def _turn(self) -> None:
        self._subscription = None
        self._walk = None
        self._found = []

    def on_timer(self, kind: int, now_ns: int) -> None:
        """Look again whether the link has room."""
        self._waits = False
        self._client.vpn.context.jobs.add(self)

    def owning_connection(self) -> Connection | None:
        """The link that is sent to."""
        return self._link

    def _send(self, topic: bytes) -> bool:
        """Send what is retained on one topic, if anything; False where the link has no room yet."""
        client = self._client
        context = client.vpn.context
        subscription = self._subscription
        message = client.vpn.retained.message(topic, self._since, context.now_ns)
        context.work += 1
        if message is None or subscription is None or not self._may_have(message, topic.decode()):
            return True
        outbox = client.outbox
        size = len(message.payload) + len(topic) + len(message.block) + FRAME_BYTES
        if outbox.size and outbox.size + size > outbox.limit // 2:
            return False
        selector = subscription.selector
        if counted_match(selector, message, context):
            context.work += MESSAGE_WORK + len(message.payload) // 1024
            copy = message.copy()
            copy.retain = True
            copy.snapshot = True
            client.deliver(copy, [subscription])
        return True

    def _may_have(self, message: Message, topic: str) -> bool:
        client = self._client
        if not may_enter(message.path, client.vpn_id) or not client.wants(message.topic):
            return False
        if client.rule is not None and not client.rule.allows_topic(topic):
            return False
        for subscription in client.subscriptions.values():
            if subscription.exception and matches(subscription.filter, topic):
                return False
        return True


def _parse(vpn: MessageVpn, text: str) -> Filter:
    return parse_filter(
        text,
        SMF,
        max_levels=vpn.limits.max_topic_levels,
        max_bytes=vpn.limits.max_topic_bytes,
        exceptions=True,
    )
