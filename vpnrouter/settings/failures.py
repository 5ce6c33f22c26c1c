"""What becomes of messages that a bridge or a link of a connector cannot deliver: one group for both."""

from __future__ import annotations

from typing import Literal

from vpnrouter import limits
from vpnrouter.settings import names
from vpnrouter.settings.schema import LONGEST, Settings, attribute

Then = Literal["dead-letter", "park", "skip", "stop"]
Expired = Literal["deliver", "discard", "dead-letter"]


class DeadMsgQueue(Settings, held=False):
    """Where dead letters go: exactly one of queue, topic and address."""

    queue: str | None = attribute(None, text=names.QUEUE)
    """A queue of this message VPN."""

    topic: str | None = attribute(None, examples=("errors/bridge",))
    """A topic of this message VPN, on which the message is published. A queue has to take it: subscribers alone do
    not keep it."""

    address: str | None = attribute(None)
    """Of a link: an address at its provider. The message waits for that in the queue #connector/CONNECTOR/LINK/dead/N,
    and may come twice."""

    attempts: int = attribute(3, least=1, most=1000)
    """How often it is tried before the next entry of the list."""

    interval: int = attribute(5000, least=10, most=3_600_000)
    """Milliseconds between two attempts."""

    ttl: int = attribute(0, least=0, most=LONGEST)
    """Seconds that the dead letter lives; 0 leaves it the life time that the message has, and none where that is
    over."""

    def check(self) -> None:
        """Raise ValueError where it is no place, or several."""
        if (self.queue, self.topic, self.address).count(None) != 2:
            raise ValueError("a dead message queue has exactly one of queue, topic and address")


class Failures(Settings):
    """What becomes of messages that cannot be delivered. A link and a bridge derive from it."""

    dead_msg_queues: tuple[DeadMsgQueue, ...] = attribute(
        (), items=DeadMsgQueue, longest=limits.DEAD_MSG_QUEUES, held=None, ours=True
    )
    """Where messages go that are given up: each entry is tried in turn, until one takes the message. If none does, an
    event names it, it stays, and the list is tried again. Without a list the dead message queue of the message's own
    queue takes it."""

    expired: Expired = attribute("deliver", ours=True)
    """What happens to a guaranteed message whose life time is over when it is to cross. deliver: it crosses, unless its
    queue respects life times; discard: it is discarded and counted; dead-letter: it is given up."""

    reject_attempts: int = attribute(3, least=0, most=1_000_000, ours=True)
    """How often a message may be refused before `then` is done with it; 0 is without end."""

    then: Then = attribute("dead-letter", ours=True)
    """What is done with a message that was refused so often. dead-letter: it is given up; park: it is set aside; skip:
    it is discarded and counted; stop: it stays, and nothing comes behind it."""
