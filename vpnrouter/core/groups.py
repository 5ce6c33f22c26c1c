"""Shared subscriptions: each message goes to one member of the group, in turn (MQTT 5, 4.8.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter.core.subscriber import Subscriber, Subscription

if TYPE_CHECKING:
    from vpnrouter.core.message import Message


@final
class ShareGroup:
    """Members of one share name and filter. Round robin; members without a connection are passed over."""

    __slots__ = ("_turn", "members", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.members: list[Subscription] = []
        self._turn = 0

    def add(self, member: Subscription) -> None:
        """Join; a second subscription of the same subscriber replaces its first."""
        self.remove(member.subscriber)
        self.members.append(member)

    def remove(self, subscriber: Subscriber) -> None:
        """Leave; nothing happens when not a member."""
        self.members = [member for member in self.members if member.subscriber is not subscriber]

    @property
    def has_link(self) -> bool:
        """True when the client of a link is among the members."""
        links = [member for member in self.members if member.subscriber.is_link]
        return bool(links)

    def choose(self, message: Message, excluded: set[Subscriber]) -> Subscription | None:
        """Whose turn it is, or None when nobody can take it.

        A member that has no room is passed over, so that one slow member costs the group nothing. So
        is one whose selector does not match, one of `excluded`, and a link's client when the message
        came over it or has been where it leads.
        """
        count = len(self.members)
        full: Subscription | None = None
        for step in range(count):
            index = (self._turn + step) % count
            member = self.members[index]
            subscriber = member.subscriber
            if not subscriber.connected or not _may_take(member, message, excluded):
                continue
            if subscriber.outbox.size >= subscriber.outbox.limit:
                full = full or member
                continue
            self._turn = index + 1
            return member
        # Where all are full, one of them counts the loss.
        return full

    @property
    def durable(self) -> bool:
        """True when the group takes guaranteed messages as such: a member has QoS 1 or 2."""
        keeping = [member for member in self.members if member.qos]
        return bool(keeping)

    def choose_durable(self, message: Message, excluded: set[Subscriber]) -> Subscription | None:
        """The member whose endpoint is to keep a guaranteed message: a connected one if there is one."""
        count = len(self.members)
        away: Subscription | None = None
        for step in range(count):
            index = (self._turn + step) % count
            member = self.members[index]
            if not member.qos or not _may_take(member, message, excluded):
                continue
            if member.subscriber.connected:
                self._turn = index + 1
                return member
            away = away or member
        return away

    def misses(self, message: Message, excluded: set[Subscriber]) -> bool:
        """True when a member would take `message` if it were connected."""
        away = [member for member in self.members if not member.subscriber.connected]
        wanting = [member for member in away if _may_take(member, message, excluded)]
        return bool(wanting)


def _may_take(member: Subscription, message: Message, excluded: set[Subscriber]) -> bool:
    subscriber = member.subscriber
    if subscriber.gone:
        return False
    if subscriber.is_link and (subscriber is message.source or subscriber.vpn_id in message.path):
        return False
    if excluded and subscriber in excluded:
        return False
    selector = member.selector
    return selector is None or selector.matches(message.properties())
