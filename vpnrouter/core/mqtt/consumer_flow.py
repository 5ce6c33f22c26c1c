"""Delivers the messages of an endpoint over MQTT: of the session's own, or of a queue that a filter names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.core.credentials import NOT_AUTHORIZED
from vpnrouter.core.discard_reasons import MSG_TOO_BIG, SUBSCRIBE_TOPIC_ACL
from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.endpoint_settings import CONSUME, READ_ONLY, TOPIC_ENDPOINT
from vpnrouter.core.guaranteed.flow import ACCEPTED, REJECTED, SELECTED, Flow
from vpnrouter.core.mqtt.outbound_rows import FOREIGN
from vpnrouter.core.selection import counted_match
from vpnrouter.core.timers import Job
from vpnrouter.core.tracing import leaving, trace_kept_lost
from vpnrouter.errors import Refused
from vpnrouter.spool import keys
from vpnrouter.trace.events import DELIVER, DISCARD, EVENT_NAMES, REDELIVER
from vpnrouter.wire.mqtt.properties import with_user_properties

if TYPE_CHECKING:
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.guaranteed.unit_of_work import UnitOfWork
    from vpnrouter.core.message import Message
    from vpnrouter.core.mqtt.qos_sender import InFlightMessage, QosSender
    from vpnrouter.selectors import Selector

DELIVERY_COUNT: Final = "JMSXDeliveryCount"
"""User property, where the endpoint's `delivery_count_enabled` wants it: 1 the first time."""

REDELIVERED: Final = ("JMSRedelivered", "true")
"""User property of what a consumer of a queue gets and somebody may have got before. DUP cannot say that: it
tells of packets that this very session was sent before (MQTT-3.3.1-1)."""

BROWSED: Final = 256
"""Messages that a browser is sent in one go."""

BROWSE_WORK: Final = 3
"""What it costs to look at a message and to send it, in parts of a turn (TurnContext.work)."""


@final
class DeliveryOptions:
    """How a session's subscriptions deliver one topic; `denied`: its ACL profile does not allow the topic."""

    __slots__ = ("denied", "identifiers", "qos", "retain_as_published")

    def __init__(self) -> None:
        self.denied = False
        self.qos = 2
        self.retain_as_published = False
        self.identifiers: list[int] = []

    def same(self, other: DeliveryOptions) -> bool:
        """Return whether both say the same."""
        return (
            self.qos == other.qos
            and self.denied == other.denied
            and self.retain_as_published == other.retain_as_published
            and self.identifiers == other.identifiers
        )


@final
class MqttFlow(Flow):
    """One flow of one connection. `text` is the filter that bound it, "" for the session's own endpoint.

    `granted` is the most QoS, `identifier` the subscription's. `keyed`: the session lasts, so that QoS 2
    identifiers are in the spool before they are used and mean the same after a restart. `own`: what was sent keeps its
    identifier over connections, also where it went back. `browsing` only looks.
    """

    __slots__ = (
        "_browsing_on",
        "_promised",
        "_stayed",
        "_unsent",
        "browsing",
        "closed",
        "granted",
        "identifier",
        "keyed",
        "looked_at",
        "outbound",
        "own",
        "text",
    )

    def __init__(
        self,
        outbound: QosSender,
        endpoint: Endpoint,
        text: str,
        granted: int,
        selector: Selector | None = None,
        browsing: bool = False,
    ) -> None:
        window = endpoint.settings.max_delivered_unacked_msgs_per_flow
        super().__init__(endpoint, outbound.session.client_name, window, selector)
        self.outbound = outbound
        self.text = text
        self.own = not text
        self.granted = granted
        self.identifier = 0
        self.keyed = outbound.session.durable
        self.browsing = browsing
        self.closed = False
        # Of a browser: the last message that it has seen, and what goes on with it where a turn had done enough.
        self.looked_at = 0
        self._browsing_on: GoOnBrowsing | None = None
        # QoS 2 deliveries whose identifiers are being written down, unit by unit.
        self._unsent: list[list[int]] = []
        self._promised: UnitOfWork | None = None
        # Bytes that count for the session, while its client is away.
        self._stayed = 0

    def owning_connection(self) -> Connection | None:
        """The client's connection, None while it is away."""
        return self.outbound.session.connection

    def stay(self) -> bool:
        """Hold the messages while the client is away; False where they are too many bytes for that."""
        payer = self.payer
        if payer is not None:
            payer.give_back(self.counted)
            self.payer = None
        self.counted = 0
        self._stayed = self.bytes_out
        if self.outbound.session.memory().keep(self._stayed):
            return True
        self._stayed = 0
        return False

    def come_back(self) -> None:
        """Have the messages counted for the client again: it is back, or they go to their endpoint."""
        stayed = self._stayed
        if stayed:
            self._stayed = 0
            self.outbound.session.memory().forget(stayed)

    def letting_go(self) -> None:
        """Note that the messages go back."""
        self.come_back()

    def room(self) -> int:
        """Return how many messages it can be sent now: the rest of its window and of the client's.

        0 while the client is away, or too much waits to be sent to it.
        """
        outbound = self.outbound
        session = outbound.session
        connection = session.connection
        if self.closed or connection is None or connection.faulty or not session.connected:
            # A connection that is being cut would get the message under another identifier than before.
            return 0
        outbox = session.outbox
        if outbox.size * 2 > outbox.limit:
            outbound.drain_later()
            return 0
        if not self.has_budget(connection, outbox):
            outbound.drain_later()
            return 0
        left = self.window - len(self.unacked)
        clients = outbound.room()
        if clients < left:
            # Any acknowledgement makes room, not only those of this flow.
            outbound.narrow = True
            return clients
        return left

    def look_again(self) -> None:
        """Have the session's flows woken after a moment."""
        self.outbound.drain_later()

    def send(self, message_id: int, message: Message, count: int) -> None:
        """Send a message as PUBLISH under a packet identifier."""
        outbound = self.outbound
        known = 0
        if self.own and outbound.resend:
            known = outbound.sent_before(message_id)
        most = outbound.delivery(message.topic).qos if self.own else self.granted
        # What was promoted, or came over a bridge, is kept like any other: it has QoS 1 at least.
        qos = max(1, min(message.qos, most))
        if known:
            packet_id = known & 0xFFFF
            qos = known >> 16
        else:
            packet_id = outbound.next_id()
        held = outbound.hold(packet_id, self, message_id, qos)
        if known:
            outbound.sends_again(message_id, packet_id)
        if qos == 2 and self.keyed and not known:
            self._write_down(packet_id, message_id)
        elif self._unsent:
            # What came later is sent later.
            self._unsent[-1].append(packet_id)
        else:
            # An identifier of QoS 2 that is not in the spool was never used.
            dup = known != 0 or (self.own and count != 0 and qos == 1)
            self.transmit(packet_id, held, message, dup, count)

    def _write_down(self, packet_id: int, message_id: int) -> None:
        spool = self.endpoint.spool
        value = keys.pack_id(message_id)
        if not self.own:
            value += FOREIGN
        spool.ledger.put(keys.outbound(self.outbound.session.number, packet_id), value)
        if self._promised is not spool.unit:
            self._unsent.append([])
            try:
                spool.when_synced(self, 0)
            except Exception:
                # No receipt will come for this batch, so it must not stay before others.
                self._unsent.pop()
                raise
            self._promised = spool.unit
        self._unsent[-1].append(packet_id)

    def unsent(self) -> set[int]:
        """Packet identifiers that will be sent when they are in the spool."""
        return {packet_id for batch in self._unsent for packet_id in batch}

    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        """Send the deliveries of the oldest unit of identifiers: they are in the spool."""
        batch = self._unsent.pop(0) if self._unsent else []
        if self.closed:
            return
        for packet_id in batch:
            held = self.outbound.held.get(packet_id)
            if held is not None and held.flow is self:
                message = self.unacked.get(held.message_id)
                if message is not None:
                    count = self.endpoint.redeliveries.get(held.message_id, 0)
                    self.transmit(packet_id, held, message, False, count)

    def transmit(
        self, packet_id: int, held: InFlightMessage, message: Message, dup: bool, count: int
    ) -> None:
        """Send one PUBLISH; one that is too large for the client counts as done, or as rejected by a queue's.

        MQTT 5, 3.1.2.11.4.
        """
        session = self.outbound.session
        endpoint = self.endpoint
        retain = message.retain
        block = message.mqtt().block
        delivery: DeliveryOptions | None = None
        if self.own or endpoint.kind == TOPIC_ENDPOINT:
            delivery = self.outbound.delivery(message.topic)
        if delivery is not None and delivery.denied:
            # It came into the endpoint while the client was still allowed to have it, or for somebody else.
            self._give_up(packet_id, held, message, SUBSCRIBE_TOPIC_ACL)
            if dup and held.qos == 2:
                self.outbound.abandon(packet_id)
            return
        if delivery is not None and self.own:
            identifiers = delivery.identifiers
            retain = retain and (delivery.retain_as_published or message.snapshot)
        else:
            identifiers = [self.identifier] if self.identifier else []
            if count and not self.browsing and not self.own:
                block = with_user_properties(block, [REDELIVERED])
        if endpoint.settings.delivery_count_enabled:
            times = str(max(0, count) + 1)
            block = with_user_properties(block, [(DELIVERY_COUNT, times)])
        event = REDELIVER if count else DELIVER
        if message.traced:
            vpn = session.vpn
            where = endpoint.name
            block = leaving(
                vpn.context, message, block, vpn.name, EVENT_NAMES[event], self.client_name, where
            )
        frame = session.encoded(message, block, retain, identifiers, held.qos, dup, packet_id)
        if not frame:
            self._give_up(packet_id, held, message, MSG_TOO_BIG)
            return
        outbox = session.outbox
        outbox.control(frame)
        outbox.messages += 1
        outbox.bytes_ += len(frame)
        fault = endpoint.spool.fault
        if fault is not None:
            fault("deliver-before-flush")
        if message.traced:
            endpoint.trace(event, held.message_id, message, "", self.client_name)

    def _give_up(
        self, packet_id: int, held: InFlightMessage, message: Message, reason: str
    ) -> None:
        """Discard a message that the client cannot be sent, or reject it to its queue."""
        vpn = self.outbound.session.vpn
        vpn.discards.add(reason)
        trace_kept_lost(vpn, DISCARD, message, self.endpoint.name, reason, self.client_name)
        del self.outbound.held[packet_id]
        if self.keyed and held.qos == 2:
            self.outbound.forget_key(packet_id)
        self.settle(held.message_id, ACCEPTED if self.own else REJECTED)

    def permitted(self) -> bool:
        """Return whether the client may consume from the endpoint; a session may always use its own."""
        return self.own or self._may(CONSUME)

    def _may(self, needed: int) -> bool:
        connection = self.outbound.session.connection
        admission = None if connection is None else connection.admission
        if admission is None:
            return True
        return (
            admission.profile.allow_guaranteed_msg_receive_enabled
            and admission.username.permission_on(self.endpoint.settings) >= needed
        )

    def settle(self, message_id: int, outcome: int) -> None:
        """The client answered, or cannot take it."""
        endpoint = self.endpoint
        message = self.unacked.get(message_id)
        if message is None:
            return
        if self.browsing:
            self.settles(message_id)
            self.outbound.drain_later()
            return
        endpoint.settle(self, message_id, outcome)

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
            self.outbound.forget_flow(self)
            return
        context = endpoint.vpn.context
        left = min(self.room(), BROWSED if selector is None else SELECTED)
        if left > 0 and context.turn_spent:
            self._browse_later()
            return
        if left > 0 and not endpoint.deleted:
            rows = endpoint.browse(self.looked_at, left, limits.BROWSED_BYTES)
            for row in rows:
                if self.budget <= 0:
                    break
                if context.work > context.allowance:
                    self._browse_later()
                    return
                context.work += BROWSE_WORK
                self.looked_at = row.msg_id
                if counted_match(selector, row.message, context) and not endpoint.is_over(
                    row.message
                ):
                    self.delivers(row.msg_id, row.message)
                    self.delivered += 1
                    self.send(row.msg_id, row.message, row.redelivery_count)
            if selector is not None and len(rows) == left:
                self._browse_later()
                return
        self.outbound.drain_later()

    def _browse_later(self) -> None:
        """Go on in a later turn: this one has done enough."""
        job = self._browsing_on
        if job is None:
            job = GoOnBrowsing(self)
            self._browsing_on = job
        self.endpoint.vpn.context.jobs.add(job)

    def start_replay(self, replay_from: tuple[int, int]) -> None:
        """Start a replay for the consumer, which has just been bound; without it, it is not bound."""
        from_ns, after_id = replay_from
        endpoint = self.endpoint
        if not self.active:
            endpoint.unbind(self, counts=False)
            raise Refused(refusals.REPLAY_INACTIVE, NOT_AUTHORIZED)
        try:
            endpoint.start_replay(from_ns, after_id)
        except Refused:
            endpoint.unbind(self, counts=False)
            raise

    def unbound(self, reason: str) -> None:
        """Forget the flow: the endpoint has unbound it."""
        self.outbound.forget_flow(self)


@final
class GoOnBrowsing(Job):
    """The next turn of a browser."""

    __slots__ = ("_flow",)

    def __init__(self, flow: MqttFlow) -> None:
        super().__init__()
        self._flow = flow

    def step(self) -> bool:
        """Send what there is, until this turn has done enough."""
        flow = self._flow
        if not flow.closed:
            flow.browse()
        return True

    def owning_connection(self) -> Connection | None:
        """Return the connection of the browser."""
        return self._flow.owning_connection()
