"""Messages that no consumer of their endpoint takes: to the dead message queue, or away, and counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter.core.guaranteed.counters import DISCARDED, MOVED
from vpnrouter.core.guaranteed.dead_letter_properties import addressed, sources
from vpnrouter.core.guaranteed.sizes import size_of
from vpnrouter.core.guaranteed.traces import trace_at, trace_lost_at
from vpnrouter.trace.events import DEAD_LETTER, DISCARD, EXPIRE

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.message import Message

REJECTED: Final = "rejected"
EXPIRED: Final = "max-ttl-expired"
REDELIVERED: Final = "max-redelivery-exceeded"


def dead_letter(endpoint: Endpoint, message_id: int, message: Message, reason: str) -> None:
    """Move a message to the dead message queue, in one unit with its leaving here; else discard it.

    It goes to no queue that gave it up before: two queues that name each other must not play ball.
    """
    counters = endpoint.counters
    traced = message.traced
    if traced and reason == EXPIRED:
        trace_at(endpoint, EXPIRE, message_id, message, reason)
    if message.dmq_eligible or not endpoint.terms.respect_dmq_eligible_enabled:
        queue = endpoint.vpn.queue(endpoint.terms.dead_msg_queue)
        if queue is not None and queue is not endpoint and queue.name not in sources(message.block):
            copy = message.copy()
            copy.expires_ns = 0
            # It arrives anew: the queue's own life time begins now.
            copy.ingress_ns = 0
            copy.block = addressed(message.block, reason, endpoint.name)
            if not endpoint.spool.place(queue, copy, even_down=True):
                counters.to_dmq[reason] = counters.to_dmq.get(reason, 0) + 1
                endpoint.forget(message_id, size_of(message), MOVED)
                if traced:
                    trace_at(endpoint, DEAD_LETTER, message_id, message, reason)
                return
            counters.to_dmq_failed[reason] = counters.to_dmq_failed.get(reason, 0) + 1
    endpoint.forget(message_id, size_of(message), DISCARDED, reason)
    trace_lost_at(endpoint, DISCARD, message_id, message, reason)
