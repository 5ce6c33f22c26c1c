"""Reads a message from a link frame, and decides whether it may enter the message VPN."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter import limits
from vpnrouter.bridges.link_client import why_not
from vpnrouter.bridges.peer_subscriptions import may_queue
from vpnrouter.core.conversion import read_head
from vpnrouter.core.discard_reasons import (
    MSG_TOO_BIG,
    NOT_SUBSCRIBED,
    TOPIC_PARSE_ERROR,
    TTL_EXCEEDED,
)
from vpnrouter.core.duplicates import FIRST, SHORTER, SeenIds
from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.message_record import lane_of, read_headers
from vpnrouter.core.message import AMQP, Message
from vpnrouter.errors import ProtocolError, TopicError
from vpnrouter.units import MILLISECOND_NS, SECOND_NS
from vpnrouter.wire.link.codes import PROTOCOL_ERROR
from vpnrouter.wire.link.frames import DMQ_ELIGIBLE, EXACTLY_ONCE, LANES_PARTITION_KEY, PERSISTENT
from vpnrouter.wire.mqtt.publish_block import split_publish_properties

if TYPE_CHECKING:
    from vpnrouter.bridges.remote_settings import FlowSettings
    from vpnrouter.core.subscriber import Subscriber
    from vpnrouter.core.turn import TurnContext
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.topics.mapping import TopicMapping
    from vpnrouter.wire.link.frames import Direct, Extension, Guaranteed

NEVER: Final = {
    MSG_TOO_BIG: refusals.TOO_LARGE,
    TOPIC_PARSE_ERROR: "400 Topic Parse Error",
}
"""Why a message can never be in this message VPN though it could be in the sender's; what REJECT says."""

_PATH_BYTES: Final = limits.LINK_PATH_KEPT * (limits.LINK_PATH_ENTRY_BYTES + 2)


def direct(frame: Direct, client: Subscriber, path: list[str], context: TurnContext) -> Message:
    """Return the message in `frame`, from `client`. `path` is used where the frame holds none (LINK-29)."""
    message = Message(frame.topic, frame.payload, frame.properties, False, client)
    message.path = path
    message.hops = 1
    extension = frame.extension
    if extension is not None:
        if extension.path:
            message.path = extension.path
        message.hops = extension.hops
        message.retain = extension.retain
        message.snapshot = extension.snapshot and extension.retain
        message.trace_high = extension.trace_high
        message.trace_low = extension.trace_low
        message.message_id = extension.message_id
        message.origin_router = extension.origin_router
        message.origin_vpn = extension.origin_vpn
        message.origin_ts_ns = extension.origin_ts_ns
        if extension.amqp:
            _take_amqp(message, extension, context)
    message.ingress_ns = context.steady_ns
    if frame.properties:
        _, _, expiry_s = split_publish_properties(frame.properties, 0, len(frame.properties))
        if expiry_s >= 0:
            message.expires_ns = context.now_ns + expiry_s * SECOND_NS
    return message


def _take_amqp(message: Message, extension: Extension, context: TurnContext) -> None:
    """Take the payload as the content of an AMQP message (LINK-53). Raises ProtocolError where it is none."""
    try:
        head = read_head(message.payload)
    except ProtocolError as error:
        raise ProtocolError(PROTOCOL_ERROR, f"LINK-53: {error}") from error
    if len(head.content) != len(message.payload):
        raise ProtocolError(PROTOCOL_ERROR, "LINK-53: a header belongs to one hop")
    message.encoding = AMQP
    message.volatile = extension.volatile
    message.priority = extension.priority
    if head.group:
        message.lane = lane_of(head.group.encode())
    if head.deliver_at * MILLISECOND_NS > context.wall_ns:
        message.due_ns = context.now_ns + head.deliver_at * MILLISECOND_NS - context.wall_ns
    if extension.expiry_ms >= 0:
        message.expires_ns = context.now_ns + max(1, extension.expiry_ms * MILLISECOND_NS)


def arrived(
    frame: Guaranteed, client: Subscriber, path: list[str], context: TurnContext
) -> Message:
    """Return the guaranteed message in `frame`, from `client`. `path` is used where the frame holds none (LINK-29)."""
    message = direct(frame.message, client, path, context)
    # How it was published is another thing than how it travels: what a queue promoted is non-persistent.
    message.persistent = frame.flags & PERSISTENT != 0
    message.qos = 2 if frame.flags & EXACTLY_ONCE else 1
    message.dmq_eligible = frame.flags & DMQ_ELIGIBLE != 0
    message.priority = frame.priority
    extension = frame.message.extension
    if extension is not None and extension.expiry_ms >= 0:
        message.expires_ns = 0
        if extension.expiry_ms <= limits.MESSAGE_EXPIRY_S * 1_000:
            message.expires_ns = context.now_ns + extension.expiry_ms * MILLISECOND_NS
    return message


def _spool_bytes(path: list[str]) -> int:
    """Bytes of a path in a record of the spool, where each name has two more bytes for its length."""
    return sum([len(name.encode()) + 2 for name in path])


def obstacle(message: Message, vpn_id: str, max_ttl: int, most: int) -> str:
    """Why the message may never enter the VPN `vpn_id`, or "" (LINK-36). `most` bounds its payload."""
    if len(message.payload) > most:
        return MSG_TOO_BIG
    if len(message.path) > limits.LINK_PATH_KEPT and _spool_bytes(message.path) > _PATH_BYTES:
        return TTL_EXCEEDED
    return why_not(message.path, message.hops, vpn_id, max_ttl)


def enters(message: Message, vpn: MessageVpn, terms: FlowSettings, queue: str) -> str:
    """Give a guaranteed message the topic that it has in `vpn`. Returns why it may never enter, or "".

    `queue` is the name of the queue that it was taken from.
    """
    reason = obstacle(message, vpn.vpn_id, terms.max_ttl, vpn.limits.max_msg_size)
    arrived_like = message.topic
    if not reason and terms.mapping is not None:
        try:
            message.topic = terms.mapping.apply_bytes(arrived_like)
        except TopicError:
            return TOPIC_PARSE_ERROR
    if not reason and message.topic == arrived_like and not may_queue(arrived_like, vpn, queue):
        return NOT_SUBSCRIBED
    return reason


def known_snapshot(message: Message, vpn: MessageVpn) -> bool:
    """Return whether this message is retained here already, and was sent again for a renewed subscription (LINK-35)."""
    kept = vpn.retained.message(message.topic, vpn.retained.last, vpn.context.now_ns)
    return kept is not None and (kept.payload, kept.block) == (message.payload, message.block)


def copy_of_another(message: Message, vpn: MessageVpn, mapping: TopicMapping | None) -> bool:
    """Return whether another copy of a Direct message with an id was received before (LINK-47)."""
    if vpn.seen is None:
        vpn.seen = SeenIds()
    verdict = vpn.seen.look(message.message_id, message.hops)
    if verdict == FIRST:
        return False
    if verdict == SHORTER:
        _relay(message, vpn, mapping)
    return True


def _relay(message: Message, vpn: MessageVpn, mapping: TopicMapping | None) -> None:
    """Relay a copy that took a shorter path after a longer one: it may reach VPNs that the other could not."""
    topic = message.topic
    try:
        if mapping is not None:
            message.topic = mapping.apply_bytes(topic)
        vpn.relay(message)
    except TopicError:
        message.topic = topic


def lane(message: Message, by: int) -> int:
    """The number of the message's lane: that of its partition key, where it has one and it counts, else of
    its topic.
    """
    if by == LANES_PARTITION_KEY and message.block:
        read_headers(message)
        if message.lane:
            return message.lane
    return lane_of(message.topic)
