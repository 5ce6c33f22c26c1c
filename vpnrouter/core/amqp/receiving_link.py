"""Links over which a client sends messages: credit, messages in parts, and what becomes of each (AMQP 1.0, 2.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast, final

from mypy_extensions import i64
from typing_extensions import override

from vpnrouter import limits
from vpnrouter.core.access import covered
from vpnrouter.core.amqp.errors import condition_of, error
from vpnrouter.core.amqp.incoming_message import message_of, trace_parent_of
from vpnrouter.core.amqp.link import Link
from vpnrouter.core.amqp.sending_link import TopicSubscriber
from vpnrouter.core.amqp.termini import says_kind
from vpnrouter.core.conversion import (
    MEASURE,
    MessageHead,
    read_head,
    topic_of_address,
)
from vpnrouter.core.discard_reasons import NO_LOCAL_DELIVERY, TOPIC_PARSE_ERROR
from vpnrouter.core.forward import trace
from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.end_to_end import EndToEndAnswers
from vpnrouter.core.guaranteed.endpoint import endpoint_named
from vpnrouter.core.guaranteed.endpoint_settings import QUEUE
from vpnrouter.core.guaranteed.queue_senders import QueueSender
from vpnrouter.core.guaranteed.unit_of_work import DEMOTED, REJECTED, SPOOLED, UNMATCHED
from vpnrouter.core.message import AMQP, DELIVER_TO_ONE, Message
from vpnrouter.core.route import Route
from vpnrouter.core.selection import Selection, heavy, must_wait
from vpnrouter.core.tracing import trace_kept_lost
from vpnrouter.errors import ProtocolError, TopicError
from vpnrouter.topics.grammar import QUEUE_PREFIX
from vpnrouter.trace.events import DISCARD, REJECT
from vpnrouter.wire.amqp import conditions
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Disposition,
    Flow,
    Rejected,
    TransactionalState,
    Transfer,
    write,
)
from vpnrouter.wire.amqp.transfers import Burst

if TYPE_CHECKING:
    from vpnrouter.core.amqp.client import AmqpClient
    from vpnrouter.core.amqp.session import AmqpSession
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.known_deliveries import KnownDeliveries
    from vpnrouter.core.publisher import Publisher
    from vpnrouter.core.unsettled_deliveries import LinkKey, UnsettledDeliveries
    from vpnrouter.wire.amqp.performatives import Attach
    from vpnrouter.wire.amqp.types import MapWalk

_QUEUE: Final = QUEUE_PREFIX.encode()
_DELIVER_TO_ONE: Final = DELIVER_TO_ONE.encode()

SECOND: Final = 1
"""Mode of a receiver that settles after the sender has (2.8.3)."""

NULL_STATE: Final = b"\x40"
ACCEPTED_STATE: Final = write(Accepted())
"""States as they are written: none yet, and accepted."""

TAG_COST: Final = 400
"""Bytes that a delivery takes that the client has not settled, with its tag."""

BAD_TOPIC: Final = "400 Topic Parse Error"


def rejected(reason: str) -> Rejected:
    """Return the outcome of a message that was refused."""
    condition = conditions.INVALID_FIELD if reason == BAD_TOPIC else condition_of(reason)
    return Rejected(error(condition, reason))


TXN_ID_BYTES: Final = 32
"""Bytes of the id of a transaction that are looked at; ours are shorter."""


class Delivery:
    """A delivery of which parts have come: its id, the bytes so far, and what the first frame said."""

    __slots__ = ("data", "number", "resumes", "settled", "state", "tag")

    def __init__(self, packet: Transfer) -> None:
        self.number = packet.delivery_id or 0
        self.tag = packet.delivery_tag or b""
        self.resumes = packet.resume
        self.settled = packet.settled is True
        # Nothing else of it matters, and it may be large.
        state = packet.state
        self.state: object = None
        if isinstance(state, TransactionalState):
            self.state = TransactionalState(state.txn_id[:TXN_ID_BYTES])
        # One piece: a list of parts of one byte each would be many times as large as what came.
        self.data = bytearray()


@final
class ReceivingLink(Link):
    """One link over which the client sends. `topic` is what it publishes to, b"" where each message says it itself.

    `controls`: its target is the coordinator of transactions. `credit` is how many messages more it may send, and
    `count` how many it has sent (2.6.7). `open` counts messages that the spool has not answered. `unsettled` has the
    deliveries that a client which settles second has not settled; None for others, who settle with our answer. It is
    kept for `lasts_s` seconds after the link, -1 for ever. `known` are deliveries that are not taken twice, None where
    the client does not ask for that. `route` and `receivers` are for bursts. `vague`: its target does not say whether
    it is a topic.
    """

    __slots__ = (
        "_delivery",
        "_end_to_end",
        "_kept",
        "_key",
        "_marks",
        "_tag_bytes",
        "_tags",
        "_to_queue",
        "_uses_known",
        "controls",
        "count",
        "credit",
        "flows",
        "known",
        "lasts_s",
        "most",
        "open",
        "receivers",
        "route",
        "topic",
        "unsettled",
        "vague",
    )

    def __init__(
        self,
        session: AmqpSession,
        client: AmqpClient,
        name: str,
        handle: int,
        topic: bytes,
        *,
        count: int,
        unsettled: UnsettledDeliveries | None = None,
        controls: bool = False,
    ) -> None:
        super().__init__(session, client, name, handle)
        self.topic = topic
        self.controls = controls
        self.vague = False
        self.count = count
        self.credit = 0
        self.open = 0
        self.flows = False
        self.most = client.vpn.limits.max_msg_size + limits.PROPERTY_BYTES
        self.unsettled = unsettled
        self.lasts_s = 0
        # What the message VPN knows the link by: another connection may attach it again.
        self._key: LinkKey = (client.username, client.container, name)
        self.known: KnownDeliveries | None = None
        self._uses_known = False
        # The tags of deliveries that are to be known, and are in no unit yet.
        self._marks: dict[int, bytes] = {}
        # Tags that the client still knows, while it attaches the link again.
        self._kept: set[bytes] = set()
        # By id of the delivery, of those that are not settled.
        self._tags: dict[int, bytes] = {}
        self._tag_bytes = 0
        bridge = client.profile.end_to_end_bridge
        spool = client.spool
        self._end_to_end = (
            None if spool is None or not bridge else EndToEndAnswers(spool, bridge, self)
        )
        self._delivery: Delivery | None = None
        self._to_queue = _sender_to_queue(self)
        # What `forward` knows of the route that it saw last.
        self.route: Route | None = None
        self.receivers: list[TopicSubscriber] | None = None

    def know_again(self) -> None:
        """Know deliveries again from now on, if there is a place for that. Others answer for messages of bridges."""
        spool = self.client.spool
        if spool is not None and self.unsettled is None and self._end_to_end is None:
            links = self.client.vpn.known_links
            self.known = links.attach(spool.ledger, spool.number, self._key)
            self._uses_known = self.known is not None

    def take_mark(self, number: int) -> bytes:
        """Return the tag by which a delivery is to be known, b"" for none: it is about to be taken, or refused."""
        return self._marks.pop(number, b"") if self._marks else b""

    def compare(self, tag: bytes, walk: MapWalk) -> bytes:
        """Return the state of a delivery that came before, as it is written; b"" for one that nobody knows."""
        unsettled = self.unsettled
        if unsettled is None or tag not in unsettled.outcomes:
            return b""
        self._kept.add(tag)
        known = unsettled.outcomes[tag]
        if known is None:
            return NULL_STATE
        return ACCEPTED_STATE if not known[1] else write(rejected(known[1]))

    def compared(self, answer: Attach) -> None:
        """Forget all deliveries that the client knows no more of, and answer."""
        if self.unsettled is not None:
            self.unsettled.keep_only(self._kept)
        self._kept = set()
        self.session.say(answer)
        self.grant()

    # -- credit ----------------------------------------------------------------------------------

    def flow(self, packet: Flow) -> None:
        """The sender may have advanced its count, which uses credit up; it may want to know of ours."""
        if packet.delivery_count is not None:
            self.credit = max(0, self.credit - ((packet.delivery_count - self.count) & 0xFFFF_FFFF))
            self.count = packet.delivery_count
        if packet.echo or self.credit <= limits.AMQP_CREDIT // 2:
            self.grant()

    def grant(self) -> None:
        """Let the client send as many messages again as a link may."""
        self.credit = limits.AMQP_CREDIT
        state = self.session.flow()
        self.session.say(
            state._replace(
                handle=self.handle, delivery_count=self.count, link_credit=self.credit, available=0
            )
        )

    # -- messages --------------------------------------------------------------------------------

    def transfer(self, packet: Transfer, payload: bytes, length: int) -> None:
        """Take one frame of a message."""
        delivery = self._delivery
        if delivery is None:
            if packet.delivery_id is None:
                self.detach(conditions.INVALID_FIELD, "2.7.5: a delivery without an id")
                return
            delivery = Delivery(packet)
            if len(delivery.tag) > limits.AMQP_TAG_BYTES:
                text = f"2.8.7: a tag of more than {limits.AMQP_TAG_BYTES} bytes"
                self.detach(conditions.INVALID_FIELD, text)
                return
            if self.credit <= 0:
                self.detach(conditions.TRANSFER_LIMIT_EXCEEDED, "2.6.7: a message without credit")
                return
            if packet.message_format:
                # Nobody could tell the receiver of it, and the router does not know its sections.
                text = f"2.8.11: the message format is 0 here, not {packet.message_format:#x}"
                self.detach(conditions.NOT_IMPLEMENTED, text)
                return
        elif packet.delivery_id not in (None, delivery.number):
            self.detach(conditions.ILLEGAL_STATE, "2.6.14: another delivery before the end of one")
            return
        if packet.settled:
            delivery.settled = True
        publisher = self.session.connection.publisher
        if publisher is not None:
            publisher.bytes_ += length
        if packet.aborted:
            self._drop_parts()
            self._used()
            return
        if len(delivery.data) + len(payload) > self.most:
            self._drop_parts()
            self.detach(
                conditions.MESSAGE_SIZE_EXCEEDED,
                f"a message of more than {self.most:,} bytes with its properties",
            )
            return
        if packet.more:
            delivery.data += payload
            self._delivery = delivery
            self.session.connection.hold_parts(len(payload))
            return
        if self._delivery is not None:
            payload = bytes(delivery.data + payload)
            self._drop_parts()
        self._used()
        if self.known is not None and self._came_before(self.known, delivery):
            return
        if self.unsettled is None or not self._resumed(self.unsettled, delivery):
            self._take(delivery.number, payload, delivery.settled, delivery.state)
            self.client.vpn.context.work += MEASURE.work()

    def take_whole(self, number: int, payload: bytes, length: int, *, settled: bool) -> None:
        """Take a message that came in one frame of `length` bytes."""
        if self.credit <= 0:
            self.detach(conditions.TRANSFER_LIMIT_EXCEEDED, "2.6.7: a message without credit")
            return
        publisher = self.session.connection.publisher
        if publisher is not None:
            publisher.bytes_ += length
        self._used()
        self._take(number, payload, settled, None)
        self.client.vpn.context.work += MEASURE.work()

    def _resumed(self, unsettled: UnsettledDeliveries, delivery: Delivery) -> bool:
        """Note a delivery that the client will settle; return whether it is one that came before, over another link."""
        tag, number = delivery.tag, delivery.number
        if self.controls or isinstance(delivery.state, TransactionalState):
            # A transaction ends with its connection.
            return False
        known = delivery.resumes and tag in unsettled.outcomes
        if delivery.settled:
            if known:
                unsettled.settle(tag)
            return known
        if not known and len(unsettled.outcomes) >= limits.AMQP_UNSETTLED:
            text = f"a link has at most {limits.AMQP_UNSETTLED:,} deliveries that are not settled"
            self.detach(conditions.RESOURCE_LIMIT_EXCEEDED, text)
            return True
        if number not in self._tags:
            if not self.session.connection.take(TAG_COST):
                text = "the client has too many deliveries that are not settled"
                self.detach(conditions.RESOURCE_LIMIT_EXCEEDED, text)
                return True
            self._tag_bytes += TAG_COST
        self._tags[number] = tag
        self.session.await_settlement(number, self)
        if known:
            self.open += 1
            unsettled.resume(tag, self.on_outcome, number)
        else:
            unsettled.came(tag)
        return known

    def _came_before(self, known: KnownDeliveries, delivery: Delivery) -> bool:
        """Answer a delivery that was taken before, when that is synced; else note its tag."""
        state, number = delivery.state, delivery.number
        if delivery.settled:
            return False
        spool = self.client.spool
        if delivery.tag not in known or spool is None:
            self._marks[number] = delivery.tag
            return False
        if isinstance(state, TransactionalState):
            self.session.connection.transactions.leave_out(self, number, state)
        else:
            self.open += 1
            spool.when_synced(self, number)
        return True

    def settled_by_client(self, number: int) -> None:
        """Forget a delivery, which the client has settled."""
        tag = self._tags.pop(number, None)
        if tag is None:
            return
        if self._tag_bytes:
            self._tag_bytes -= TAG_COST
            self.session.connection.give_back(TAG_COST)
        if self.unsettled is not None:
            self.unsettled.settle(tag)

    @property
    def plain(self) -> bool:
        """Return whether the next frame begins a message, and its tag need not be known."""
        return self._delivery is None and self.unsettled is None and self.known is None

    def took(self, count: int) -> None:
        """Count messages as sent that were forwarded together, and ask for more where half of the credit is used."""
        self.count = (self.count + count) & 0xFFFF_FFFF
        self.credit -= count
        if self.credit <= limits.AMQP_CREDIT // 2:
            self.grant()

    def _drop_parts(self) -> None:
        delivery = self._delivery
        self._delivery = None
        if delivery is not None:
            self.session.connection.hold_parts(-len(delivery.data))

    def _used(self) -> None:
        """Count a message as sent, and ask for more where half of the credit is used."""
        self.count = (self.count + 1) & 0xFFFF_FFFF
        self.credit -= 1
        if self.credit <= limits.AMQP_CREDIT // 2:
            self.grant()

    def _take(self, number: int, payload: bytes, settled: bool, state: object) -> None:
        connection = self.session.connection
        if self.controls:
            connection.transactions.control(self, number, payload)
            return
        try:
            head = read_head(payload)
        except ProtocolError as problem:
            self.detach(problem.reason_code, str(problem))
            return
        topic = self.topic
        vague = self.vague
        if not topic:
            topic = topic_of_address(head.to).encode()
            vague = not says_kind(head.to, None)
        publisher = self.session.connection.publisher
        if publisher is None:
            return
        publisher.messages += 1
        transaction = state if isinstance(state, TransactionalState) else None
        why = BAD_TOPIC
        route: Route | None = None
        try:
            route = publisher.vpn.route(topic)
        except TopicError:
            publisher.refused += 1
            publisher.vpn.discards.add(TOPIC_PARSE_ERROR)
        if route is not None:
            if publisher.elsewhere and covered(publisher.elsewhere, route.topic):
                self._pass_over(number, topic, settled, transaction)
                return
            why = publisher.refusal(
                route, topic, 0 if settled else 1, len(head.content), self._sends()
            )
            if vague and not why:
                direct = settled and transaction is None
                why = publisher.queue_meant(topic, route, 0 if direct else 1)
        if why or route is None:
            if transaction is not None:
                connection.transactions.refused(transaction, why)
            if not settled:
                self._refuse(number, why)
            elif not self.topic and transaction is None:
                self._refuse_relay(why)
            return
        if route.missing_queue and settled and transaction is None:
            learns = publisher.may_learn(route)
            self._refuse_relay(refusals.QUEUE_NOT_FOUND if learns else refusals.PERMISSION_DENIED)
        message = self._message(publisher, route, topic, head, settled)
        if transaction is not None:
            delivery = None if settled else number
            connection.transactions.publish(self, delivery, message, transaction)
        elif (route.selector_cost and heavy(route, message)) or must_wait(publisher.vpn, message):
            SelectedTransfer(self, publisher, route, message, number, settled).begin()
        else:
            self.pass_on(message, number, settled)

    def _pass_over(
        self, number: int, topic: bytes, settled: bool, transaction: TransactionalState | None
    ) -> None:
        """Accept a message that comes by a connector as well, and count it as discarded: refused, it would come again.

        A transaction that is not there is told when it is discharged.
        """
        publisher = self.session.connection.publisher
        if publisher is None:
            return
        publisher.refused += 1
        publisher.vpn.discards.add(NO_LOCAL_DELIVERY)
        publisher.report_lost(DISCARD, topic, 0 if settled else 1, NO_LOCAL_DELIVERY)
        if settled:
            return
        if transaction is None:
            self._answer_in_order(number, SPOOLED, "")
        else:
            self.tell(number, TransactionalState(transaction.txn_id, Accepted()))

    def pass_on(self, message: Message, number: int, settled: bool) -> None:
        """Deliver a message that is in no transaction."""
        publisher = self.session.connection.publisher
        if publisher is None:
            return
        if settled:
            publisher.publish(message)
        else:
            self.publish(message, number)

    def _sends(self) -> bool:
        return self.client.sends and self.client.spool is not None

    def _message(
        self,
        publisher: Publisher,
        route: Route,
        topic: bytes,
        head: MessageHead,
        settled: bool,
    ) -> Message:
        context = publisher.vpn.context
        message = message_of(context, topic, head, self.client, settled=settled)
        parent = trace_parent_of(message) if context.honours else None
        if parent is not None and parent.sampled:
            trace(publisher, message, parent)
        else:
            sampler = publisher.sampler_for(route)
            sampler.left -= 1
            if sampler.left == 0:
                sampler.next()
                trace(publisher, message, parent)
        return message

    def publish(self, message: Message, token: int) -> None:
        """Give a guaranteed message to the spool, and count the outcome; it is told under `token`."""
        message.persistent = True
        publisher = self.session.connection.publisher
        spool = self.client.spool
        if publisher is None or spool is None:
            return
        self.open += 1
        self.session.connection.guaranteed = True
        if not self._has_flow(publisher, message, token):
            return
        if self._end_to_end is not None:
            outcome = self._end_to_end.publish(publisher.vpn, message, token)
        else:
            outcome = spool.publish(publisher.vpn, message, self, token)
            tag = self.take_mark(token)
            if tag and self.known is not None and outcome != REJECTED:
                # In one unit with the message.
                self.known.remember(tag)
        self.counted(publisher, outcome)
        if spool.ledger.pending_bytes > limits.UNIT_BYTES or self.open > limits.RECEIVE_MAXIMUM:
            self.session.connection.paused = True

    def counted(self, publisher: Publisher, outcome: int) -> None:
        """Count what became of a guaranteed message."""
        if outcome == SPOOLED:
            publisher.spooled += 1
        elif outcome == DEMOTED:
            publisher.delivered += 1
        else:
            # Refused, or nobody wanted it: counted where that is found.
            publisher.refused += 1

    def _has_flow(self, publisher: Publisher, message: Message, token: int) -> bool:
        """Count the link as an ingress flow with its first guaranteed message; beyond a bound, refuse it."""
        if self.flows:
            return True
        vpn = publisher.vpn
        most = vpn.limits.max_ingress_flow_count
        if self.client.ingress_flows < self.client.profile.max_ingress_flow_count and (
            not most or vpn.ingress_flows < most
        ):
            vpn.ingress_flows += 1
            self.client.ingress_flows += 1
            self.flows = True
            publisher.report_flow(opened=True)
            return True
        vpn.rejected += 1
        publisher.refused += 1
        trace_kept_lost(vpn, REJECT, message, "", refusals.TOO_MANY_INGRESS_FLOWS)
        self._answer(token, REJECTED, refusals.TOO_MANY_INGRESS_FLOWS)
        return False

    def _answer(self, token: int, outcome: int, why: str) -> None:
        """Answer a delivery after the answers before it."""
        spool = self.client.spool
        if self._end_to_end is not None:
            self._end_to_end.answer(token, outcome, why)
        elif spool is not None:
            spool.unit.call_when_synced(self, token, outcome, why)

    def lost(self, token: int) -> None:
        """Nothing is kept of a message whose bridge never brings it over: it is refused (`on_outcome`)."""

    # -- outcomes --------------------------------------------------------------------------------

    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        """Tell the client what the spool did with the delivery `token`."""
        self.open -= 1
        self.take_mark(token)
        connection = self.session.connection
        if outcome == UNMATCHED and not connection.closing and self._says_no_match():
            reason = refusals.NO_SUBSCRIPTION_MATCH
        if self.unsettled is not None and token in self._tags:
            self.unsettled.answered(self._tags[token], outcome, reason)
        if connection.closing:
            return
        if not self.detached and not self.session.over:
            if reason:
                self._reject(token, reason)
            else:
                self.session.accept(token, settled=self.unsettled is None)
        if connection.paused and not connection.held and self.open * 2 <= limits.RECEIVE_MAXIMUM:
            connection.resume()

    def on_delay(self, why: str) -> None:
        """End the connection with the reason: what it has not been answered is open, and it need not wait for that."""
        self.session.connection.fail(conditions.RESOURCE_LIMIT_EXCEEDED, why)

    def _says_no_match(self) -> bool:
        return self.client.profile.reject_msg_to_sender_on_no_subscription_match_enabled

    def _refuse(self, number: int, why: str) -> None:
        """Refuse a message that may not be published, after the answers before it."""
        self._answer_in_order(number, REJECTED, why)

    def _answer_in_order(self, number: int, outcome: int, why: str) -> None:
        """Answer a message of which nothing is kept, after the answers before it."""
        self.open += 1
        if self.client.spool is None:
            self.on_outcome(number, outcome, why)
        else:
            self._answer(number, outcome, why)

    def _refuse_relay(self, why: str) -> None:
        """End an anonymous relay: what was sent settled cannot be rejected (Anonymous Terminus, 2.2.2)."""
        condition = conditions.INVALID_FIELD if why == BAD_TOPIC else condition_of(why)
        self.detach(condition, why)

    def _reject(self, number: int, reason: str) -> None:
        self.tell(number, rejected(reason))

    def tell(self, number: int, state: object) -> None:
        """Settle a delivery with this state."""
        self.session.say(Disposition(True, number, number, self.unsettled is None, state))

    # -- end -------------------------------------------------------------------------------------

    def let_go(self, *, closed: bool) -> None:
        """Give back its flow and the parts of a message."""
        self.detached = True
        self._drop_parts()
        session = self.session
        incoming = session.incoming
        session.connection.context.work += len(self._tags) >> 3
        for number in self._tags:
            incoming.pop(number, None)
        session.connection.give_back(self._tag_bytes)
        self._tag_bytes = 0
        if self.unsettled is not None and self.unsettled.outcomes and not closed:
            vpn = self.client.vpn
            self.unsettled.keep(vpn.context.now_ns, self.lasts_s)
            vpn.links_away.keep(self._key, self.unsettled)
        if self.known is not None and self._uses_known:
            # A transaction that outlasts the link goes on to note what it commits.
            self._uses_known = False
            self.client.vpn.known_links.detach(self.known)
        if self._to_queue is not None:
            self._to_queue.forget()
        if self.controls and not session.connection.closing:
            session.connection.transactions.control_ended(self)
        self.end_temporary()
        if self._end_to_end is not None:
            self._end_to_end.close()
        publisher = self.client.publisher
        if self.flows and publisher is not None:
            self.flows = False
            publisher.vpn.ingress_flows -= 1
            self.client.ingress_flows -= 1
            publisher.report_flow(opened=False)


@final
class LinkToQueue(QueueSender):
    """A link to a queue by its name, which ends with the queue."""

    __slots__ = ("_endpoint", "_link")

    def __init__(self, link: ReceivingLink, endpoint: Endpoint) -> None:
        self._link = link
        self._endpoint = endpoint
        endpoint.senders[self] = None

    def removed(self, reason: str) -> None:
        """Tell the client that there is no such queue any more."""
        self._link.detach(condition_of(reason), reason)

    def forget(self) -> None:
        """The link has ended."""
        self._endpoint.senders.pop(self, None)


def _sender_to_queue(link: ReceivingLink) -> LinkToQueue | None:
    """Return what tells a link of the end of the queue that its target names, None where it names none."""
    if not link.topic.startswith(_QUEUE):
        return None
    name = link.topic[len(_QUEUE) :].decode()
    endpoint = endpoint_named(link.client.vpn, QUEUE, name)
    return None if endpoint is None else LinkToQueue(link, endpoint)


@final
class SelectedTransfer(Selection):
    """A message that waits until the selectors of its receivers have been evaluated."""

    __slots__ = ("_link", "_number", "_publisher", "_settled")

    def __init__(
        self,
        link: ReceivingLink,
        publisher: Publisher,
        route: Route,
        message: Message,
        number: int,
        settled: bool,
    ) -> None:
        connection = link.session.connection
        super().__init__(connection, publisher.vpn, route, message)
        self._link = link
        self._publisher = publisher
        self._number = number
        self._settled = settled

    @override
    def keep(self, size: int) -> None:
        self._link.session.connection.hold_parts(size)

    @override
    def deliver(self) -> None:
        link = self._link
        over = link.detached or link.session.over or link.session.connection.closing
        if not over:
            link.pass_on(self.message, self._number, self._settled)
        elif self._settled:
            # A client may end right behind it. What it was not told of, it sends again.
            self._publisher.publish(self.message)
        else:
            self._publisher.refused += 1


# -- settled transfers that are forwarded together ----------------------------------------------------

# What the scan of plain PUBLISH frames is for MQTT (forward.py): nothing that came is looked at twice, and no message
# becomes an object. What is rare is left to the link: traces, selectors, bounds, endpoints, links of bridges.

_BURST: Final = Burst()

BURST: Final = 512
DELIVERIES: Final = 4_096
"""Messages, and messages times receivers, that are forwarded together: the work of a turn is looked at behind them."""


def receivers_of(route: Route) -> list[TopicSubscriber] | None:
    """Return who takes the messages of a route, None where others do too, or something has to be looked at."""
    if (
        route.guarded
        or route.fan_out
        or route.links
        or route.groups
        or route.endpoints
        or route.sessions
        or not route.special
    ):
        return None
    found: list[TopicSubscriber] = []
    for target in route.special:
        subscriber = target.subscriber
        if not isinstance(subscriber, TopicSubscriber) or target.selective or subscriber.no_local:
            return None
        found.append(subscriber)
    return found


def forward(link: ReceivingLink, publisher: Publisher, buf: bytes, pos: i64, end: i64) -> i64:
    """Forward the plain settled transfers over `link` that begin at `pos`; return the position behind them.

    It is `pos` where the first of them needs the careful path.
    """
    vpn = publisher.vpn
    found = vpn.cache.entries.get(link.topic)
    if found is None:
        return pos
    route = cast(Route, found)
    if link.route is not route:
        link.route = route
        link.receivers = receivers_of(route)
    receivers = link.receivers
    if receivers is None or not publisher.allowed(route):
        return pos
    sampler = publisher.sampler_for(route)
    together = max(1, min(BURST, DELIVERIES // (1 + len(receivers))))
    most: i64 = min(together, link.credit, sampler.left - 1)
    session = link.session
    max_message: i64 = min(publisher.max_frame, publisher.max_size)
    burst = _BURST
    count: i64 = burst.scan(
        buf,
        pos,
        end,
        session.channel,
        link.handle,
        limits.AMQP_FRAME_BYTES,
        max_message,
        most,
    )
    if count == 0 or buf.find(_DELIVER_TO_ONE, pos, burst.next) >= 0:
        return pos
    sampler.left -= count
    publisher.messages += count
    publisher.bytes_ += burst.size
    publisher.delivered += count
    vpn.context.work += 1 + (count * (1 + len(receivers)) >> 2)
    behind: list[tuple[TopicSubscriber, int]] = []
    for subscriber in receivers:
        taken = subscriber.take(burst, buf, count)
        if taken < count:
            behind.append((subscriber, taken))
    if behind:
        _deliver_singly(link, burst, buf, behind)
    session.came(count)
    link.took(count)
    return burst.next


def _deliver_singly(
    link: ReceivingLink, burst: Burst, buf: bytes, behind: list[tuple[TopicSubscriber, int]]
) -> None:
    """Deliver the messages of a burst to receivers that took only so many of them together."""
    context = link.client.vpn.context
    for index in range(min([taken for _, taken in behind]), burst.count):
        message = Message(link.topic, burst.message(buf, index), b"", False, link.client, AMQP)
        for subscriber, taken in behind:
            if taken <= index:
                subscriber.deliver(message, [])
                context.work += 1
