"""Shared subscriptions: each message goes to one member of the group, in turn (MQTT 5, 4.8.2)."""

from __future__ import annotations

from typing import final

from vpnrouter.core.subscriber import Subscriber, Subscription


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

    def choose(self, source: Subscriber | None) -> Subscription | None:
        """Whose turn it is, or None when nobody can take it.

        A member that has no room is passed over, so that one slow member costs the group nothing; a
        link's client never gets back what it brought.
        """
        count = len(self.members)
        full: Subscription | None = None
        for step in range(count):
            index = (self._turn + step) % count
            member = self.members[index]
            subscriber = member.subscriber
            if not subscriber.connected or (subscriber.is_link and subscriber is source):
                continue
            if subscriber.outbox.size >= subscriber.outbox.limit:
                full = full or member
                continue
            self._turn = index + 1
            return member
        # Where all are full, one of them counts the loss.
        return full
