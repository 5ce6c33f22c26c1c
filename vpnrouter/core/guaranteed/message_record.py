"""Encodes messages for the store, reads their headers, and caches messages in memory.

MQTT has no fields for these, so they are user properties: `priority` 0 to 9 (more counts as 9; 4 where it is missing),
`dmq-eligible` (`false` keeps the message out of a dead message queue that respects it) and `JMSXGroupID`, the key of
partitions and lanes.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.core.conversion import delivery_time_of, group_of
from vpnrouter.core.message import AMQP, MQTT, PRIORITY, Message, priority_of
from vpnrouter.errors import SpoolError
from vpnrouter.spool import record
from vpnrouter.units import MILLISECOND_NS

if TYPE_CHECKING:
    from vpnrouter.core.turn import TurnContext
    from vpnrouter.spool.ledger import Ledger


DMQ_ELIGIBLE: Final = "dmq-eligible"
NO: Final = ("false", "0")
"""What the user property `dmq-eligible` says of a message that is not."""

PARTITION_KEY: Final = "JMSXGroupID"

_NAMES: Final = (PRIORITY.encode(), DMQ_ELIGIBLE.encode(), PARTITION_KEY.encode())

FNV_PRIME: Final = 16_777_619
FNV_START: Final = 2_166_136_261


def read_headers(message: Message) -> None:
    """Set the fields of `message` that its user properties give.

    Those of an AMQP message were set from its own sections when it came.
    """
    if message.encoding == AMQP:
        return
    block = message.block
    if not (_NAMES[0] in block or _NAMES[1] in block or _NAMES[2] in block):
        return
    if _NAMES[0] in block:
        message.priority = priority_of(message.properties().get(PRIORITY))
    if message.text_property(DMQ_ELIGIBLE).lower() in NO:
        message.dmq_eligible = False
    message.lane = lane_in(message)


def lane_in(message: Message) -> int:
    """The lane that the partition key of `message` names, 0 without one."""
    if _NAMES[2] not in message.block:
        return 0
    key = message.text_property(PARTITION_KEY)
    return lane_of(key.encode()) if key else 0


def lane_of(key: bytes) -> int:
    """A number of 16 bits for a key, never 0: the same on every router and after every restart.

    FNV-1a, folded.
    """
    mixed = FNV_START
    for byte in key:
        mixed = (mixed ^ byte) * FNV_PRIME & 0xFFFF_FFFF
    return (mixed >> 16 ^ mixed) & 0xFFFF or 1


QOS2: Final = 16
"""Flag of a record: the message was published with QoS 2."""

SNAPSHOT: Final = 32
"""A new subscription brought it, of what was retained."""

AMQP_CONTENT: Final = 64
"""The payload is the content of an AMQP message."""

VOLATILE: Final = 128
"""Its publisher said that it need not outlive a broker."""


def wall_expiry_ns(message: Message, now_ns: int, wall_ns: int) -> int:
    """Return when the message expires by the wall clock, which continues over a restart; 0 for never.

    A time beyond the spool's range counts as never.
    """
    if message.expires_ns == 0:
        return 0
    expires_ns = max(1, message.expires_ns - now_ns + wall_ns)
    return 0 if expires_ns > limits.SPOOL_EXPIRY_NS else expires_ns


def to_record(message: Message, now_ns: int, wall_ns: int) -> bytes:
    """The bytes to store."""
    flags = 0
    if message.persistent:
        flags = record.PERSISTENT
        if message.qos == 2:
            flags |= QOS2
    if message.dmq_eligible:
        flags |= record.DMQ_ELIGIBLE
    if message.retain:
        flags |= record.RETAIN
        if message.snapshot:
            flags |= SNAPSHOT
    if message.deliver_to_one:
        flags |= record.DELIVER_TO_ONE
    if message.encoding == AMQP:
        flags |= AMQP_CONTENT
    if message.volatile:
        flags |= VOLATILE
    rare = b""
    if message.path or message.hops or message.trace_high or message.trace_low:
        rare = record.encode_rare(
            message.hops,
            message.path,
            message.origin_router,
            message.origin_vpn,
            message.origin_ts_ns,
            message.trace_high,
            message.trace_low,
        )
    return record.encode_record(
        message.topic,
        message.payload,
        message.block,
        flags=flags,
        priority=message.priority,
        expires_ns=wall_expiry_ns(message, now_ns, wall_ns),
        ingress_ns=message.ingress_ns or wall_ns,
        message_id=message.message_id,
        source_name=message.source_name,
        rare=rare,
    )


def from_record(data: bytes, now_ns: int, wall_ns: int) -> Message:
    """The message that was stored. Raises SpoolError when the bytes are no record."""
    kept = record.decode_record(data)
    flags = kept.flags
    encoding = AMQP if flags & AMQP_CONTENT else MQTT
    message = Message(kept.topic, kept.payload, kept.block, False, None, encoding)
    message.retain = flags & record.RETAIN != 0
    message.snapshot = flags & SNAPSHOT != 0
    message.persistent = flags & record.PERSISTENT != 0
    if message.persistent:
        message.qos = 2 if flags & QOS2 else 1
    message.volatile = flags & VOLATILE != 0
    message.dmq_eligible = flags & record.DMQ_ELIGIBLE != 0
    message.priority = kept.priority
    message.source_name = kept.source_name
    message.message_id = kept.message_id
    message.ingress_ns = kept.ingress_ns
    if encoding == AMQP:
        message.deliver_to_one = flags & record.DELIVER_TO_ONE != 0
        group = group_of(kept.payload)
        message.lane = lane_of(group.encode()) if group else 0
        due_ms = delivery_time_of(kept.payload)
        if due_ms >= 0:
            message.due_ns = max(1, due_ms * MILLISECOND_NS - wall_ns + now_ns)
    elif kept.block:
        message.lane = lane_in(message)
    if 0 < kept.expires_ns <= limits.SPOOL_EXPIRY_NS:
        message.expires_ns = max(1, kept.expires_ns - wall_ns + now_ns)
    if kept.path or kept.hops or kept.trace_high or kept.trace_low:
        message.path = kept.path
        message.hops = kept.hops
        message.origin_router = kept.origin_router
        message.origin_vpn = kept.origin_vpn
        message.origin_ts_ns = kept.origin_ts_ns
        message.trace_high = kept.trace_high
        message.trace_low = kept.trace_low
    return message


FEW: Final = 4_096
"""Ids of messages that have gone which are not worth a sweep."""


@final
class MessageCache:
    """Messages by spool id (`kept`). Beyond SPOOL_BODY_BYTES the oldest leave; they can be read again."""

    __slots__ = ("_order", "kept", "size")

    def __init__(self) -> None:
        self.kept: dict[int, Message] = {}
        self.size = 0
        # Ids in the order in which they came; those that have gone are found out when their turn comes. A
        # dict that loses its first items one by one is slow to say which is the first.
        self._order: deque[int] = deque()

    def keep(self, spool_id: int, message: Message) -> None:
        """Remember a message that will be needed soon."""
        kept = self.kept
        order = self._order
        message.rest()
        kept[spool_id] = message
        order.append(spool_id)
        self.size += message.size + limits.SPOOL_BODY_COST
        while self.size > limits.SPOOL_BODY_BYTES and len(kept) > 1:
            self.drop(order.popleft())
        if len(order) > 2 * len(kept) + FEW:
            self._order = deque(kept)

    def drop(self, spool_id: int) -> None:
        """Forget a message, if it is here."""
        message = self.kept.pop(spool_id, None)
        if message is not None:
            self.size -= message.size + limits.SPOOL_BODY_COST

    def read(self, ledger: Ledger, context: TurnContext, spool_id: int) -> Message:
        """Read a message from the store, and those of its segment that come after it.

        Raises SpoolError when the store has lost it.
        """
        found: Message | None = None
        try:
            records = ledger.read(spool_id)
        except KeyError as error:
            raise SpoolError(f"the spool has lost message {spool_id}", "corrupt") from error
        for other, data in records:
            if other < spool_id or other in self.kept:
                continue
            try:
                message = from_record(data, context.now_ns, context.steady_ns)
            except SpoolError:
                if other == spool_id:
                    raise
                # It is told when its own turn comes.
                continue
            if other == spool_id:
                found = message
            elif self.size > limits.SPOOL_BODY_BYTES:
                break
            self.keep(other, message)
        if found is None:
            raise SpoolError(f"the spool has lost message {spool_id}", "corrupt")
        return found
