"""Keeps the publishing side of one connection, laid out flat for the batch path in forward.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.core.discard_reasons import MSG_TOO_BIG, PUBLISH_TOPIC_ACL
from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.refusals import may_learn
from vpnrouter.events import table
from vpnrouter.topics.cache import RememberedTopics
from vpnrouter.topics.grammar import QUEUE_PREFIX
from vpnrouter.trace.events import DIRECT, DISCARD, INGRESS, PERSISTENT, REJECT
from vpnrouter.trace.recorder import Context

if TYPE_CHECKING:
    from vpnrouter.core.access import BoundRule
    from vpnrouter.core.credentials import ClientUsername
    from vpnrouter.core.message import Message
    from vpnrouter.core.route import Route
    from vpnrouter.core.subscriber import Subscriber
    from vpnrouter.core.tracing import TopicSamplers
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.events.table import EventType
    from vpnrouter.topics.grammar import Filter
    from vpnrouter.trace.sampler import Sampler


PUBLISH_DENIED: Final = 1
SUBSCRIBE_DENIED: Final = 2
TOO_BIG: Final = 4
LARGE: Final = 8
BIND_FAILED: Final = 16
QUEUE_MEANT: Final = 32
"""Bits of `Publisher.told`: the one-shot events that a connection has had."""

_ONE_SHOTS: Final[dict[int, EventType]] = {
    PUBLISH_DENIED: table.PUBLISH_DENIED,
    SUBSCRIBE_DENIED: table.SUBSCRIBE_DENIED,
    TOO_BIG: table.TOO_BIG,
    LARGE: table.LARGE_MESSAGE,
    BIND_FAILED: table.BIND_FAILED,
    QUEUE_MEANT: table.QUEUE_MEANT,
}


@final
class Publisher:
    """The publisher of one connection: message VPN, frame form, permission and counters.

    `extra` is 1 when PUBLISH frames carry a property length (MQTT 5, link), else 0. `rule` is None when the ACL allows
    everything, which then costs nothing per message; `permitted` remembers its answers by topic. `username` is needed
    where a topic names a queue, None for links. `sampler` picks the messages to trace (a link's never picks: the
    decision came with the message); `picking` chooses another one by topic, None without trace filters by topic. `path`
    names the message VPN that plain frames of a link come from, else it is empty. `max_size` bounds a payload; frames
    above `max_frame`, which may be less, are handled one by one. `elsewhere` are filters of topics whose messages come
    by a connector too, and are left out here. `told` are the one-shot events of this connection,
    bits of the table above. Counters: messages and bytes received, and the outcomes, with messages = delivered +
    spooled + unmatched + acl_denied + refused. `delivered` were offered to at least one receiver, which counts it if it
    has no room or refuses; `spooled` are guaranteed ones that matched an endpoint; `unmatched` had no receiver;
    `refused` are counted under their reason among the discards of the message VPN, or as `rejected`.
    """

    __slots__ = (
        "acl_denied",
        "bytes_",
        "context",
        "delivered",
        "elsewhere",
        "extra",
        "max_frame",
        "max_size",
        "messages",
        "path",
        "permitted",
        "picking",
        "refused",
        "rule",
        "sampler",
        "spooled",
        "subscriber",
        "told",
        "unmatched",
        "username",
        "vpn",
    )

    def __init__(
        self,
        vpn: MessageVpn,
        subscriber: Subscriber,
        rule: BoundRule | None,
        extra: int,
        max_frame: int,
    ) -> None:
        self.vpn = vpn
        self.subscriber = subscriber
        self.rule = rule
        self.permitted: RememberedTopics[bool] = RememberedTopics(limits.PERMITTED_TOPIC_BYTES)
        self.username: ClientUsername | None = None
        self.elsewhere: list[Filter] = []
        self.extra = extra
        self.max_frame = max_frame
        self.max_size = max_frame
        self.told = 0
        self.messages = 0
        self.bytes_ = 0
        self.delivered = 0
        self.spooled = 0
        self.unmatched = 0
        self.acl_denied = 0
        self.refused = 0
        self.path: list[str] = []
        self.sampler = vpn.context.sampler
        self.picking: TopicSamplers | None = None
        self.context = Context(INGRESS, vpn.name, DIRECT, client=subscriber.client_name)

    def publish(self, message: Message) -> str:
        """Deliver one message that was counted as received; "" or the reason why it was offered to nobody.

        MessageVpn.publish counts the reason. Raises TopicError for a bad topic: the caller counts it in `refused`.
        """
        reason = self.vpn.publish(message)
        if reason:
            self.refused += 1
        else:
            self.delivered += 1
        return reason

    def refusal(self, route: Route, topic: bytes, qos: int, size: int, sends: bool) -> str:
        """Return why a message of `size` bytes may not be published, "" where it may; count and report it.

        `qos` is not 0 for a guaranteed message; `sends` says whether the client may publish those.
        """
        vpn = self.vpn
        denied = "" if self.allowed(route) else refusals.ACL_DENIED
        if not denied and not route.may_put(self.username, self.rule):
            denied = refusals.PERMISSION_DENIED
        why = denied
        if route.missing_queue and qos and not denied and not self.may_learn(route):
            denied = refusals.PERMISSION_DENIED
            why = refusals.QUEUE_NOT_FOUND
        if denied:
            if not self.told & PUBLISH_DENIED:
                self.report_once(PUBLISH_DENIED, f"{why}: topic {route.topic}")
            if why == denied:
                self.acl_denied += 1
                self.report_lost(DISCARD, topic, qos, PUBLISH_TOPIC_ACL)
            else:
                self.refused += 1
                vpn.rejected += 1
                self.report_lost(REJECT, topic, qos, why)
            return denied
        if qos and not sends:
            # The client profile let it send guaranteed messages when it logged in.
            self.refused += 1
            vpn.rejected += 1
            return refusals.PERMISSION_DENIED
        # What held at the login: that is what the client was told.
        if size > self.max_size:
            vpn.discards.add(MSG_TOO_BIG)
            if not self.told & TOO_BIG:
                text = f"a message of {size:,} bytes; at most {self.max_size:,} are taken"
                self.report_once(TOO_BIG, text)
            self.refused += 1
            self.report_lost(DISCARD, topic, qos, MSG_TOO_BIG)
            return refusals.TOO_LARGE
        large = vpn.limits.large_msg_size
        if large and size > large and not self.told & LARGE:
            self.report_once(LARGE, f"a message of {size:,} bytes on topic {route.topic}")
        return ""

    def report_once(self, what: int, text: str) -> None:
        """Raise a one-shot event, one of the bits above; check `told` first.

        It is not raised again until the client reconnects or the bit is cleared.
        """
        self.told |= what
        self._report(_ONE_SHOTS[what], text)

    def report_flow(self, *, opened: bool) -> None:
        """Raise the event of a first guaranteed message, or of the end of a connection that published some."""
        if opened:
            self._report(table.OPEN_FLOW, "publisher flow opened")
        else:
            text = f"publisher flow closed: {self.spooled:,} messages spooled"
            self._report(table.CLOSE_FLOW, text)

    def _report(self, kind: EventType, text: str) -> None:
        events = self.vpn.context.events
        if events is not None:
            vpn = self.vpn.name
            name = self.subscriber.client_name
            events.raise_event(kind, vpn, name, f"VPN {vpn} client {name}: {text}")

    def report_lost(self, event: int, topic: bytes, qos: int, why: str) -> None:
        """Add a refused message to the discard rows, before it is decided whether it is traced."""
        losses = self.vpn.context.discard_rows
        if losses is not None:
            name = self.subscriber.client_name
            mode = PERSISTENT if qos else DIRECT
            losses.add((event, self.vpn.name, mode, name, "", why, "", "", 0, "", topic), 1)

    def may_learn(self, route: Route) -> bool:
        """Return whether the client may learn that the queue that the topic names does not exist.

        A client that an ACL exception lets publish to it may, and everybody of a temporary one.
        """
        rule = self.rule
        if route.topic.startswith(QUEUE_PREFIX + refusals.TEMPORARY):
            return True
        return may_learn(self.username) or (rule is not None and rule.names(route.topic))

    def queue_meant(self, topic: bytes, route: Route, qos: int) -> str:
        """Return why a guaranteed message is refused that goes to a topic without a receiver, but may be for a queue.

        That is where a queue of the topic's name is there, which the client may publish to; else "". It is counted, and
        reported of a Direct message as well, which is discarded.
        """
        vpn = self.vpn
        if not route.empty or vpn.queue(route.topic) is None:
            return ""
        queue = vpn.route(QUEUE_PREFIX.encode() + topic)
        if not self.allowed(queue) or not queue.may_put(self.username, self.rule):
            return ""
        why = (
            f"{refusals.NO_SUBSCRIPTION_MATCH}: nobody subscribes to the topic {route.topic};"
            f" the queue of that name is queue://{route.topic}"
        )
        if not self.told & QUEUE_MEANT:
            self.report_once(QUEUE_MEANT, why)
        if not qos:
            return ""
        self.refused += 1
        vpn.rejected += 1
        self.report_lost(REJECT, topic, qos, refusals.NO_SUBSCRIPTION_MATCH)
        return why

    def sampler_for(self, route: Route) -> Sampler:
        """The sampler that picks among the messages of `route`."""
        picking = self.picking
        if picking is None:
            return self.sampler
        known = route.sampler
        return known if known is not None and route.picking is picking else picking.choose(route)

    def arrived(self, message: Message) -> None:
        """Fill in where a message that came as a plain frame has been."""
        if self.path:
            message.path = self.path
            message.hops = 1

    def allowed(self, route: Route) -> bool:
        """Return whether this client may publish to the topic of `route`.

        The route remembers the last rule that allowed it, so that the clients of one ACL profile ask once; clients
        whose names are in the rule remember their own topics.
        """
        rule = self.rule
        if rule is None or route.allowed_by is rule:
            return True
        known = self.permitted.answers.get(route.raw)
        if known is None:
            known = rule.allows_topic(route.topic)
            self.permitted.keep(route.raw, known)
        if known:
            route.allowed_by = rule
        return known
