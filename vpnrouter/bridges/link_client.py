"""A bridge's client inside a message VPN, its trace events, and loop control in flight: visited message VPNs, hops.

Loop control in flight: the path of visited VPNs, and the hop limit behind it (LINK-29, LINK-36).

A VPN is named by its router and its own name together: three VPNs of one router are three places,
and a chain through all of them is no loop.

To the remote message VPN a bridge is a client like any other: it has a name, subscriptions and an
outbox. What is special: its frames are the link's, it carries the visited path, and it never gets back
what it brought (promise NOLOCAL).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, final

from typing_extensions import override

from vpnrouter import limits
from vpnrouter.core.discard_reasons import (
    LOOP_DETECTED,
    MSG_TOO_BIG,
    NO_LOCAL_DELIVERY,
    TOPIC_PARSE_ERROR,
    TTL_EXCEEDED,
    DiscardCounts,
)
from vpnrouter.core.message import AMQP
from vpnrouter.core.subscriber import FRAME_MQTT5, FRAME_OWN, Subscriber, Subscription
from vpnrouter.core.tracing import record, record_link
from vpnrouter.errors import TopicError
from vpnrouter.topics.algebra import matches
from vpnrouter.topics.cache import RememberedTopics
from vpnrouter.trace.events import BRIDGE_RECEIVE, BRIDGE_SEND, DIRECT, NON_PERSISTENT, PERSISTENT
from vpnrouter.trace.recorder import Context
from vpnrouter.units import MILLISECOND_NS
from vpnrouter.wire.link import encode
from vpnrouter.wire.link.extension import encode_extension
from vpnrouter.wire.link.frames import Extension

if TYPE_CHECKING:
    from vpnrouter.bridges.link_end import LinkEnd
    from vpnrouter.bridges.remote_settings import RemoteSettings
    from vpnrouter.core.access import BoundRule
    from vpnrouter.core.login import Admission
    from vpnrouter.core.memory_account import MemoryAccount
    from vpnrouter.core.message import Message
    from vpnrouter.core.outbox import Outbox
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.topics.grammar import Filter
    from vpnrouter.topics.mapping import TopicMapping


def vpn_id(router: str, vpn: str) -> str:
    """The name of a VPN in a path, "router/vpn".

    Raises ValueError when a path cannot carry it: an empty part, a slash in the router's name (the
    first slash divides), or more than LINK_PATH_ENTRY_BYTES in UTF-8.
    """
    if not router or not vpn or "/" in router:
        raise ValueError(f"{router!r} and {vpn!r} do not name a message VPN in a path")
    name = f"{router}/{vpn}"
    if len(name.encode("utf-8")) > limits.LINK_PATH_ENTRY_BYTES:
        raise ValueError(f"{name!r} is longer than {limits.LINK_PATH_ENTRY_BYTES} bytes")
    return name


def path_for(came_by: Sequence[str], own: str) -> list[str]:
    """Return the path to send along: `came_by`, empty for a message published here, then the sending VPN."""
    return [*came_by, own]


def expiry_ms(message: Message, now_ns: int) -> int:
    """Return how long a message lives on, -1 for ever (LINK-41)."""
    if not message.expires_ns:
        return -1
    return max(0, message.expires_ns - now_ns) // MILLISECOND_NS


def may_enter(path: Sequence[str], vpn: str) -> bool:
    """Return whether `vpn` is not in the path of a message. Sender and receiver both check."""
    return vpn not in path


def within_hops(hops: int, max_ttl: int) -> bool:
    """Whether a message that crossed `hops` links may enter over a bridge with `max_ttl`."""
    return hops <= max_ttl


def why_not(path: Sequence[str], hops: int, own: str, max_ttl: int) -> str:
    """The receiver's verdict: "" when the message may enter `own`, else the discard reason.

    A VPN visited before counts before the hops: it is the more precise reason.
    """
    if not may_enter(path, own):
        return LOOP_DETECTED
    if not within_hops(hops, max_ttl):
        return TTL_EXCEEDED
    return ""


@final
class InboundTraces:
    """Records trace events for the bridge of `terms` on one link; caches the context of the last path."""

    __slots__ = ("_bridge", "_link", "_received", "_remote_vpn")

    def __init__(self, link: LinkEnd, terms: RemoteSettings) -> None:
        self._link = link
        self._bridge = terms.bridge
        self._remote_vpn = terms.remote_vpn
        self._received: Context | None = None

    def link(self, event: int, why: str) -> None:
        """The link is up, down or was rejected; `why` is for people."""
        router_context = self._link.context
        if router_context.tracing:
            context = self._context(event, why, 0, "")
            record_link(router_context, context)

    def received(self, message: Message) -> None:
        """Record that a traced message was received over the link."""
        router_context = self._link.context
        context = self._received
        path = ">".join(message.path)
        mode = DIRECT
        if message.qos:
            mode = PERSISTENT if message.persistent else NON_PERSISTENT
        if (
            context is None
            or context.path != path
            or context.hops != message.hops
            or context.origin_router != message.origin_router
            or context.origin_vpn != message.origin_vpn
            or context.mode != mode
        ):
            context = self._context(BRIDGE_RECEIVE, "", message.hops, path, mode)
            context.origin_router = message.origin_router
            context.origin_vpn = message.origin_vpn
            self._received = context
        router_context.recorder.record(
            context,
            router_context.wall_ns,
            message.topic,
            trace_high=message.trace_high,
            trace_low=message.trace_low,
            message_id=message.message_id,
            size=len(message.payload),
            since_ingress_ns=0,
            origin_ts_ns=message.origin_ts_ns,
        )

    def _context(
        self, event: int, reason: str, hops: int, path: str, mode: int = DIRECT
    ) -> Context:
        link = self._link
        return Context(
            event,
            "" if link.vpn is None else link.vpn.name,
            mode,
            bridge=self._bridge,
            peer_router=link.peer_router,
            peer_vpn=link.peer_vpn or self._remote_vpn,
            reason=reason,
            hops=hops,
            path=path,
        )


HOPS_MOST: Final = 255
"""Hops that the link header can say; whoever counts that far has lost control of its loops."""


@final
class LinkClient(Subscriber):
    """The client of one link in `vpn`; the peer is `peer_vpn` of `peer_router`.

    `bridge` is the own bridge's name and `peer_bridge` the peer's, "" while there is none, for traces.
    `discarded` counts, by reason, what was offered and not sent, but for want of room (the outbox
    counts that).
    """

    __slots__ = (
        "_asked",
        "_mapping",
        "_renamed",
        "_rule",
        "_sent",
        "bridge",
        "discarded",
        "max_frame",
        "peer_bridge",
        "peer_router",
        "peer_vpn",
        "takes_amqp",
        "vpn",
    )

    def __init__(
        self, vpn: MessageVpn, client_name: str, outbox: Outbox, peer_router: str, peer_vpn: str
    ) -> None:
        super().__init__(client_name, outbox, FRAME_MQTT5, vpn_id=f"{peer_router}/{peer_vpn}")
        self.vpn = vpn
        self.bridge = ""
        self.peer_bridge = ""
        self.peer_router = peer_router
        self.peer_vpn = peer_vpn
        self.max_frame = limits.LINK_FRAME_BYTES
        self.takes_amqp = False
        self.discarded = DiscardCounts()
        self._mapping: TopicMapping | None = None
        self._asked: dict[str, Filter] = {}
        self._renamed: RememberedTopics[bytes] = RememberedTopics()
        self._rule: BoundRule | None = None
        self._sent: Context | None = None

    @override
    def memory(self) -> MemoryAccount | None:
        return self.vpn.memory.of(self.client_name)

    def bound_frames(self, max_frame: int) -> None:
        """Send frames of at most `max_frame` bytes, as the peer takes no longer ones (LINK-15).

        Below the usual bound each frame has to be looked at, so none crosses in a batch.
        """
        self.max_frame = max_frame
        self._choose_frame()

    def rename(self, mapping: TopicMapping | None) -> None:
        """Topics are renamed before they leave; the peer subscribes in the names that it sees."""
        self._mapping = mapping
        self._choose_rule()
        self._choose_frame()

    def judge(self, admission: Admission) -> None:
        """Apply the ACL profile of the peer's login to what it is sent. Its cached routes are dropped."""
        acl = admission.acl.subscribe
        self._rule = None
        if not acl.unrestricted:
            self._rule = acl.bind(admission.username.name, self.client_name)
        self._choose_rule()

    def _choose_rule(self) -> None:
        # Where topics are renamed, the peer and its ACL profile use the names that leave.
        self.rule = self._rule if self._mapping is None else None
        self._renamed.clear()

    def _choose_frame(self) -> None:
        plain = self.max_frame >= limits.LINK_FRAME_BYTES and self._mapping is None
        frame = FRAME_MQTT5 if plain else FRAME_OWN
        if frame != self.frame:
            self.frame = frame
            self.vpn.forget_routes(self)

    def asked(self, text: str, filter_: Filter) -> None:
        """Note that the peer subscribed to `text`, parsed as `filter_`."""
        if self._mapping is not None:
            self._asked[text] = filter_
            self._renamed.clear()

    def asked_no_more(self, text: str) -> None:
        """Forget the filter `text`, which the peer dropped."""
        if self._asked.pop(text, None) is not None:
            self._renamed.clear()

    def deliver(self, message: Message, subscriptions: list[Subscription]) -> None:
        """Send `message` over the link, unless it has been where the link leads."""
        topic = message.topic
        if self._mapping is not None:
            topic = self._renamed_topic(message)
            if not topic:
                return
        if message.encoding == AMQP and not self.takes_amqp:
            message = message.mqtt()
        self.offered += 1
        reason = self._obstacle(message)
        frame = b""
        if not reason:
            if self._mapping is not None:
                frame = self._encoded(message, topic)
            else:
                # The same for every link of this VPN.
                frame = message.link_frame or self._encoded(message, topic)
                message.link_frame = frame
            if len(frame) > self.max_frame:
                # LINK-37: the link stays up, the message is discarded here.
                reason = MSG_TOO_BIG
        if reason:
            self.discarded.add(reason)
            self.vpn.discard(message, reason, self)
            return
        taken = self.outbox.offer(frame, 1)
        if message.traced:
            if taken:
                self.trace_sent(message, DIRECT)
            else:
                self.vpn.trace_outcome(self, message, taken)

    def _obstacle(self, message: Message) -> str:
        if message.source is self:
            return NO_LOCAL_DELIVERY
        if not may_enter(message.path, self.vpn_id):
            return LOOP_DETECTED
        if message.hops >= HOPS_MOST:
            return TTL_EXCEEDED
        return ""

    def bridge_of(self, inward: bool) -> str:
        """The name of the own bridge for received messages, of the peer's bridge for sent ones."""
        return self.bridge if inward else self.peer_bridge

    def _renamed_topic(self, message: Message) -> bytes:
        """Return the topic as the peer sees it, b"" where none of its subscriptions match it."""
        topic = message.topic
        known = self._renamed.answers.get(topic)
        if known is not None:
            return known
        renamed = b""
        mapping = self._mapping
        if mapping is not None:
            try:
                renamed = mapping.apply_bytes(topic)
            except TopicError:
                self.offered += 1
                self.discarded.add(TOPIC_PARSE_ERROR)
                self.vpn.discard(message, TOPIC_PARSE_ERROR, self)
                return b""
        if not self._asked_for(renamed.decode()):
            renamed = b""
        self._renamed.keep(topic, renamed, len(renamed))
        return renamed

    def _asked_for(self, text: str) -> bool:
        """True when a subscription of the peer matches `text`, the topic as it sees it, and its ACL allows that."""
        if self._rule is not None and not self._rule.allows_topic(text):
            return False
        wanted = False
        for filter_ in self._asked.values():
            if matches(filter_, text):
                if filter_.exception:
                    return False
                wanted = True
        return wanted

    def wants(self, topic: bytes) -> bool:
        """True when a message on a topic that a subscription matched is offered to the peer, once it is renamed."""
        mapping = self._mapping
        if mapping is None:
            return True
        try:
            return self._asked_for(mapping.apply_bytes(topic).decode())
        except TopicError:
            return False

    def _encoded(self, message: Message, topic: bytes) -> bytes:
        body = encode.direct_body(topic, message.block, message.payload)
        amqp = message.encoding == AMQP
        if not (message.path or message.message_id or message.traced or message.retain or amqp):
            return encode.direct(body)
        path = path_for(message.path, self.vpn.vpn_id)
        traced = message.traced
        extension = Extension(
            path if message.path else [],
            hops=message.hops + 1,
            trace_high=message.trace_high,
            trace_low=message.trace_low,
            message_id=message.message_id,
            trace_flags=1 if traced else 0,
            origin_router=(message.origin_router or self.vpn.context.router_name) if traced else "",
            origin_vpn=(message.origin_vpn or self.vpn.name) if traced else "",
            origin_ts_ns=message.origin_ts_ns,
            retain=message.retain,
            expiry_ms=expiry_ms(message, self.vpn.context.now_ns) if amqp else -1,
            snapshot=message.snapshot,
            amqp=amqp,
            priority=message.priority,
            volatile=message.volatile,
        )
        return encode.direct_x(encode_extension(extension), body)

    def trace_sent(self, message: Message, mode: int) -> None:
        """Record that a traced message of this delivery mode (trace/events.py) goes over the link."""
        router_context = self.vpn.context
        hops = message.hops + 1
        context = self._sent
        if context is None or context.hops != hops or context.mode != mode or message.path:
            context = Context(
                BRIDGE_SEND,
                self.vpn.name,
                mode,
                client=self.client_name,
                bridge=self.peer_bridge,
                peer_router=self.peer_router,
                peer_vpn=self.peer_vpn,
                hops=hops,
                path=">".join(message.path),
                origin_router=message.origin_router or router_context.router_name,
                origin_vpn=message.origin_vpn or self.vpn.name,
            )
            if not message.path:
                self._sent = context
        record(self.vpn, context, message)
