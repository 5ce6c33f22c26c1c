"""A message on its way into the store and out of it."""

from __future__ import annotations

from typing import Final

from vpnrouter import limits
from vpnrouter.core.guaranteed.headers import lane_in
from vpnrouter.core.message import Message
from vpnrouter.spool import record

QOS2: Final = 16
"""Flag of a record: the message was published with QoS 2."""

SNAPSHOT: Final = 32
"""A new subscription brought it, of what was retained."""


def wall_expiry_ns(message: Message, now_ns: int, wall_ns: int) -> int:
    """When the message expires by the wall clock, which alone goes on over a restart; 0 for never.

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
        flags,
        message.priority,
        wall_expiry_ns(message, now_ns, wall_ns),
        message.ingress_ns or wall_ns,
        message.message_id,
        message.source_name,
        rare,
    )


def from_record(data: bytes, now_ns: int, wall_ns: int) -> Message:
    """The message that was stored. Raises SpoolError when the bytes are no record."""
    kept = record.decode_record(data)
    flags = kept.flags
    message = Message(kept.topic, kept.payload, kept.block)
    message.retain = flags & record.RETAIN != 0
    message.snapshot = flags & SNAPSHOT != 0
    message.persistent = flags & record.PERSISTENT != 0
    if message.persistent:
        message.qos = 2 if flags & QOS2 else 1
    message.dmq_eligible = flags & record.DMQ_ELIGIBLE != 0
    message.priority = kept.priority
    message.source_name = kept.source_name
    message.message_id = kept.message_id
    message.ingress_ns = kept.ingress_ns
    if kept.block:
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
