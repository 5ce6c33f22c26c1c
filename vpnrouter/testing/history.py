"""What producers and consumers saw of guaranteed messages, in the order in which they saw it.

A history is an append-only list of events. Producers tell of a publish, of sending it again, and of its
answer; consumers of deliveries, of their acknowledgements, and of those that they know to be safe.
`history_check.check` judges it. Several threads may write: appending is atomic, and an event stands in the
list before the call that made it returns.

    history = History()
    history.published("a-1", producer="a", sequence=1, topic="orders/1", targets=("orders",))
    history.acknowledged("a-1")
    history.delivered("a-1", endpoint="orders", qos=1)
    history.consumed("a-1", endpoint="orders")
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import final


class Kind(Enum):
    """What an event tells."""

    PUBLISHED = "published"
    """The producer sends the message for the first time. Without an answer its fate is unknown."""
    RESENT = "resent"
    """Sent once more at least once (QoS 1): the router may hold a copy for each time."""
    REPEATED = "repeated"
    """Sent once more exactly once (QoS 2): that makes no copy."""
    ACKNOWLEDGED = "acknowledged"
    REJECTED = "rejected"
    DELIVERED = "delivered"
    CONSUMED = "consumed"
    """The consumer acknowledged a delivery; whether the router has stored that is unknown."""
    SETTLED = "settled"
    """An acknowledgement of the consumer that is known to be stored: it holds over a crash."""
    NOTED = "noted"
    """What happened around: a kill, a cut, a restart."""


@final
@dataclass(frozen=True, slots=True)
class Event:
    """One line of a history. What does not belong to a kind is empty.

    `party` is the producer or the endpoint; `sequence` counts the messages of one producer; `targets` are
    the endpoints that a message is to reach; `redelivered` and `qos` are those of a delivery.
    """

    kind: Kind
    message: str
    party: str = ""
    sequence: int = 0
    topic: str = ""
    targets: tuple[str, ...] = ()
    redelivered: bool = False
    qos: int = 1
    note: str = ""

    def __str__(self) -> str:
        if self.kind is Kind.NOTED:
            return f"-- {self.note}"
        words = [self.kind.value, self.message]
        if self.kind is Kind.PUBLISHED:
            words += [f"by {self.party} to {self.topic} for {', '.join(self.targets) or 'nobody'}"]
        elif self.party:
            words += [f"at {self.party}"]
        if self.kind is Kind.DELIVERED:
            words += [f"QoS {self.qos}"]
        if self.redelivered:
            words += ["redelivered"]
        if self.note:
            words += [f"({self.note})"]
        return " ".join(words)


@final
class History:
    """Events in order. Ids of messages are unique in a history; `sequence` rises for each producer."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def published(
        self, message: str, *, producer: str, sequence: int, topic: str, targets: tuple[str, ...]
    ) -> None:
        """A producer is about to send a message that is to reach these endpoints, all or none."""
        event = Event(Kind.PUBLISHED, message, producer, sequence, topic, targets)
        self.events.append(event)

    def resent(self, message: str) -> None:
        """The same again, after no answer, by a producer that sends at least once."""
        self.events.append(Event(Kind.RESENT, message))

    def repeated(self, message: str) -> None:
        """The same again, after no answer, by a producer that sends exactly once."""
        self.events.append(Event(Kind.REPEATED, message))

    def acknowledged(self, message: str) -> None:
        """The router answered that it has the message."""
        self.events.append(Event(Kind.ACKNOWLEDGED, message))

    def rejected(self, message: str, reason: str = "") -> None:
        """The router answered that it does not take the message."""
        self.events.append(Event(Kind.REJECTED, message, note=reason))

    def delivered(
        self, message: str, *, endpoint: str, redelivered: bool = False, qos: int = 1
    ) -> None:
        """A consumer got the message. At QoS 2 a repeated packet of one delivery is told once."""
        event = Event(Kind.DELIVERED, message, endpoint, redelivered=redelivered, qos=qos)
        self.events.append(event)

    def consumed(self, message: str, *, endpoint: str) -> None:
        """The consumer has sent its acknowledgement of a delivery."""
        self.events.append(Event(Kind.CONSUMED, message, endpoint))

    def settled(self, message: str, *, endpoint: str) -> None:
        """The consumer knows that an acknowledgement which it sent is stored."""
        self.events.append(Event(Kind.SETTLED, message, endpoint))

    def noted(self, note: str) -> None:
        """Something happened that helps to read the history."""
        self.events.append(Event(Kind.NOTED, "", note=note))

    def of(self, message: str) -> list[Event]:
        """The events of one message and all notes, in order."""
        return [each for each in tuple(self.events) if each.message in {message, ""}]
