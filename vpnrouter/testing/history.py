"""Records what producers and consumers saw of guaranteed messages, and finds every broken promise.

A history is an append-only list of events. Producers tell of a publish, of sending it again, and of its
answer; consumers of deliveries, of their acknowledgements, and of those that they know to be safe.
`check` judges it. Several threads may write: appending is atomic, and an event stands in the
list before the call that made it returns.

    history = History()
    history.published("a-1", producer="a", sequence=1, topic="orders/1", targets=("orders",))
    history.acknowledged("a-1")
    history.delivered("a-1", endpoint="orders", qos=1)
    history.consumed("a-1", endpoint="orders")

What a router promised and did not keep:

    LOSS          acknowledged to the producer, never delivered by the end
    DUPLICATE     delivered more often than it was sent, without the redelivered flag; at QoS 2 at all
    REORDER       first deliveries at one endpoint not in the order in which one producer sent them
    RESURRECTION  delivered after the consumer's acknowledgement was stored, or although it was rejected
    PARTIAL       at some of its endpoints and not at others, of a publish that was rejected or not answered
    INVENTION     delivered and never published, or at an endpoint that it was not for
    BALANCE       what an endpoint holds at the end is not what it was given less what it gave away

A producer that sends at least once may leave one copy for each time it sent: so many deliveries may come
without the flag. The rules are COMMIT, ALLORNONE and BALANCE of docs/testing-faults.md.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class HistoryEventKind(Enum):
    """Types of events in a history."""

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
class HistoryEvent:
    """One line of a history. What does not belong to a kind is empty.

    `party` is the producer or the endpoint; `sequence` counts the messages of one producer; `targets` are
    the endpoints that a message is to reach; `redelivered` and `qos` are those of a delivery.
    """

    kind: HistoryEventKind
    message: str
    party: str = ""
    sequence: int = 0
    topic: str = ""
    targets: tuple[str, ...] = ()
    redelivered: bool = False
    qos: int = 1
    note: str = ""

    def __str__(self) -> str:
        if self.kind is HistoryEventKind.NOTED:
            return f"-- {self.note}"
        words = [self.kind.value, self.message]
        if self.kind is HistoryEventKind.PUBLISHED:
            words += [f"by {self.party} to {self.topic} for {', '.join(self.targets) or 'nobody'}"]
        elif self.party:
            words += [f"at {self.party}"]
        if self.kind is HistoryEventKind.DELIVERED:
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
        self.events: list[HistoryEvent] = []

    def published(
        self, message: str, *, producer: str, sequence: int, topic: str, targets: tuple[str, ...]
    ) -> None:
        """A producer is about to send a message that is to reach these endpoints, all or none."""
        event = HistoryEvent(
            HistoryEventKind.PUBLISHED, message, producer, sequence, topic, targets
        )
        self.events.append(event)

    def resent(self, message: str) -> None:
        """A producer with QoS 1 sends a message again, since no answer was received."""
        self.events.append(HistoryEvent(HistoryEventKind.RESENT, message))

    def repeated(self, message: str) -> None:
        """A producer with QoS 2 sends a message again, since no answer was received."""
        self.events.append(HistoryEvent(HistoryEventKind.REPEATED, message))

    def acknowledged(self, message: str) -> None:
        """The router answered that it has the message."""
        self.events.append(HistoryEvent(HistoryEventKind.ACKNOWLEDGED, message))

    def rejected(self, message: str, reason: str = "") -> None:
        """The router answered that it does not take the message."""
        self.events.append(HistoryEvent(HistoryEventKind.REJECTED, message, note=reason))

    def delivered(
        self, message: str, *, endpoint: str, redelivered: bool = False, qos: int = 1
    ) -> None:
        """A consumer received the message. At QoS 2 a repeated packet of one delivery is recorded once."""
        event = HistoryEvent(
            HistoryEventKind.DELIVERED, message, endpoint, redelivered=redelivered, qos=qos
        )
        self.events.append(event)

    def consumed(self, message: str, *, endpoint: str) -> None:
        """The consumer has sent its acknowledgement of a delivery."""
        self.events.append(HistoryEvent(HistoryEventKind.CONSUMED, message, endpoint))

    def settled(self, message: str, *, endpoint: str) -> None:
        """The consumer knows that an acknowledgement which it sent is stored."""
        self.events.append(HistoryEvent(HistoryEventKind.SETTLED, message, endpoint))

    def noted(self, note: str) -> None:
        """Something happened that helps to read the history."""
        self.events.append(HistoryEvent(HistoryEventKind.NOTED, "", note=note))

    def of(self, message: str) -> list[HistoryEvent]:
        """The events of one message and all notes, in order."""
        return [each for each in tuple(self.events) if each.message in {message, ""}]


MOST_SHOWN: Final = 10
"""Number of findings whose events `describe` shows."""


class FaultKind(Enum):
    """What is wrong."""

    LOSS = "loss"
    DUPLICATE = "duplicate"
    REORDER = "reorder"
    RESURRECTION = "resurrection"
    PARTIAL = "partial"
    INVENTION = "invention"
    BALANCE = "balance"


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """One broken promise. `message` is "" where an endpoint as a whole is meant."""

    fault: FaultKind
    message: str
    endpoint: str
    text: str

    def __str__(self) -> str:
        return f"{self.fault.value} of {self.message or 'messages'} at {self.endpoint}: {self.text}"


@final
class _Message:
    """What is known of one published message."""

    def __init__(self, event: HistoryEvent) -> None:
        self.event = event
        self.copies = 1
        self.sent_again = False
        self.acknowledged = False
        self.rejected = False
        self.delivered: Counter[str] = Counter()
        self.fresh: Counter[str] = Counter()
        self.consumed: Counter[str] = Counter()
        self.settled: Counter[str] = Counter()

    @property
    def surely_rejected(self) -> bool:
        """Rejected, and no earlier attempt can have left a copy."""
        return self.rejected and not self.acknowledged and self.copies == 1


def check(
    history: History,
    *,
    unordered: frozenset[str] = frozenset(),
    refusing: bool = False,
    waiting: Mapping[str, int] | None = None,
) -> list[Finding]:
    """Everything wrong with a history, in the order in which it shows.

    `unordered` are endpoints whose consumers take turns: no order is promised over them. `refusing` says that
    the router had reasons to reject: a producer may then have been rejected without hearing it, so that what
    it sent again may come late. `waiting` says how many messages are left at an endpoint at the end; without
    it all endpoints must be empty.

    Raises ValueError when the history itself makes no sense: an id published twice, an answer to nothing.
    """
    left = waiting or {}
    checking = _Checking(unordered, refusing=refusing)
    for event in tuple(history.events):
        checking.take(event)
    checking.findings += checking.losses(left)
    checking.findings += checking.partial(left)
    checking.findings += checking.unbalanced(left)
    return checking.findings


@final
class _Checking:
    def __init__(self, unordered: frozenset[str], *, refusing: bool) -> None:
        self.findings: list[Finding] = []
        self._refusing = refusing
        self._unordered = unordered
        self._messages: dict[str, _Message] = {}
        self._latest: dict[tuple[str, str], tuple[int, str]] = {}
        """By producer and endpoint the highest sequence delivered so far, and its message."""

    def take(self, event: HistoryEvent) -> None:
        """Take the next event. Raises ValueError when it cannot follow those before it."""
        kind = event.kind
        if kind is HistoryEventKind.NOTED:
            return
        if kind is HistoryEventKind.PUBLISHED:
            if event.message in self._messages:
                raise ValueError(f"{event.message} is published twice")
            self._messages[event.message] = _Message(event)
            return
        message = self._messages.get(event.message)
        if kind is HistoryEventKind.DELIVERED:
            self._delivered(event, message)
            return
        if message is None:
            if kind in {HistoryEventKind.CONSUMED, HistoryEventKind.SETTLED}:
                return  # of an invention, which is found already
            raise ValueError(f"{event}: it was never published")
        if kind in {HistoryEventKind.RESENT, HistoryEventKind.REPEATED}:
            message.copies += kind is HistoryEventKind.RESENT
            message.sent_again = True
        elif kind is HistoryEventKind.ACKNOWLEDGED:
            message.acknowledged = True
        elif kind is HistoryEventKind.REJECTED:
            message.rejected = True
        elif kind is HistoryEventKind.CONSUMED:
            message.consumed[event.party] += 1
        elif kind is HistoryEventKind.SETTLED:
            message.settled[event.party] += 1

    def _delivered(self, event: HistoryEvent, message: _Message | None) -> None:
        endpoint = event.party
        if message is None:
            self._find(FaultKind.INVENTION, event, "it was never published")
            return
        if endpoint not in message.event.targets:
            self._find(FaultKind.INVENTION, event, "it was not for this endpoint")
            return
        before = message.delivered[endpoint]
        message.delivered[endpoint] += 1
        message.fresh[endpoint] += not event.redelivered
        if not event.redelivered and message.fresh[endpoint] > message.copies:
            self._find(
                FaultKind.DUPLICATE,
                event,
                f"sent {message.copies} times, delivery {message.fresh[endpoint]} without the flag",
            )
        elif message.settled[endpoint] >= message.copies:
            self._find(FaultKind.RESURRECTION, event, "its acknowledgement was stored before")
        elif event.qos == 2 and before >= message.copies:
            self._find(FaultKind.DUPLICATE, event, f"delivery {before + 1} at QoS 2")
        if not before and endpoint not in self._unordered:
            self._in_order(event, message)

    def _in_order(self, event: HistoryEvent, message: _Message) -> None:
        sequence = message.event.sequence
        key = (message.event.party, event.party)
        latest, name = self._latest.get(key, (sequence - 1, ""))
        if sequence > latest:
            self._latest[key] = (sequence, event.message)
        elif not (message.sent_again and self._refusing):
            self._find(FaultKind.REORDER, event, f"first delivered after {name}")

    def _find(self, fault: FaultKind, event: HistoryEvent, text: str) -> None:
        self.findings.append(Finding(fault, event.message, event.party, text))

    # -- at the end ------------------------------------------------------------------------------

    def losses(self, left: Mapping[str, int]) -> Iterator[Finding]:
        """Acknowledged and not delivered, at endpoints where nothing waits."""
        for name, message in self._messages.items():
            if not message.acknowledged:
                continue
            for endpoint in message.event.targets:
                if not message.delivered[endpoint] and not left.get(endpoint):
                    yield Finding(FaultKind.LOSS, name, endpoint, "acknowledged, never delivered")

    def partial(self, left: Mapping[str, int]) -> Iterator[Finding]:
        """Not acknowledged, and yet delivered."""
        for name, message in self._messages.items():
            if message.acknowledged or not message.delivered.total():
                continue
            targets = message.event.targets
            here = [each for each in targets if message.delivered[each]]
            away = [each for each in targets if not message.delivered[each] and not left.get(each)]
            if away:
                said = "rejected" if message.rejected else "not answered"
                text = f"{said}, delivered at {', '.join(here)}"
                yield Finding(FaultKind.PARTIAL, name, ", ".join(away), text)
            elif message.surely_rejected:
                text = "delivered although it was rejected"
                yield Finding(FaultKind.RESURRECTION, name, ", ".join(here), text)

    def unbalanced(self, left: Mapping[str, int]) -> Iterator[Finding]:
        """Endpoints that hold more than was sent and not settled, or less than is still due."""
        for endpoint, waiting in left.items():
            due = room = 0
            for message in self._messages.values():
                if endpoint not in message.event.targets:
                    continue
                due += message.acknowledged and not message.consumed[endpoint]
                if not message.surely_rejected:
                    room += max(0, message.copies - message.settled[endpoint])
            if not due <= waiting <= room:
                text = f"{waiting} wait, between {due} and {room} may"
                yield Finding(FaultKind.BALANCE, "", endpoint, text)


def describe(findings: list[Finding], history: History) -> str:
    """The findings, and of the first ones all that happened to their messages: for a test that fails."""
    lines = [f"{len(findings)} findings"]
    for index, finding in enumerate(findings):
        lines.append(str(finding))
        if index < MOST_SHOWN and finding.message:
            lines += [f"    {event}" for event in _story(history.of(finding.message))]
    return "\n".join(lines)


def _story(events: list[HistoryEvent]) -> Iterator[HistoryEvent]:
    """Of several notes in a row the last one: the others are far from what happened."""
    for event, following in pairwise([*events, None]):
        if event is not None and not (
            event.kind is HistoryEventKind.NOTED
            and following is not None
            and following.kind is HistoryEventKind.NOTED
        ):
            yield event
