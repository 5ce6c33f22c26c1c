"""Makes the router's message of what came over AMQP: from a client, or from the provider of a connector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter.core.conversion import DELIVERY_TIME, with_annotation
from vpnrouter.core.guaranteed.message_record import DMQ_ELIGIBLE, NO, lane_of
from vpnrouter.core.message import AMQP, DELIVER_TO_ONE, HIGHEST, YES, Message
from vpnrouter.core.tracing import NAME as TRACEPARENT
from vpnrouter.core.tracing import parsed
from vpnrouter.units import MILLISECOND_NS
from vpnrouter.wire.amqp.types import Typed

if TYPE_CHECKING:
    from vpnrouter.core.conversion import MessageHead
    from vpnrouter.core.message import Source
    from vpnrouter.core.tracing import TraceParent
    from vpnrouter.core.turn import TurnContext

_TRACEPARENT: Final = TRACEPARENT.encode()
_DELIVER_TO_ONE: Final = DELIVER_TO_ONE.encode()
_DMQ_ELIGIBLE: Final = DMQ_ELIGIBLE.encode()


def message_of(
    context: TurnContext, topic: bytes, head: MessageHead, source: Source, *, settled: bool
) -> Message:
    """Return the message of `source` for `topic`, with what its head and its application properties ask for.

    One that its sender has `settled` is Direct.
    """
    content = head.content
    due_ms = head.deliver_at
    wall_ms = context.wall_ns // MILLISECOND_NS
    if due_ms < 0 and head.delay > 0:
        # The delay counts from now on, also after a restart.
        due_ms = wall_ms + head.delay
        content = with_annotation(content, DELIVERY_TIME, Typed("timestamp", due_ms))
    message = Message(topic, content, b"", False, source, AMQP)
    if due_ms > wall_ms:
        message.due_ns = context.now_ns + (due_ms - wall_ms) * MILLISECOND_NS
    message.qos = 0 if settled else 1
    if head.application:
        _take_wishes(message)
    message.volatile = not head.durable
    message.priority = min(head.priority, HIGHEST)
    if head.group:
        message.lane = lane_of(head.group.encode())
    if head.ttl >= 0:
        message.expires_ns = context.now_ns + head.ttl * MILLISECOND_NS
    elif head.expires_at > 0:
        left_ms = max(0, head.expires_at - wall_ms)
        message.expires_ns = context.now_ns + max(1, left_ms * MILLISECOND_NS)
    return message


def _take_wishes(message: Message) -> None:
    """Take what application properties ask the router for."""
    content = message.payload
    if _DELIVER_TO_ONE in content:
        message.deliver_to_one = message.text_property(DELIVER_TO_ONE) in YES
    if _DMQ_ELIGIBLE in content:
        message.dmq_eligible = message.text_property(DMQ_ELIGIBLE) not in NO


def trace_parent_of(message: Message) -> TraceParent | None:
    """Return the span that a message of AMQP says it is a part of, None where it says none."""
    if _TRACEPARENT not in message.payload:
        return None
    return parsed(message.text_property(TRACEPARENT).encode())
