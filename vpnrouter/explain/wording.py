"""The router's reasons in words."""

from typing import Final

from vpnrouter.core import losses
from vpnrouter.core.guaranteed import reasons
from vpnrouter.core.guaranteed.spool import PROMOTION_CONGESTION
from vpnrouter.core.guaranteed.traces import CONSUMER

WORDS: Final[dict[str, str]] = {
    losses.NO_SUBSCRIPTION_MATCH: "nobody subscribes to it",
    reasons.NO_SUBSCRIPTION_MATCH: "nobody subscribes to it",
    losses.TOPIC_PARSE_ERROR: "its topic is not allowed there",
    losses.MSG_TOO_BIG: "it is too big",
    losses.TTL_EXCEEDED: "it has crossed too many bridges",
    losses.PUBLISH_TOPIC_ACL: "the publisher may not publish to this topic",
    reasons.ACL_DENIED: "the publisher may not publish to this topic",
    reasons.PERMISSION_DENIED: "the publisher may not do that",
    losses.SUBSCRIBE_TOPIC_ACL: "its receiver may not have this topic any more",
    losses.TRANSMIT_CONGESTION: "the receiver was too slow and its outbox full",
    losses.CLIENT_NOT_CONNECTED: "who subscribes is not connected",
    losses.NO_LOCAL_DELIVERY: "it came over this link",
    losses.NOT_SUBSCRIBED: "the bridge did not ask for its topic",
    losses.LOOP_DETECTED: "it has been there",
    losses.DUPLICATE: "another copy came before, over another way",
    losses.RETURNED: "the link was lost before it was taken; it comes again",
    losses.REFUSED: "it was refused and is given up, for the dead message queue of the remote",
    losses.FAULT: "a fault of the router, which was contained, cut it off",
    losses.UNACCOUNTED: "the router was killed, and nobody knows where it went",
    CONSUMER: "its consumer does not take it, now or ever",
    PROMOTION_CONGESTION: "the spool has no room for it",
    "max-msg-spool-usage-exceeded": "no room: the megabytes that may wait are used up",
    reasons.SPOOL_OVER_QUOTA: "no room: the megabytes that may wait are used up",
    "max-msg-usage-exceeded": "no room: as many messages wait as may",
    reasons.MAX_MESSAGE_USAGE: "no room: as many messages wait as may",
    "low-priority-msg-congestion": "its priority is low and many messages wait",
    reasons.LOW_PRIORITY: "its priority is low and many messages wait",
    "destination-group-error": "the endpoint takes nothing: ingress is off",
    reasons.QUEUE_SHUTDOWN: "the queue takes nothing: ingress is off",
    reasons.TOPIC_ENDPOINT_SHUTDOWN: "the topic endpoint takes nothing: ingress is off",
    reasons.ENDPOINT_SHUTDOWN: "the endpoint takes nothing: ingress is off",
    "queue-not-found": "the topic names a queue that is not there",
    reasons.QUEUE_NOT_FOUND: "the topic names a queue that is not there",
    "max-msg-size-exceeded": "it is too big",
    reasons.TOO_LARGE: "it is too big",
    "spool-to-disk-fail": "the spool cannot be written",
    reasons.SERVICE_UNAVAILABLE: "the spool cannot be written",
    reasons.TOO_MANY_INGRESS_FLOWS: "too many connections publish guaranteed messages there",
}
"""Reason of a trace row or of an answer → what it means for the message."""


def in_words(reason: str) -> str:
    """What a reason means, with the router's own name of it."""
    words = WORDS.get(reason)
    return f"{words} ({reason})" if words else reason


def counted(number: int, what: str) -> str:
    """`1 queue`, `2 queues`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
