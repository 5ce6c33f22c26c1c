"""The publishing side of one connection, laid out flat for the batch path in forward.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.core.guaranteed.refusals import may_learn
from vpnrouter.events import table
from vpnrouter.trace.events import DIRECT, INGRESS, PERSISTENT
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
    from vpnrouter.trace.sampler import Sampler


PUBLISH_DENIED: Final = 1
SUBSCRIBE_DENIED: Final = 2
TOO_BIG: Final = 4
LARGE: Final = 8
BIND_FAILED: Final = 16
"""Bits of `Publisher.told`: the one-shot events that a connection has had."""

_ONE_SHOTS: Final[dict[int, EventType]] = {
    PUBLISH_DENIED: table.PUBLISH_DENIED,
    SUBSCRIBE_DENIED: table.SUBSCRIBE_DENIED,
    TOO_BIG: table.TOO_BIG,
    LARGE: table.LARGE_MESSAGE,
    BIND_FAILED: table.BIND_FAILED,
}


@final
class Publisher:
    """Who publishes, into which VPN, in which frame form, with which permission; and its counters.

    `extra` is 1 when PUBLISH frames carry a property length (MQTT 5, link), else 0.
    `rule` is None when the ACL lets everything through, which then costs nothing per message.
    `permitted` remembers its answers by topic. `username` is asked for where a topic names a queue, None for links.
    `sampler` picks the messages to trace (a link's never picks: the decision came with the message);
    `picking` chooses another one by topic, None where trace filters do not ask for it.
    `path` names the VPN that plain frames come from when a link publishes, else it is empty.
    `max_size` bounds a payload; frames above `max_frame`, which may be less, are looked at one by one.
    `told` are the one-shot events of this connection, bits of the table above.
    Counters: messages and bytes received whole, and what became of the messages, each counted where it
    happens, so that messages = delivered + spooled + unmatched + acl_denied + refused is a check:
    `delivered` were offered to at least one receiver (who counts it, should it have no room or refuse
    it); `spooled` are guaranteed ones that matched an endpoint; `unmatched` matched nobody, in the batch
    path or as guaranteed messages; `refused` are those whose reason stands among the discards of the
    VPN, or that it `rejected`.
    """

    __slots__ = (
        "acl_denied",
        "bytes_",
        "context",
        "delivered",
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
        self.permitted: dict[bytes, bool] = {}
        self.username: ClientUsername | None = None
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
        """Deliver one message that was counted as received; "" or why nobody was offered it.

        See MessageVpn.publish, which counts the reason. Raises TopicError for a bad topic: then the
        caller discards, and counts it in `refused`.
        """
        reason = self.vpn.publish(message)
        if reason:
            self.refused += 1
        else:
            self.delivered += 1
        return reason

    def report_once(self, what: int, text: str) -> None:
        """Raise a one-shot event, one of the bits above: not again until the client reconnects or it is cleared.

        The caller has looked at `told`.
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
        """Add up for traces a message that may not enter, before anybody asks whether it is traced."""
        losses = self.vpn.context.discard_rows
        if losses is not None:
            name = self.subscriber.client_name
            mode = PERSISTENT if qos else DIRECT
            losses.add((event, self.vpn.name, mode, name, "", why, "", "", 0, "", topic), 1)

    def may_learn(self, route: Route) -> bool:
        """Whether the client may learn that no queue has the name that the topic names.

        One whom an ACL exception lets publish to it may.
        """
        rule = self.rule
        return may_learn(self.username) or (rule is not None and rule.names(route.topic))

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
        """True when this client may publish to the topic of `route`.

        The route remembers the last rule that allowed it, so that the many clients of one ACL profile
        ask once; clients whose names stand in the rule remember their own topics.
        """
        rule = self.rule
        if rule is None or route.allowed_by is rule:
            return True
        known = self.permitted.get(route.raw)
        if known is None:
            if len(self.permitted) >= limits.PERMITTED_TOPICS:
                self.permitted.clear()
            known = rule.allows_topic(route.topic)
            if len(route.raw) <= limits.ROUTE_CACHE_TOPIC_BYTES:
                self.permitted[route.raw] = known
        if known:
            route.allowed_by = rule
        return known
