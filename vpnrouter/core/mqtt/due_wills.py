"""Publishes the wills of a message VPN whose receivers have selectors that are much work, which are evaluated first.

They wait here by client username, which take turns, and one of them is evaluated at a time: it holds up nobody, and a
client that comes back neither cancels nor doubles it. Its bytes count for the client username as before. A stored will
stays in the store until the unit that has the message, so that a crash meanwhile loses nothing.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, cast, final

from vpnrouter.core.conversion import MEASURE
from vpnrouter.core.discard_reasons import TOPIC_PARSE_ERROR
from vpnrouter.core.fault_barrier import TASK
from vpnrouter.core.guaranteed.spool import spool_of
from vpnrouter.core.mqtt.qos_receiver import NoCallback
from vpnrouter.core.selection import Evaluation, at_hand, heavy, used
from vpnrouter.core.timers import Job
from vpnrouter.errors import TopicError
from vpnrouter.spool import keys

if TYPE_CHECKING:
    from vpnrouter.core.message import Message
    from vpnrouter.core.route import Route
    from vpnrouter.core.vpn import MessageVpn


@final
class DueWill:
    """A will of `client_name` that is due; its bytes count for the client username `owner`."""

    __slots__ = ("client_name", "message", "owner")

    def __init__(self, message: Message, client_name: str, owner: str) -> None:
        self.message = message
        self.client_name = client_name
        self.owner = owner


@final
class DueWills(Job):
    """The wills of `vpn` that wait for their turn."""

    __slots__ = ("_current", "_evaluation", "_stored", "_vpn", "_waiting")

    def __init__(self, vpn: MessageVpn) -> None:
        super().__init__()
        self._vpn = vpn
        self._waiting: dict[str, deque[DueWill]] = {}
        self._current: DueWill | None = None
        self._evaluation: Evaluation | None = None
        # Those that the store has, by client.
        self._stored: dict[str, DueWill] = {}

    def add(self, will: DueWill, *, stored: bool) -> None:
        """Publish a will soon; `stored` says that the store has it."""
        self._vpn.wills.add(will.owner, will.message.size)
        if stored:
            self._stored[will.client_name] = will
        waiting = self._waiting.get(will.owner)
        if waiting is None:
            waiting = deque()
            self._waiting[will.owner] = waiting
        waiting.append(will)
        self._vpn.context.jobs.add(self)

    def replaced(self, client_name: str) -> None:
        """Note that the store has another will of the client now."""
        self._stored.pop(client_name, None)

    def step(self) -> bool:
        """Evaluate and publish until this turn has done enough."""
        context = self._vpn.context
        while not context.turn_spent:
            will = self._current or self._next()
            if will is None:
                return True
            self._current = will
            try:
                if not self._evaluated(will):
                    return False
                self._publish(will)
            except Exception as error:  # noqa: BLE001 - given to the barrier; the others follow
                context.barrier.of(None, error, TASK)
            self._over(will)
        return False

    def _next(self) -> DueWill | None:
        """Take the oldest will of the client username whose turn it is."""
        for owner, waiting in self._waiting.items():
            will = waiting.popleft()
            del self._waiting[owner]
            if waiting:
                self._waiting[owner] = waiting
            return will
        return None

    def _evaluated(self, will: DueWill) -> bool:
        evaluation = self._evaluation
        if evaluation is None:
            try:
                route = self._vpn.route(will.message.topic)
            except TopicError:
                # Told when it is published.
                return True
            evaluation = Evaluation(self._vpn.context, route, will.message)
            self._evaluation = evaluation
        return evaluation.go_on()

    def _publish(self, will: DueWill) -> None:
        vpn = self._vpn
        if self._stored.get(will.client_name) is will:
            forget_stored(vpn, will.client_name)
        if self._evaluation is not None:
            at_hand(will.message, self._evaluation.answers)
        try:
            publish(vpn, will.message)
        except TopicError:
            # A limit of the message VPN was lowered meanwhile.
            vpn.discard(will.message, TOPIC_PARSE_ERROR)
        finally:
            used(will.message)

    def _over(self, will: DueWill) -> None:
        self._current = None
        self._evaluation = None
        if self._stored.get(will.client_name) is will:
            del self._stored[will.client_name]
        self._vpn.wills.add(will.owner, -will.message.size)


def publish(vpn: MessageVpn, message: Message) -> None:
    """Publish the message of a will. Raises TopicError for a bad topic."""
    spool = spool_of(vpn.context)
    if message.qos and spool is not None:
        message.persistent = True
        spool.publish(vpn, message, NoCallback(), 0)
    else:
        vpn.publish(message)


def publish_or_wait(vpn: MessageVpn, route: Route, will: DueWill, *, stored: bool) -> None:
    """Publish a will at once, or when its selectors have been evaluated; `stored` says that the store has it.

    The unit that has the message also deletes the stored will. Raises TopicError for a bad topic.
    """
    message = will.message
    context = vpn.context
    # Many may be due in one turn.
    if route.selector_cost and (context.turn_spent or heavy(route, message)):
        due_wills(vpn).add(will, stored=stored)
        return
    if stored:
        forget_stored(vpn, will.client_name)
    publish(vpn, message)
    if route.selector_cost:
        context.work += MEASURE.work()


def due_wills(vpn: MessageVpn) -> DueWills:
    """The wills of a message VPN that wait, made when they are needed first."""
    if vpn.due_wills is None:
        vpn.due_wills = DueWills(vpn)
    return cast(DueWills, vpn.due_wills)


def forget_stored(vpn: MessageVpn, client_name: str) -> None:
    """Delete the stored will of a client: the same unit publishes it, or it will never be published."""
    spool = spool_of(vpn.context)
    if spool is not None:
        spool.ledger.delete(keys.will(vpn.name, client_name))
