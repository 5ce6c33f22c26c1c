"""Links over which a client is sent messages: from a queue or a subscription, a look at a queue, or Direct messages."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64
from typing_extensions import override

from vpnrouter import limits
from vpnrouter.core.amqp.delivery_tags import DeliveryTags
from vpnrouter.core.amqp.errors import condition_of
from vpnrouter.core.amqp.link import Link
from vpnrouter.core.amqp.outcomes import is_outcome, outcome_of
from vpnrouter.core.amqp.sections import header_of, traced_content
from vpnrouter.core.amqp.serials import SERIAL
from vpnrouter.core.discard_reasons import (
    CLIENT_NOT_CONNECTED,
    MSG_TOO_BIG,
    NO_LOCAL_DELIVERY,
    SUBSCRIBE_TOPIC_ACL,
)
from vpnrouter.core.guaranteed.endpoint_settings import CONSUME, READ_ONLY
from vpnrouter.core.guaranteed.flow import ACCEPTED, REJECTED, SELECTED, Flow
from vpnrouter.core.guaranteed.priority_browse import PriorityBrowse
from vpnrouter.core.selection import counted_match
from vpnrouter.core.subscriber import FRAME_OWN, Subscriber
from vpnrouter.core.timers import Job
from vpnrouter.core.tracing import trace_kept_lost
from vpnrouter.trace.events import DELIVER, DISCARD, REDELIVER
from vpnrouter.wire.amqp import performatives
from vpnrouter.wire.amqp.conditions import STOLEN
from vpnrouter.wire.amqp.frames import encode
from vpnrouter.wire.amqp.transfers import (
    UNSETTLED_HEAD_BYTES,
    OutgoingTransfer,
    TransferHead,
    cut_transfer,
    handle_bytes,
)
from vpnrouter.wire.amqp.types import DESCRIBED

if TYPE_CHECKING:
    from vpnrouter.core.amqp.client import AmqpClient
    from vpnrouter.core.amqp.session import AmqpSession
    from vpnrouter.core.amqp.subscriptions import AmqpSubscription
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.guaranteed.endpoint import Endpoint, EndpointMessage
    from vpnrouter.core.memory_account import MemoryAccount
    from vpnrouter.core.message import Message
    from vpnrouter.core.subscriber import Subscription
    from vpnrouter.selectors import Selector
    from vpnrouter.wire.amqp.transfers import Burst
    from vpnrouter.wire.amqp.types import MapWalk

BROWSED: Final = 64
"""Messages that a browser is sent in one go."""

SEND_WORK: Final = 3
"""What a message costs that a link sends outside of a burst, in parts of a turn (TurnContext.work)."""

DRAIN: Final = 1
"""Token: the client wants the rest of its credit used up."""

ANNOUNCE: Final = 2
"""Token: the client is to be told that its durable subscription is there."""


@final
class SendingLink(Link):
    """One link over which the client is sent messages. `credit` is how many more it takes, `count` how many it got.

    `consumer` consumes from an endpoint, `subscriber` takes Direct messages; one of them is there, or `looked_up`, a
    durable subscription that the client wants to see or to end. `presettled`: what is sent counts as accepted.
    `outcome` is what becomes of a message for the client's default. `drain`: it wants its credit used up. `attached`:
    the client knows of it; `announce` is what it is told when that is synced. `head` is what its frames begin with.
    `enlisted`: the client has settled deliveries in transactions. `most` bounds the messages that it takes; 0 does not.
    """

    __slots__ = (
        "_taken_up",
        "_waits_for_drain",
        "announce",
        "attached",
        "consumer",
        "count",
        "credit",
        "drain",
        "enlisted",
        "head",
        "looked_up",
        "most",
        "outcome",
        "presettled",
        "subscriber",
    )

    def __init__(
        self,
        session: AmqpSession,
        client: AmqpClient,
        name: str,
        handle: int,
        *,
        presettled: bool,
        outcome: object = None,
    ) -> None:
        super().__init__(session, client, name, handle)
        self.presettled = presettled
        # Not the state itself, which may be large.
        self.outcome = outcome_of(outcome)
        self.consumer: AmqpFlow | None = None
        self.subscriber: TopicSubscriber | None = None
        self.count = 0
        self.credit = 0
        self.most = 0
        self.drain = False
        self.enlisted = False
        self.attached = False
        self.announce: performatives.Attach | None = None
        self.looked_up: AmqpSubscription | None = None
        self._waits_for_drain = False
        # Deliveries of an earlier link that the client has settled: their tags, and what it said of them.
        self._taken_up: list[tuple[bytes, object]] = []
        self.head = TransferHead(session.channel, handle)

    # -- credit ----------------------------------------------------------------------------------

    def flow(self, packet: performatives.Flow) -> None:
        """Take the client's credit (2.6.7)."""
        if packet.link_credit is not None:
            base = 0 if packet.delivery_count is None else packet.delivery_count
            left = (base + packet.link_credit - self.count) & SERIAL
            # What is on its way to the client may be more than it takes now.
            self.credit = 0 if left > packet.link_credit else left
        self.drain = packet.drain
        if packet.echo and not self.drain:
            self._tell()
        self.wake()

    def _tell(self) -> None:
        state = self.session.flow()
        self.session.say(
            state._replace(
                handle=self.handle,
                delivery_count=self.count,
                link_credit=self.credit,
                available=0,
                drain=self.drain,
            )
        )

    def wake(self) -> None:
        """Deliver what there is, and use up the rest of the credit where the client wants that."""
        if self.detached or not self.attached:
            return
        if self.consumer is not None:
            self.consumer.wake()
        elif self.subscriber is not None:
            self.subscriber.send_waiting()
        if self.drain and not self._waits_for_drain and not self.session.connection.waits(self):
            self._drain()

    def _drain(self) -> None:
        """Answer a drain when all that is there has been sent, or all credit is used."""
        flow = self.consumer
        if flow is not None and not flow.browsing and self.credit:
            endpoint = flow.endpoint
            spool = endpoint.spool
            flow.withheld = False
            endpoint.dispatch()
            if self.credit and (
                flow.withheld or endpoint in spool.later or endpoint.mark_requested > endpoint.mark
            ):
                # Messages wait for the store, or have not all been looked at.
                self._waits_for_drain = True
                spool.when_synced(self, DRAIN)
                return
        if self.session.backlog:
            # The rest goes first, when the client widens its window.
            return
        self.count = (self.count + self.credit) & SERIAL
        self.credit = 0
        self._tell()
        self.drain = False

    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        """Go on: the store has done what it was asked for."""
        if token == ANNOUNCE:
            if self.announce is not None and not self.detached:
                self.session.say(self.announce)
                self.announce = None
                job = TellResumed(self, self._taken_up)
                self._taken_up = []
                if not job.step():
                    self.client.vpn.context.jobs.add(job)
            return
        self._waits_for_drain = False
        if not self.detached and self.drain and not self.session.connection.closing:
            self.wake()

    # -- messages --------------------------------------------------------------------------------

    def outgoing(
        self, message: Message, count: int, number: int, message_id: int = 0
    ) -> bytes | OutgoingTransfer:
        """Return a message to be sent, delivered `count` times before, as the delivery `number`: a frame if it fits.

        `message_id` is the spool's id of a message that the client has to settle.
        """
        header = header_of(message, count, self.client.vpn)
        content = self._content(message, count)
        session = self.session
        most = session.connection.max_frame
        flow = self.consumer
        settled = self.presettled or flow is None
        if UNSETTLED_HEAD_BYTES + len(header) + len(content) <= most:
            proof: i64 = 0
            if not settled and flow is not None:
                proof = flow.tags.proof(message_id)
            return self.head.whole(number, settled, header, content, message_id, proof)
        handle = handle_bytes(self.handle)
        tag = b"" if settled or flow is None else flow.tags.tag(message_id)
        return cut_transfer(session.channel, handle, number, settled, header, content, most, tag)

    def takes(self, message: Message, count: int) -> bool:
        """Return whether a message is no larger than the client takes (2.7.3)."""
        if not self.most:
            return True
        header = header_of(message, count, self.client.vpn)
        return len(header) + len(self._content(message, count)) <= self.most

    def _content(self, message: Message, count: int) -> bytes:
        if not message.traced:
            return message.amqp()
        client = self.client
        flow = self.consumer
        where = "" if flow is None else flow.endpoint.name
        return traced_content(message, count, client.vpn, client.client_name, where)

    def spend(self) -> None:
        """Count a message that is being sent."""
        self.count = (self.count + 1) & SERIAL
        self.credit -= 1
        self.session.connection.outbox.messages += 1

    def settle(self, message_id: int, state: object) -> None:
        """The client has settled a delivery, with this outcome or its default one."""
        self.settle_as(message_id, self.outcome_of(state))

    def outcome_of(self, state: object) -> int:
        """Return what becomes of a message for an outcome of AMQP; the client's default one for none."""
        return self.outcome if state is None else outcome_of(state)

    def settle_as(self, message_id: int, outcome: int) -> None:
        """Settle a delivery with what becomes of the message."""
        flow = self.consumer
        if flow is not None:
            flow.settle(message_id, outcome)

    # -- deliveries of an earlier link -----------------------------------------------------------

    def compare(self, tag: bytes, walk: MapWalk) -> bytes:
        """Settle a delivery of an earlier link for which the client knows an outcome (2.6.13).

        Others are delivered anew.
        """
        flow = self.consumer
        data = walk.data
        if flow is None or flow.browsing or data[walk.value] != DESCRIBED:
            return b""
        number = flow.tags.message_of(tag)
        if number < 0:
            return b""
        state, _ = performatives.read(data, walk.value, walk.end)
        if not is_outcome(state) or not flow.take_up(number, outcome_of(state)):
            return b""
        self._taken_up.append((tag, state))
        return data[walk.value : walk.end]

    def compared(self, answer: performatives.Attach) -> None:
        """Answer when the spool has noted what the client has settled."""
        self.answer(answer, synced=not self._taken_up)

    def answer(self, answer: performatives.Attach, *, synced: bool) -> None:
        """Tell the client that the link is attached; what is not `synced` has to be in the spool before."""
        spool = self.client.spool
        if synced or spool is None:
            self.session.say(answer)
            self.attached = True
        else:
            self.announce = answer
            spool.when_synced(self, ANNOUNCE)

    def tell_resumed(self, tag: bytes, state: object) -> None:
        """Tell the client that a delivery is settled: the spool has noted its outcome."""
        session = self.session
        number = session.take_id()
        self.count = (self.count + 1) & SERIAL
        told = performatives.Transfer(self.handle, number, tag, 0, True, state=state, resume=True)
        session.transmit(encode(told, session.channel))

    def resumed(self) -> None:
        """Deliver from now on: the client knows of all that it has taken up."""
        if not self.detached:
            self.attached = True
            self.wake()

    # -- rights and end --------------------------------------------------------------------------

    def judge(self) -> None:
        """Apply changed rights of the client."""
        vpn = self.client.vpn
        if self.subscriber is not None:
            self.subscriber.judge()
            vpn.forget_routes(self.subscriber)
        flow = self.consumer
        if flow is not None and flow.browsing:
            flow.browse()
        elif flow is not None:
            flow.endpoint.unbind_forbidden()

    def renamed(self, client_name: str) -> None:
        """Take the new name of the client."""
        if self.consumer is not None:
            self.consumer.client_name = client_name
        if self.subscriber is not None:
            self.subscriber.client_name = client_name

    def let_go(self, *, closed: bool) -> None:
        """Give back what was not settled; end the subscription where that is the link's, or is `closed`."""
        self.detached = True
        client = self.client
        flow = self.consumer
        subscriber = self.subscriber
        if subscriber is not None:
            self.subscriber = None
            client.subscriber_count -= 1
            subscriber.end()
        if flow is not None:
            connection = self.session.connection
            if self.enlisted and not connection.closing:
                connection.transactions.outlast(self, flow)
            self.consumer = None
            client.egress_flows -= 1
            flow.end(closed=closed)
        found = self.looked_up
        if found is not None:
            self.looked_up = None
            found.left(self, closed=closed)
        self.end_temporary()

    def stolen(self) -> None:
        """Another link of the same container takes the subscription (2.6.1), perhaps from one that is over already."""
        if self.detached:
            self.let_go(closed=False)
        else:
            self.detach(STOLEN, "another connection of the container attached the link")


FORGOTTEN: Final = 8
"""Deliveries that are forgotten in a part of a turn (TurnContext.work)."""

RESUMED_WORK: Final = 15
"""What it costs to tell a client that a delivery is settled."""


@final
class TellResumed(Job):
    """Tells a client that deliveries are settled which it has taken up, and lets the link deliver others then."""

    __slots__ = ("_at", "_link", "_states")

    def __init__(self, link: SendingLink, states: list[tuple[bytes, object]]) -> None:
        super().__init__()
        self._link = link
        self._states = states
        self._at = 0

    def step(self) -> bool:
        """Tell of deliveries until this turn has done enough."""
        link = self._link
        context = link.client.vpn.context
        while self._at < len(self._states) and not link.detached:
            if context.turn_spent:
                return False
            context.work += RESUMED_WORK
            tag, state = self._states[self._at]
            self._at += 1
            link.tell_resumed(tag, state)
        link.resumed()
        return True

    def owning_connection(self) -> Connection | None:
        """The client's connection."""
        return self._link.session.connection


@final
class AmqpFlow(Flow):
    """The consumer that a link is. `browsing` only looks.

    `numbers` are the ids of its deliveries that are not settled, by the spool's ids, and `tags` their tags. `withheld`:
    a message was discarded in the place of one to be sent.
    """

    __slots__ = (
        "_by_priority",
        "_looked_at",
        "browsing",
        "link",
        "numbers",
        "subscription",
        "tags",
        "withheld",
    )

    def __init__(
        self,
        link: SendingLink,
        endpoint: Endpoint,
        selector: Selector | None = None,
        *,
        browsing: bool = False,
        subscription: AmqpSubscription | None = None,
    ) -> None:
        window = endpoint.settings.max_delivered_unacked_msgs_per_flow
        super().__init__(endpoint, link.client.client_name, window, selector)
        self.link = link
        self.browsing = browsing
        self.subscription = subscription
        self.numbers: dict[int, int] = {}
        client = link.client
        self.tags = DeliveryTags(endpoint.spool.ledger.secret, client.username, endpoint.number)
        self.withheld = False
        # Of a browser: the last message that it has seen, and how far it is where the endpoint respects priorities.
        self._looked_at = 0
        self._by_priority: PriorityBrowse | None = None

    def owning_connection(self) -> Connection | None:
        """The client's connection."""
        return self.link.session.connection

    def room(self) -> int:
        """Return how many messages the client takes now: its credit, unless its window or its outbox is full."""
        link = self.link
        session = link.session
        connection = session.connection
        if link.detached or not link.attached or connection.faulty or connection.closing:
            return 0
        if session.backlog or not session.window:
            return 0
        outbox = connection.outbox
        if outbox.size * 2 > outbox.limit or not self.has_budget(connection, outbox):
            connection.drain_later()
            return 0
        return min(link.credit, self.window - len(self.unacked), session.window)

    def goes_on(self) -> bool:
        """Return whether it can be sent another message, after other links of its connection have been sent some."""
        connection = self.link.session.connection
        if self.budget > 0 and self.may_send(connection, connection.outbox):
            return True
        self.look_again()
        return False

    def look_again(self) -> None:
        """Have the links of the connection woken after a moment."""
        self.link.session.connection.drain_later()

    def send(self, message_id: int, message: Message, count: int) -> None:
        """Send one message, which is in `unacked` already; discard it where the client may not have it any more."""
        link = self.link
        if count < 0 and message_id <= self.endpoint.marked:
            # Perhaps sent before a restart. Clients take `delivery-count` alone for that (3.2.1); no bound counts it.
            count = 1
        if self.subscription is not None and not link.client.may_have(message.topic):
            # It came into the endpoint while the client was still allowed to have it.
            self._withhold(message_id, message, SUBSCRIBE_TOPIC_ACL, ACCEPTED)
            return
        if not link.takes(message, count):
            # As over MQTT (5, 3.1.2.11.4).
            kept = self.subscription is None
            self._withhold(message_id, message, MSG_TOO_BIG, REJECTED if kept else ACCEPTED)
            return
        session = link.session
        endpoint = self.endpoint
        number = session.take_id()
        outgoing = link.outgoing(message, count, number, message_id)
        if not link.presettled:
            session.unsettled[number] = (link, message_id)
            self.numbers[message_id] = number
        link.spend()
        if not session.transmit(outgoing):
            self.budget = 0
        fault = endpoint.spool.fault
        if fault is not None:
            fault("deliver-before-flush")
        if message.traced:
            event = REDELIVER if count else DELIVER
            endpoint.trace(event, message_id, message, "", self.client_name)
        if link.presettled:
            self.settle(message_id, ACCEPTED)

    def _withhold(self, message_id: int, message: Message, reason: str, outcome: int) -> None:
        """Discard a message that the client cannot be sent, or reject it to its queue; a browser passes it over."""
        self.withheld = True
        if not self.browsing:
            vpn = self.endpoint.vpn
            vpn.discards.add(reason)
            trace_kept_lost(vpn, DISCARD, message, self.endpoint.name, reason, self.client_name)
        self.settle(message_id, outcome)

    def settle(self, message_id: int, outcome: int) -> None:
        """Settle a message that the client has, or count it as looked at."""
        self.numbers.pop(message_id, None)
        if self.browsing:
            self.settles(message_id)
            self.link.session.connection.drain_later()
        else:
            self.endpoint.settle(self, message_id, outcome)

    def take_up(self, message_id: int, outcome: int) -> bool:
        """Settle a message that an earlier flow had; False where it does not wait here for this one."""
        endpoint = self.endpoint
        if not self.active and endpoint.settings.exclusive:
            return False
        endpoint.reclaim(message_id)
        if not endpoint.waits(message_id):
            return False
        message = endpoint.readable(message_id)
        if message is None or not endpoint.take_out(message_id):
            return False
        self.delivers(message_id, message)
        return endpoint.settle(self, message_id, outcome)

    def wake(self) -> None:
        """Deliver what there is: a browser at once, a consumer at the end of the round."""
        if self.browsing:
            self.browse()
        else:
            self.endpoint.wake()

    def browse(self) -> None:
        """Send the messages that were not looked at yet, without taking them; look again later."""
        endpoint = self.endpoint
        selector = self.selector
        if not self._may(READ_ONLY):
            self.unbound("403 Permission Denied")
            return
        context = endpoint.vpn.context
        most = BROWSED if selector is None else SELECTED
        while (left := min(self.room(), most)) > 0 and not endpoint.deleted:
            if context.turn_spent:
                self.link.session.connection.wake_later([self.link])
                return
            rows = self._look(left)
            if not rows:
                break
            for row in rows:
                if self.budget <= 0:
                    break
                if context.work > context.allowance:
                    self.link.session.connection.wake_later([self.link])
                    return
                context.work += SEND_WORK
                self._looked_at = row.msg_id
                if self._by_priority is not None:
                    self._by_priority.passed(row)
                    if row.msg_id in self.unacked:
                        # It was seen, and came back to the queue with a delay.
                        continue
                if counted_match(selector, row.message, context) and not endpoint.is_over(
                    row.message
                ):
                    self.delivers(row.msg_id, row.message)
                    self.delivered += 1
                    self.send(row.msg_id, row.message, row.redelivery_count)
        if self.link.credit:
            self.link.session.connection.drain_later()

    def _look(self, count: int) -> list[EndpointMessage]:
        """Return messages that a browser has not seen, in the order in which a consumer would get them."""
        endpoint = self.endpoint
        by_priority = self._by_priority
        if not endpoint.settings.respect_msg_priority_enabled:
            if by_priority is not None:
                self._looked_at = by_priority.last()
                self._by_priority = None
            return endpoint.browse(self._looked_at, count, limits.BROWSED_BYTES)
        if by_priority is None:
            by_priority = self._by_priority = PriorityBrowse(endpoint, self._looked_at)
        return by_priority.rows(count, limits.BROWSED_BYTES)

    def permitted(self) -> bool:
        """Return whether the client may consume from the endpoint, a queue or one of its own subscriptions."""
        return self._may(CONSUME)

    def _may(self, needed: int) -> bool:
        admission = self.link.session.connection.admission
        if admission is None:
            return True
        if not admission.profile.allow_guaranteed_msg_receive_enabled:
            return False
        if self.subscription is not None:
            return self.subscription.permits(self.link.client)
        return admission.username.permission_on(self.endpoint.settings) >= needed

    def gives_way(self) -> bool:
        """End the flow of a link that is over, and still holds what it had."""
        link = self.link
        if not link.detached:
            return False
        link.let_go(closed=False)
        return True

    def letting_go(self) -> None:
        """Forget its deliveries: what the client says of them from now on comes too late."""
        self.endpoint.vpn.context.work += len(self.numbers) // FORGOTTEN
        if self.browsing:
            self.return_selector()
            self.forget_all()
        unsettled = self.link.session.unsettled
        for number in self.numbers.values():
            unsettled.pop(number, None)
        self.numbers.clear()

    def unbound(self, reason: str) -> None:
        """The endpoint has unbound the flow: the link ends."""
        self.link.detach(condition_of(reason), reason)

    def end(self, *, closed: bool) -> None:
        """Unbind the flow; its subscription may end with it.

        A consumer that is lost may be what is wrong with a message: that counts as a redelivery (JMS 2.0, 3.5.9).
        """
        if self.browsing:
            self.letting_go()
        else:
            self.endpoint.unbind(self, counts=self.link.broken)
        if self.subscription is not None:
            self.subscription.left(self.link, closed=closed)


@final
class TopicSubscriber(Subscriber):
    """A subscription for Direct messages: what is sent counts as delivered.

    What comes without credit or window waits here, on all links of a connection as many bytes as an outbox may hold,
    and is discarded beyond that.
    """

    __slots__ = ("_waiting", "link", "no_local")

    def __init__(self, link: SendingLink, *, no_local: bool) -> None:
        client = link.client
        outbox = link.session.connection.outbox
        super().__init__(client.client_name, outbox, FRAME_OWN, rule=client.rule)
        self.link = link
        self.no_local = no_local
        # Made when the first message has to wait: most never do.
        self._waiting: deque[Message] | None = None

    def owning_connection(self) -> Connection | None:
        """The client's connection."""
        return self.link.session.connection

    @override
    def memory(self) -> MemoryAccount | None:
        return self.link.client.connection.account

    def deliver(self, message: Message, subscriptions: list[Subscription]) -> None:
        """Send one message, or have it wait for credit."""
        link = self.link
        vpn = link.client.vpn
        if self.no_local and message.local_name == link.client.local_name:
            vpn.discard(message, NO_LOCAL_DELIVERY, self)
            return
        waiting = self._waiting
        if not waiting and self._has_room():
            self._send(message)
            return
        if link.detached:
            vpn.discard(message, CLIENT_NOT_CONNECTED, self)
            return
        outbox = self.outbox
        # The message is shared, but who knows how long the others have it.
        size = message.size + limits.SPOOL_BODY_COST
        if outbox.parked + size > outbox.high:
            outbox.crowd()
        connection = link.client.connection
        if outbox.parked + size > outbox.limit or connection.crowded() or not connection.take(size):
            outbox.discarded += 1
            if message.traced:
                vpn.trace_outcome(self, message, 0)
            return
        outbox.parked += size
        if waiting is None:
            waiting = deque()
            self._waiting = waiting
        waiting.append(message)

    def take(self, burst: Burst, buf: bytes, count: int) -> int:
        """Send the first messages of a burst, as many as there is room for; how many those are."""
        link = self.link
        session = link.session
        if self._waiting or session.backlog or link.most:
            return 0
        count = min(count, link.credit, session.window)
        if count <= 0:
            return 0
        frames = burst.frames(
            buf, count, link.head, session.deliveries & SERIAL, session.connection.max_frame
        )
        outbox = self.outbox
        if not frames or outbox.size + len(frames) > outbox.limit:
            return 0
        outbox.offer(frames, count)
        link.count = (link.count + count) & SERIAL
        link.credit -= count
        session.sent(count)
        return count

    def _has_room(self) -> bool:
        link = self.link
        session = link.session
        return link.credit > 0 and session.window > 0 and not session.backlog

    def _send(self, message: Message) -> None:
        link = self.link
        session = link.session
        outbox = self.outbox
        if not link.takes(message, 0):
            link.client.vpn.discard(message, MSG_TOO_BIG, self)
            return
        outgoing = link.outgoing(message, 0, session.deliveries & SERIAL)
        size = len(outgoing) if isinstance(outgoing, bytes) else outgoing.size
        taken = 0
        if outbox.size + size > outbox.high:
            outbox.crowd()
        if outbox.size + size <= outbox.limit:
            session.deliveries += 1
            link.spend()
            session.transmit(outgoing)
            taken = 1
        else:
            outbox.discarded += 1
        if message.traced:
            link.client.vpn.trace_outcome(self, message, taken)

    def judge(self) -> None:
        """Apply the client's changed rule, also to what waits."""
        client = self.link.client
        self.rule = client.rule
        waiting = self._waiting
        if not waiting:
            return
        kept: deque[Message] = deque()
        for message in waiting:
            if client.may_have(message.topic):
                kept.append(message)
            else:
                self._unpark(message.size + limits.SPOOL_BODY_COST)
                client.vpn.discard(message, SUBSCRIBE_TOPIC_ACL, self)
        self._waiting = kept

    def _unpark(self, size: int) -> None:
        """Count so much less of what waits."""
        self.outbox.parked -= size
        self.link.client.connection.give_back(size)

    def send_waiting(self) -> None:
        """Send what waits, as far as the client's credit goes."""
        waiting = self._waiting
        link = self.link
        context = link.client.vpn.context
        now_ns = context.now_ns
        while waiting and self._has_room():
            if context.turn_spent:
                link.session.connection.wake_later([link])
                return
            context.work += SEND_WORK
            message = waiting.popleft()
            self._unpark(message.size + limits.SPOOL_BODY_COST)
            if not message.expires_ns or message.expires_ns > now_ns:
                self._send(message)

    def end(self) -> None:
        """Leave the message VPN; what waits is lost with the link."""
        vpn = self.link.client.vpn
        vpn.forget(self)
        waiting = self._waiting
        self._waiting = None
        if waiting:
            vpn.discards.add(CLIENT_NOT_CONNECTED, len(waiting))
            vpn.context.work += len(waiting) >> 4
            size = sum([message.size for message in waiting])
            self._unpark(size + len(waiting) * limits.SPOOL_BODY_COST)
