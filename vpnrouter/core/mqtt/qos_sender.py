"""Sends QoS 1 and 2 messages to the client of a session: packet identifiers, windows and acknowledgements.

The states of an outbound packet identifier (MQTT 5, 4.3.2 and 4.3.3):

    held        PUBLISH sent, or about to be; waits for PUBACK or PUBREC
    resend      the same, and the client went away: sent again with DUP when it is back
    releasing   PUBREC came; PUBREL is due, or sent and waits for PUBCOMP
    reserved    those of `resend`, and of what a queue got back while the client may still answer it

A QoS 2 message that a queue got back from a consumer may still be half taken by that client, under an identifier that
must not come to mean another message: the exchange ends with PUBREL when the client is back. The client, or another
consumer, may then have the message twice; none is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast, final

from vpnrouter import limits
from vpnrouter.core.fault_barrier import CONNECTION
from vpnrouter.core.guaranteed.endpoint import endpoint_of
from vpnrouter.core.guaranteed.endpoint_settings import CONSUME
from vpnrouter.core.guaranteed.flow import ACCEPTED, REJECTED
from vpnrouter.core.guaranteed.spool import spool_of
from vpnrouter.core.guaranteed.unit_of_work import CompletionCallback
from vpnrouter.core.mqtt.consumer_flow import DeliveryOptions, MqttFlow
from vpnrouter.core.mqtt.outbound_rows import release_row
from vpnrouter.core.mqtt.session import DRAIN
from vpnrouter.errors import ProtocolError, Refused
from vpnrouter.spool import keys
from vpnrouter.topics.algebra import matches
from vpnrouter.topics.cache import RememberedTopics
from vpnrouter.wire.mqtt import reason
from vpnrouter.wire.mqtt.encode import encode_ack
from vpnrouter.wire.mqtt.reason import PUBREL

if TYPE_CHECKING:
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.guaranteed.spool import Spool
    from vpnrouter.core.mqtt.session import MqttSession
    from vpnrouter.core.subscriber import Subscription


SYNCED: Final = 1
"""Of `releasing`: PUBREL may be sent."""

KEYED: Final = 2
"""Of `releasing`: the identifier is in the spool."""

FEW: Final = 64
"""So many subscriptions of a session are matched one by one."""

MOST_IDS: Final = 65_535

OPTIONS_COST: Final = 200
"""Bytes of memory that a DeliveryOptions takes without its identifiers."""

DRAIN_NS: Final = 100_000_000
"""How soon to look again at a client that takes messages slowly."""


@final
class InFlightMessage:
    """A message that the client has not acknowledged."""

    __slots__ = ("flow", "message_id", "qos")

    def __init__(self, flow: MqttFlow, message_id: int, qos: int) -> None:
        self.flow = flow
        self.message_id = message_id
        self.qos = qos


@final
class QosSender(CompletionCallback):
    """The guaranteed deliveries of one session, over all its connections.

    `resend` has the packet identifier and the QoS (in the bits from 16 on) of each message id. `own` is the flow of the
    session's endpoint, `flows` are others by the filter that bound them, both while there is a connection. `deliveries`
    caches the subscription options of a topic. `narrow`: the client's receive maximum leaves a flow less than its
    window.
    """

    __slots__ = (
        "_draining",
        "_last",
        "_newest_resend",
        "_options",
        "deliveries",
        "flows",
        "held",
        "narrow",
        "own",
        "receive_maximum",
        "releasing",
        "resend",
        "reserved",
        "session",
        "turn",
    )

    def __init__(self, session: MqttSession) -> None:
        self.session = session
        self.receive_maximum = 0
        self.held: dict[int, InFlightMessage] = {}
        self.resend: dict[int, int] = {}
        self.releasing: dict[int, int] = {}
        self.reserved: set[int] = set()
        self.own: MqttFlow | None = None
        self.flows: dict[str, MqttFlow] = {}
        self.deliveries: RememberedTopics[DeliveryOptions] = RememberedTopics(
            limits.PERMITTED_TOPIC_BYTES
        )
        self._options = DeliveryOptions()
        self._last = 0
        self._newest_resend = 0
        self._draining = False
        self.narrow = False
        # Of the last PUBREL that was written down as due.
        self.turn = 0

    # -- identifiers -----------------------------------------------------------------------------

    def room(self) -> int:
        """Return how many more messages the client may get."""
        used = len(self.held) + len(self.releasing)
        return min(self.receive_maximum - used, MOST_IDS - 1 - used - len(self.reserved))

    def next_id(self) -> int:
        """A packet identifier that is not in use (MQTT-2.2.1-4)."""
        number = self._last
        while True:
            number = number % MOST_IDS + 1
            if not (number in self.held or number in self.releasing or number in self.reserved):
                self._last = number
                return number

    def hold(self, packet_id: int, flow: MqttFlow, message_id: int, qos: int) -> InFlightMessage:
        """Use the identifier for a message that the client has not acknowledged."""
        held = InFlightMessage(flow, message_id, qos)
        self.held[packet_id] = held
        return held

    def sent_before(self, message_id: int) -> int:
        """Identifier and QoS (from bit 16 on) under which the client got this message before, 0 if not."""
        known = self.resend.get(message_id, 0)
        if not known and message_id > self._newest_resend:
            # All older ones have passed: what is left has expired or was deleted meanwhile.
            for old_id, left in list(self.resend.items()):
                if left >> 16 == 2:
                    self.abandon(left & 0xFFFF)
                    self.send_pubrel(left & 0xFFFF)
                self.sends_again(old_id, left & 0xFFFF)
        return known

    def sends_again(self, message_id: int, packet_id: int) -> None:
        """Forget what was kept of an identifier while the client was away: it is in use again, or being released."""
        self.resend.pop(message_id, 0)
        self.reserved.discard(packet_id)

    def sent(self, message_id: int, packet_id: int, qos: int) -> None:
        """Note that the client may have a message, so that it is sent again under the same identifier."""
        self.resend[message_id] = packet_id | qos << 16
        self.reserved.add(packet_id)
        self._newest_resend = max(self._newest_resend, message_id)

    def identifiers(self) -> list[int]:
        """Return all packet identifiers that may be in the spool."""
        return [*self.held, *self.releasing, *self.reserved]

    def half_sent(self) -> set[int]:
        """Return the ids of the session's own messages of QoS 2 that the client may have, and has not acknowledged."""
        found = {message_id for message_id, known in self.resend.items() if known >> 16 == 2}
        for held in self.held.values():
            if held.qos == 2 and held.flow.own:
                found.add(held.message_id)
        return found

    def release(self, packet_id: int, flow: MqttFlow) -> None:
        """Handle PUBREC for a settled message: send PUBREL when that is synced."""
        spool = flow.endpoint.spool
        # Before anything can raise: the client waits for PUBREL, which `resume` sends when it is back.
        self.releasing[packet_id] = KEYED if flow.keyed else 0
        self.held.pop(packet_id, None)
        if flow.keyed:
            self._keep_due(spool, packet_id)
        if flow.endpoint.durable:
            spool.when_synced(self, packet_id)
        else:
            self.released(packet_id)

    def abandon(self, packet_id: int) -> None:
        """The message has gone elsewhere: PUBREL ends the exchange, whether PUBREC has come or not."""
        session = self.session
        spool = spool_of(session.vpn.context)
        self.releasing[packet_id] = SYNCED
        if session.durable and spool is not None:
            self.releasing[packet_id] = SYNCED | KEYED
            self._keep_due(spool, packet_id)

    def _keep_due(self, spool: Spool, packet_id: int) -> None:
        self.turn += 1
        spool.ledger.put(keys.outbound(self.session.number, packet_id), release_row(self.turn))

    def released(self, packet_id: int) -> None:
        """Send PUBREL, now or when the client is back."""
        state = self.releasing.get(packet_id, -1)
        if state >= 0:
            self.releasing[packet_id] = state | SYNCED
            self.send_pubrel(packet_id)

    def owning_connection(self) -> Connection | None:
        """The client's connection, None while it is away."""
        return self.session.connection

    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        """Send PUBREL: the states of the packet identifiers are synced."""
        state = self.releasing.get(token, -1)
        if state >= 0 and not state & SYNCED:
            # Before anything can raise: the client asks again when it is back.
            self.releasing[token] = state | SYNCED
            self.released(token)

    def send_pubrel(self, packet_id: int) -> None:
        """Send PUBREL if there is a connection."""
        session = self.session
        if session.connected:
            session.outbox.control(encode_ack(PUBREL, packet_id, session.level))

    def complete(self, packet_id: int) -> None:
        """Handle PUBCOMP: free the identifier."""
        state = self.releasing.pop(packet_id, 0)
        self.reserved.discard(packet_id)
        if state & KEYED:
            self.forget_key(packet_id)
        spool = spool_of(self.session.vpn.context)
        if spool is not None and spool.fault is not None:
            spool.fault("pubcomp-received")
        self.wake()

    def forget_key(self, packet_id: int) -> None:
        """Delete an identifier from the spool."""
        spool = spool_of(self.session.vpn.context)
        if spool is not None:
            spool.ledger.delete(keys.outbound(self.session.number, packet_id))

    # -- connections -----------------------------------------------------------------------------

    def plug(self, receive_maximum: int) -> None:
        """A connection takes the session up, with the client's receive maximum (0: it gave none)."""
        self.receive_maximum = min(receive_maximum or MOST_IDS, limits.CLIENT_WINDOW)
        endpoint = endpoint_of(self.session)
        if self.own is not None:
            self.own.come_back()
            self.own.closed = False
            self.open_own()
        elif endpoint is not None and not endpoint.deleted:
            self.bind_own(endpoint)

    def bind_own(self, endpoint: Endpoint) -> None:
        """Bind the session's own endpoint."""
        flow = MqttFlow(self, endpoint, "", 2)
        # Before it is bound: if the code below raises, the end of the connection unbinds it.
        self.own = flow
        try:
            endpoint.bind(flow, CONSUME, CONSUME)
        except Refused:
            self.own = None
            raise
        self.open_own()
        connection = self.session.connection
        if connection is not None:
            connection.guaranteed = True

    def open_own(self) -> None:
        """Bind the session's own endpoint if it may receive guaranteed messages, else unbind it."""
        own = self.own
        if own is not None:
            most = own.endpoint.settings.max_delivered_unacked_msgs_per_flow
            own.window = most if self.session.receives else 0
            own.endpoint.wake()

    def resume(self) -> None:
        """Continue after the CONNACK with what the client has received and not completed (MQTT-4.4.0-1)."""
        spool = spool_of(self.session.vpn.context)
        for packet_id, state in self.releasing.items():
            if state & SYNCED:
                self.send_pubrel(packet_id)
            elif spool is not None:
                # The receipt of the sync may have raised. Telling it twice counts once.
                spool.when_synced(self, packet_id)
        own = self.own
        if own is not None:
            unsent = own.unsent()
            for packet_id, held in list(self.held.items()):
                message = own.unacked.get(held.message_id)
                if held.flow is own and message is not None and packet_id not in unsent:
                    own.transmit(packet_id, held, message, True, -1)

    def unplug(self) -> None:
        """Remember which of the session's own messages the client may have: its connection has ended."""
        own = self.own
        stays = False
        try:
            stays = own is not None and self._must_stay(own) and own.stay()
            self._keep_identifiers(own, stays)
        finally:
            # Even after an exception: a flow that stays bound without a connection would hold its messages for ever.
            if own is not None:
                own.closed = True
            if own is not None and not stays:
                self.own = None
                # Nothing was wrong with the messages: this does not count as a redelivery.
                self._part(own, False)
            flows = list(self.flows.values())
            self.flows.clear()
            for flow in flows:
                # A consumer that goes may be what is wrong with a message.
                self._part(flow, True)

    def _keep_identifiers(self, own: MqttFlow | None, stays: bool) -> None:
        orphans = self.reserved - {known & 0xFFFF for known in self.resend.values()}
        for packet_id in orphans:
            self.abandon(packet_id)
            self.reserved.discard(packet_id)
        unsent = set() if own is None or stays else own.unsent()
        # Taken out one by one, so that a second call goes on behind the one that raised.
        for packet_id, held in list(self.held.items()):
            flow = held.flow
            if not flow.own:
                if held.qos == 2:
                    self.abandon(packet_id)
            elif held.message_id not in flow.unacked and not flow.endpoint.holds(held.message_id):
                # The message is settled, but a later step raised.
                if held.qos == 2:
                    self.release(packet_id, flow)
            elif stays and held.message_id in flow.unacked:
                continue
            elif packet_id in unsent:
                # Its identifier is not in the spool yet, and was never used.
                if held.qos == 2:
                    self.forget_key(packet_id)
            else:
                self.sent(held.message_id, packet_id, held.qos)
            self.held.pop(packet_id, None)

    def _must_stay(self, own: MqttFlow) -> bool:
        """True when a QoS 2 message would expire if it were given back. It must not (MQTT-4.3.3-7).

        All go back to the endpoint otherwise, so that a client that is away costs no memory.
        """
        endpoint = own.endpoint
        for held in self.held.values():
            if held.qos == 2 and held.flow is own:
                message = own.unacked.get(held.message_id)
                if message is not None and endpoint.schedule.expires_ns(message):
                    return True
        return False

    def leave(self, text: str) -> bool:
        """Unbind the flow that the filter `text` bound; False when there is none."""
        flow = self.flows.pop(text, None)
        if flow is None:
            return False
        for packet_id in [key for key, held in self.held.items() if held.flow is flow]:
            if self.held.pop(packet_id).qos == 2:
                self.reserved.add(packet_id)
        self._part(flow, False)
        return True

    def forget_flow(self, flow: MqttFlow) -> None:
        """Forget a flow that its endpoint has unbound: that was shut down or deleted."""
        for packet_id in [key for key, held in self.held.items() if held.flow is flow]:
            if self.held.pop(packet_id).qos == 2:
                self.reserved.add(packet_id)
        if flow is self.own:
            self.own = None
        elif self.flows.get(flow.text) is flow:
            del self.flows[flow.text]
        else:
            return
        flow.closed = True

    def _part(self, flow: MqttFlow, counts: bool) -> None:
        flow.closed = True
        if flow.browsing:
            flow.return_selector()
            flow.forget_all()
            return
        endpoint = flow.endpoint
        for _ in range(2):
            try:
                endpoint.unbind(flow, counts=counts)
            except Exception as error:  # noqa: BLE001 - given to the barrier: other flows are unbound all the same
                vpn = endpoint.vpn
                vpn.context.barrier.caught(error, CONNECTION, flow.client_name, vpn.name, "goes on")
            else:
                return

    # -- acknowledgements ------------------------------------------------------------------------

    def puback(self, packet_id: int, code: int) -> None:
        """A QoS 1 message is the client's now; with a code from 0x80 on it is rejected. Unknown ones mean nothing."""
        held = self.held.get(packet_id)
        if held is None:
            if packet_id in self.releasing:
                raise ProtocolError(
                    reason.PROTOCOL_ERROR,
                    f"PUBACK for the QoS 2 message {packet_id}, whose PUBCOMP is due (MQTT-4.3.3-1)",
                )
            return
        if held.qos == 2:
            raise ProtocolError(
                reason.PROTOCOL_ERROR, f"PUBACK for the QoS 2 message {packet_id} (MQTT-4.3.3-1)"
            )
        # The identifier is kept until nothing more can raise: see unplug.
        held.flow.settle(
            held.message_id, REJECTED if code >= reason.UNSPECIFIED_ERROR else ACCEPTED
        )
        self.held.pop(packet_id, None)
        fault = held.flow.endpoint.spool.fault
        if fault is not None:
            fault("ack-received")
        if self.narrow:
            self.wake()

    def pubrec(self, packet_id: int, code: int) -> bool:
        """A QoS 2 message is the client's: settle it, and answer PUBREL when that is synced (MQTT-4.3.3-4).

        False where the identifier is not in use.
        """
        held = self.held.get(packet_id)
        if held is None:
            state = self.releasing.get(packet_id, -1)
            if state >= 0:
                # PUBREL once more, unless it waits for the sync.
                if state & SYNCED:
                    self.send_pubrel(packet_id)
                return True
            if packet_id in [known & 0xFFFF for known in self.resend.values()]:
                # The message is about to be sent again, and will be answered again.
                return True
            self.reserved.discard(packet_id)
            return False
        if held.qos == 1:
            raise ProtocolError(
                reason.PROTOCOL_ERROR, f"PUBREC for the QoS 1 message {packet_id} (MQTT-4.3.2-2)"
            )
        if code >= reason.UNSPECIFIED_ERROR:
            held.flow.settle(held.message_id, REJECTED)
            self.held.pop(packet_id, None)
            if held.flow.keyed:
                self.forget_key(packet_id)
            self.wake()
            return True
        held.flow.settle(held.message_id, ACCEPTED)
        self.release(packet_id, held.flow)
        fault = held.flow.endpoint.spool.fault
        if fault is not None:
            fault("pubrec-received")
        return True

    def pubcomp(self, packet_id: int) -> None:
        """PUBCOMP: free a QoS 2 identifier. One that is not in use is ignored: a PUBCOMP is not answered.

        Raises ProtocolError where another acknowledgement is due, or none yet.
        """
        held = self.held.get(packet_id)
        if held is not None:
            due = "PUBREC" if held.qos == 2 else "PUBACK"
            raise ProtocolError(
                reason.PROTOCOL_ERROR,
                f"PUBCOMP for the QoS {held.qos} message {packet_id}, whose {due} is due (MQTT-4.3.3-1)",
            )
        if self.releasing.get(packet_id, SYNCED) & SYNCED == 0:
            raise ProtocolError(
                reason.PROTOCOL_ERROR,
                f"PUBCOMP for message {packet_id} before its PUBREL (MQTT-4.3.3-1)",
            )
        self.complete(packet_id)

    # -- deliveries ------------------------------------------------------------------------------

    def wake(self) -> None:
        """Look for something to deliver in all flows: there may be room again."""
        self.narrow = False
        if self.own is not None:
            self.own.endpoint.wake()
        for flow in self.flows.values():
            flow.wake()

    def drain_later(self) -> None:
        """The client takes messages slowly: look again soon, whether it acknowledges any or not."""
        if not self._draining:
            self._draining = True
            context = self.session.vpn.context
            context.timers.arm(context.now_ns + DRAIN_NS, self.session, DRAIN)

    def drained(self) -> None:
        """Look again for something to deliver, after `drain_later`."""
        self._draining = False
        self.wake()

    def delivery(self, topic: bytes) -> DeliveryOptions:
        """Return how the subscriptions that match `topic` deliver it."""
        found = self.deliveries.answers.get(topic)
        if found is None:
            found = self._look_up(topic)
            options = self._options
            if found.same(options):
                # Most topics of a session are delivered alike.
                self.deliveries.keep(topic, options)
                return options
            self._options = found
            self.deliveries.keep(topic, found, OPTIONS_COST + 8 * len(found.identifiers))
        return found

    def _look_up(self, topic: bytes) -> DeliveryOptions:
        text = topic.decode()
        found = DeliveryOptions()
        qos = 0
        session = self.session
        matching: list[Subscription] = []
        if len(session.subscriptions) > FEW:
            for item in session.vpn.trie.match(text):
                subscription = cast("Subscription", item)
                if subscription.subscriber is session:
                    matching.append(subscription)
        else:
            for subscription in session.subscriptions.values():
                filter_ = subscription.filter
                if filter_.text == text if filter_.literal else matches(filter_, text):
                    matching.append(subscription)
        for subscription in matching:
            qos = max(qos, subscription.qos)
            if subscription.retain_as_published:
                found.retain_as_published = True
            if subscription.identifier:
                found.identifiers.append(subscription.identifier)
        rule = self.session.rule
        found.denied = rule is not None and not rule.allows_topic(text)
        # Without a match the subscription has ended since: what it brought is delivered as it came.
        found.qos = qos or 2
        return found
