"""Sends retained messages for new subscriptions (MQTT 5, 3.3.1.3), in slices, as fast as the client reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.core.guaranteed.sizes import size_of
from vpnrouter.core.jobs import Job
from vpnrouter.core.keep_retained import forget_expired

if TYPE_CHECKING:
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.message import Message
    from vpnrouter.core.mqtt.session import MqttSession
    from vpnrouter.core.subscriber import Subscription
    from vpnrouter.topics.index import Walk

LATER_NS: Final = 100_000_000
"""Time after which a client that had no room is looked at again."""

STEPS: Final = 64
"""Topics that are matched before the work of this turn is checked again."""

MESSAGE_WORK: Final = 5
"""What one retained message costs without its bytes, in parts of a turn (Plane.work)."""

FRAME_BYTES: Final = 64
"""Bytes of a PUBLISH without topic, payload and properties, at most."""


def send_retained(session: MqttSession, subscriptions: list[Subscription]) -> None:
    """Send `session` what is retained under its new subscriptions."""
    retained = session.vpn.retained
    if not subscriptions or not len(retained):
        return
    feed = session.feed
    if feed is None:
        feed = RetainedFeed(session)
        session.feed = feed
    for subscription in subscriptions:
        feed.want(subscription)
    if not feed.step():
        session.vpn.plane.jobs.add(feed)


@final
class RetainedFeed(Job):
    """The retained messages that one session still has to be sent, filter by filter, each filter once.

    The session has it until everything is sent. A message published with QoS 1 or 2 goes through the session's
    endpoint, others are Direct. A client without room gets the rest when it has room; one that is away gets the
    rest of what its endpoint keeps when it is back.
    """

    __slots__ = ("_found", "_session", "_since", "_subscription", "_waits", "_walk", "_wanted")

    def __init__(self, session: MqttSession) -> None:
        super().__init__()
        self._session = session
        # Filter as written → subscription, and `Retained.last` when it was made.
        self._wanted: dict[str, tuple[Subscription, int]] = {}
        self._subscription: Subscription | None = None
        self._since = 0
        self._walk: Walk | None = None
        self._found: list[bytes] = []
        self._waits = False
        session.vpn.retained.watch()

    def want(self, subscription: Subscription) -> None:
        """Send what matches one more subscription."""
        key = subscription.key
        current = self._subscription
        if current is not None and current.key == key:
            self._next()
        self._wanted.pop(key, None)
        self._wanted[key] = (subscription, self._session.vpn.retained.last)

    def step(self) -> bool:
        """Send retained messages until the plane is tired, or the client has no room."""
        session = self._session
        plane = session.vpn.plane
        while not plane.tired:
            if session.gone:
                self._end()
                return True
            if self._waits or not session.connected:
                # The timer, or the client when it is back, adds the job again.
                return True
            subscription = self._subscription
            if (
                subscription is not None
                and session.subscriptions.get(subscription.key) is not subscription
            ):
                self._next()
            if self._found:
                if self._send(self._found[-1]):
                    self._found.pop()
                else:
                    self._wait()
                continue
            walk = self._walk
            if walk is not None and not walk.done:
                steps = walk.steps
                self._found = walk.go_on(STEPS)
                plane.work += (walk.steps - steps) >> 2
                continue
            if not self._begin():
                self._end()
                return True
            if session.vpn.retained.expired:
                forget_expired(session.vpn)
        return False

    def go_on(self) -> None:
        """Go on: the client is back, has ended, or may have room."""
        self._waits = False
        self._session.vpn.plane.jobs.add(self)

    def on_timer(self, kind: int, now_ns: int) -> None:
        """Look again whether the client has room."""
        self.go_on()

    def party(self) -> Connection | None:
        """The client's connection, None while it is away."""
        return self._session.connection

    def _begin(self) -> bool:
        """Go on with the next subscription that still exists; False when there is none."""
        self._next()
        session = self._session
        while self._wanted:
            key = next(iter(self._wanted))
            subscription, since = self._wanted.pop(key)
            if session.subscriptions.get(key) is not subscription:
                continue
            self._subscription = subscription
            self._since = since
            filter_ = subscription.filter
            if filter_.literal:
                self._found = [filter_.text.encode()]
            else:
                self._walk = session.vpn.retained.walk(filter_)
            return True
        return False

    def _next(self) -> None:
        self._subscription = None
        self._walk = None
        self._found = []

    def _end(self) -> None:
        if self._session.vpn.retained.expired:
            forget_expired(self._session.vpn)
        if self._session.feed is self:
            self._session.feed = None
            self._session.vpn.retained.unwatch()

    def _wait(self) -> None:
        self._waits = True
        plane = self._session.vpn.plane
        plane.timers.arm(plane.now_ns + LATER_NS, self, 0)

    def _send(self, topic: bytes) -> bool:
        """Send what is retained on one topic, if anything; False where the client has no room yet."""
        session = self._session
        subscription = self._subscription
        vpn = session.vpn
        plane = vpn.plane
        message = vpn.retained.message(topic, self._since, plane.now_ns)
        if message is None or subscription is None:
            plane.work += 1
            return True
        if subscription.no_local and message.source_name == session.client_name:
            return True
        if session.rule is not None and not session.rule.allows_topic(topic.decode()):
            plane.work += 1
            return True
        spool = plane.spool
        endpoint = session.endpoint
        plane.work += MESSAGE_WORK + len(message.payload) // 1024
        if message.qos and subscription.qos and spool is not None and endpoint is not None:
            if not self._may_place(endpoint, message):
                return False
            copy = message.copy()
            copy.retain = True
            copy.snapshot = True
            spool.place(endpoint, copy)
            return True
        outbox = session.outbox
        size = len(message.payload) + len(topic) + len(message.block) + FRAME_BYTES
        if outbox.size and outbox.size + size > outbox.limit // 2:
            return False
        identifiers = [subscription.identifier] if subscription.identifier else []
        session.send(message, True, identifiers)
        return True

    def _may_place(self, endpoint: Endpoint, message: Message) -> bool:
        """True when one more message has room, and little waits for the client to take it."""
        spool = endpoint.spool
        size = size_of(message)
        if endpoint.spooled_count == 0:
            # A message without room in an empty endpoint will never have any: it is discarded, and counted.
            return True
        return (
            endpoint.spooled_count < limits.RETAINED_AHEAD
            and endpoint.spooled_bytes + size <= self._session.outbox.limit
            and spool.ledger.pending_bytes <= limits.PROMOTION_BYTES
            and not spool.down
            and not spool.obstacle(endpoint.vpn, size)
            and not endpoint.obstacle(message, size)
        )
