"""Sends the guaranteed messages of links to an MQTT provider: packet identifiers, its window, its answers.

The quality of service of the link decides how a message is sent, however it was published. The states of an outbound
packet identifier (MQTT 5, 4.3.2 and 4.3.3):

    on the way  PUBLISH sent, or about to be; waits for PUBACK or PUBREC
    resend      the same over an earlier connection: sent again with DUP, under the same identifier
    releasing   PUBREC came; PUBREL is due, or sent and waits for PUBCOMP

An identifier of QoS 2 is in the spool before it is used, and PUBREL follows when it is in the spool that the message
has left its queue. So the provider gets the message once, whatever breaks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from typing_extensions import override

from vpnrouter import limits
from vpnrouter.connectors.outward import OutwardFlow
from vpnrouter.connectors.provider import ALONE
from vpnrouter.connectors.provider_session import KEYED, SYNCED
from vpnrouter.core.guaranteed.endpoint import endpoints_of
from vpnrouter.core.guaranteed.unit_of_work import CompletionCallback, UnitOfWork
from vpnrouter.wire.mqtt import reason
from vpnrouter.wire.mqtt.encode import encode_ack
from vpnrouter.wire.mqtt.reason import PUBREL

if TYPE_CHECKING:
    from vpnrouter.connectors.mqtt.publishing import Publishing
    from vpnrouter.connectors.outward import OutwardLink
    from vpnrouter.connectors.provider_session import ProviderSession
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.message import Message

MOST_IDS: Final = 65_535


@final
class OnTheWay:
    """A message that the provider has not answered. `sent`: its PUBLISH is out over this connection."""

    __slots__ = ("flow", "message_id", "qos", "sent", "topic")

    def __init__(self, flow: MqttOutwardFlow, message_id: int, qos: int, topic: bytes) -> None:
        self.flow = flow
        self.message_id = message_id
        self.qos = qos
        self.topic = topic
        self.sent = False

    @property
    def went_back(self) -> bool:
        """Whether its queue has let the flow go, and has the message again: the queue was shut down, for example."""
        flow = self.flow
        return self.message_id not in flow.unacked and flow.endpoint.holds(self.message_id)


@final
class Outgoing(CompletionCallback):
    """What is on its way to the provider over one connection, by packet identifier, in the order of sending.

    `window` is the provider's receive maximum; `exchanges` is how many messages of QoS 2 may be unfinished where the
    provider cannot say so, 0 where it can. `flows` are those of the `links` that carry messages. `narrow`: the
    window has left one of them less than its own. `proving`: nothing is sent yet, since a message is suspected of
    ending the connection, and the provider has not shown that it is alive. Then one is sent alone. `was_alone`: only
    one was on the way when the connection ended.
    """

    __slots__ = (
        "_last",
        "_most",
        "_owed",
        "_owed_ns",
        "_reserved",
        "connection",
        "exchanges",
        "flows",
        "links",
        "narrow",
        "on_the_way",
        "proving",
        "publishing",
        "session",
        "was_alone",
        "window",
    )

    def __init__(
        self,
        connection: Connection,
        session: ProviderSession,
        publishing: Publishing,
        links: list[OutwardLink],
    ) -> None:
        self.connection = connection
        self.session = session
        self.publishing = publishing
        self.links = links
        self.window = limits.CLIENT_WINDOW
        self.exchanges = 0
        self.on_the_way: dict[int, OnTheWay] = {}
        self.flows: list[MqttOutwardFlow] = []
        self.narrow = False
        self.was_alone = False
        self.proving = False
        self._last = 0
        # How many messages may be on the way, 0 for no bound of this kind.
        self._most = 0
        # The message that had to be answered next when it was last asked, or the identifier that had to be released
        # (negative), and since when.
        self._owed = 0
        self._owed_ns = 0
        # The identifiers of `session.resend`.
        self._reserved: set[int] = set()

    def take_window(self, receive_maximum: int, exchanges: int) -> None:
        """Take the receive maximum that the provider gave, 0 for none, and `exchanges`."""
        self.exchanges = exchanges
        self.window = min(receive_maximum or MOST_IDS, limits.CLIENT_WINDOW)

    @property
    def suspects(self) -> bool:
        """Whether a message is suspected of ending the connection."""
        for link in self.links:  # noqa: SIM110 (compiled: no generator expressions)
            if link.suspected:
                return True
        return False

    def begin(self) -> None:
        """Send: the provider has shown that it is alive."""
        self.proving = False
        self._most = ALONE
        for flow in self.flows:
            flow.endpoint.wake()

    # -- identifiers -----------------------------------------------------------------------------

    def room(self) -> int:
        """Return how many more messages the provider may be sent."""
        if self.proving:
            return 0
        used = len(self.on_the_way) + len(self.session.releasing)
        room = self.window - used
        if self._most:
            room = min(room, self._most - len(self.on_the_way))
        return min(room, MOST_IDS - 1 - used - len(self.session.resend))

    def room_for_exact(self, endpoint: Endpoint) -> int:
        """Return how many more messages of QoS 2 the provider may be sent from `endpoint`, by `exchanges`.

        What was sent over an earlier connection is unfinished too, until it is sent again.
        """
        session = self.session
        going = len(session.releasing)
        for flow in self.flows:
            if flow.qos == 2:
                going += len(flow.unacked)
        others = 0
        for message_id, known in session.resend.items():
            if known >> 16 == 2 and not endpoint.holds(message_id):
                others += 1
        # One goes, whatever a link that sends nothing now has left unfinished.
        return max(self.exchanges - going - others, ALONE - going)

    def next_id(self) -> int:
        """Return a packet identifier that is not in use, also for SUBSCRIBE and UNSUBSCRIBE (MQTT-2.2.1-3)."""
        releasing = self.session.releasing
        number = self._last
        while True:
            number = number % MOST_IDS + 1
            if not (number in self.on_the_way or number in releasing or number in self._reserved):
                self._last = number
                return number

    def sent_before(self, message_id: int) -> int:
        """Return the identifier of a message of an earlier connection, with its QoS; 0 for none. Once for each."""
        known = self.session.resend.pop(message_id, 0)
        if known:
            self._reserved.discard(known & 0xFFFF)
        return known

    # -- sending ---------------------------------------------------------------------------------

    def resume(self) -> None:
        """End what is half done, after the login: PUBREL again, and for messages that have gone (MQTT-4.4.0-1)."""
        session = self.session
        spool = session.spool
        self._reserved = {known & 0xFFFF for known in session.resend.values()}
        for packet_id, state in list(session.releasing.items()):
            if state & SYNCED:
                self.send_pubrel(packet_id)
            elif spool is not None:
                # Its sync was under way when the connection before ended.
                spool.when_synced(self, packet_id)

    def sweep(self) -> None:
        """Free the identifiers of messages that have left their queues otherwise: expired, deleted, taken by others."""
        for message_id in list(self.session.resend):
            if not self._is_there(message_id):
                self.abandon(self.sent_before(message_id))
        for link in self.links:
            link.sweep()

    def _is_there(self, message_id: int) -> bool:
        for link in self.links:
            endpoint = link.endpoint
            if endpoint is not None and endpoint.holds(message_id):
                return True
        # That of a link which is not configured any more, and may be again.
        for kept in endpoints_of(self.publishing.vpn).values():  # noqa: SIM110 (compiled: no generator expressions)
            if kept.holds(message_id):
                return True
        return False

    def abandon(self, known: int) -> None:
        """End the exchange of a message that is not sent again; `known` is its identifier, with the QoS."""
        packet_id = known & 0xFFFF
        if known >> 16 == 2:
            self.session.releasing[packet_id] = SYNCED | KEYED
            self.session.will_release(packet_id)
            self.send_pubrel(packet_id)

    def send_pubrel(self, packet_id: int) -> None:
        """Send PUBREL."""
        connection = self.connection
        if not connection.closing:
            connection.outbox.control(encode_ack(PUBREL, packet_id, self.publishing.level))

    # -- answers ---------------------------------------------------------------------------------

    def puback(self, packet_id: int, code: int, why: str) -> None:
        """A QoS 1 message is the provider's now, or refused. What is not on the way means nothing."""
        known = self.on_the_way.get(packet_id)
        if known is None or known.qos != 1:
            return
        # The identifier is in use until nothing more can raise.
        self._answered(known, code, why)
        self.on_the_way.pop(packet_id, None)
        self._fault("ack-received")
        self.go_on()

    def pubrec(self, packet_id: int, code: int, why: str) -> None:
        """A QoS 2 message is the provider's, or refused: settle it, and send PUBREL when that is synced."""
        known = self.on_the_way.get(packet_id)
        session = self.session
        if known is None or known.qos != 2:
            state = session.releasing.get(packet_id, -1)
            if state >= 0:
                if state & SYNCED:
                    self.send_pubrel(packet_id)
            elif known is None and code < reason.UNSPECIFIED_ERROR:
                unknown = reason.PACKET_IDENTIFIER_NOT_FOUND
                frame = encode_ack(PUBREL, packet_id, self.publishing.level, unknown)
                self.connection.outbox.control(frame)
            return
        if known.went_back and code < reason.UNSPECIFIED_ERROR:
            # It is not released before it leaves the queue: the provider would have it twice.
            session.resend[known.message_id] = packet_id | 2 << 16
            self._reserved.add(packet_id)
            self.on_the_way.pop(packet_id, None)
            self.go_on()
            return
        self._answered(known, code, why)
        if code >= reason.UNSPECIFIED_ERROR:
            session.is_free(packet_id)
            self.on_the_way.pop(packet_id, None)
            self.go_on()
            return
        # Before anything can raise: the provider waits for PUBREL, which `resume` sends over the next connection.
        session.releasing[packet_id] = KEYED
        self.on_the_way.pop(packet_id, None)
        session.will_release(packet_id)
        if session.spool is not None:
            session.spool.when_synced(self, packet_id)
        self._fault("pubrec-received")

    def _answered(self, known: OnTheWay, code: int, why: str) -> None:
        if self._most:
            # It lives on. So few connections find the message that it ends them for, behind however many.
            self._most += 1
            if self._most > self.window:
                self._most = 0
        flow = known.flow
        if code >= reason.UNSPECIFIED_ERROR:
            flow.link.refused(flow, known.message_id, why)
        else:
            flow.link.accepted(flow, known.message_id)

    def pubcomp(self, packet_id: int) -> None:
        """The exchange of a QoS 2 message is over."""
        session = self.session
        if session.releasing.get(packet_id, 0) & SYNCED == 0:
            return
        del session.releasing[packet_id]
        session.is_free(packet_id)
        self._fault("pubcomp-received")
        self.go_on()

    def _fault(self, point: str) -> None:
        spool = self.session.spool
        if spool is not None and spool.fault is not None:
            spool.fault(point)

    @override
    def owning_connection(self) -> Connection | None:
        return self.connection

    @override
    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        # It is in the spool that the message has left its queue. The connection before may have been told so first.
        state = self.session.releasing.get(token, -1)
        if state >= 0:
            self.session.releasing[token] = state | SYNCED
            self.send_pubrel(token)

    def go_on(self) -> None:
        """Look for more to send, where the window was narrow."""
        if self.narrow:
            self.narrow = False
            for flow in self.flows:
                flow.endpoint.wake()

    # -- the end ---------------------------------------------------------------------------------

    def oldest(self) -> OnTheWay | None:
        """Return the message that the provider has to answer next, None where it owes no answer to a PUBLISH."""
        for known in self.on_the_way.values():
            if known.sent:
                return known
        return None

    def unanswered_since(self, now_ns: int) -> int:
        """Return since when the provider owes the same answer, as seen at earlier calls; `now_ns` for none."""
        oldest = self.oldest()
        owed = 0 if oldest is None else oldest.message_id
        if owed == 0:
            for packet_id, state in self.session.releasing.items():
                if state & SYNCED:
                    owed = -packet_id
                    break
        if owed == 0 or owed != self._owed:
            self._owed = owed
            self._owed_ns = now_ns
        return self._owed_ns

    def end(self) -> None:
        """Note which messages the provider may have: the connection has ended."""
        self.was_alone = len(self.on_the_way) == ALONE
        session = self.session
        for packet_id, known in list(self.on_the_way.items()):
            flow = known.flow
            if known.message_id not in flow.unacked and not known.went_back:
                # It is settled, but a later step raised.
                if known.qos == 2 and packet_id not in session.releasing:
                    session.releasing[packet_id] = SYNCED | KEYED
                    session.will_release(packet_id)
            elif known.sent:
                session.resend[known.message_id] = packet_id | known.qos << 16
            elif known.qos == 2:
                # Its identifier was never used.
                session.is_free(packet_id)
            self.on_the_way.pop(packet_id, None)
        self.flows.clear()


@final
class MqttOutwardFlow(OutwardFlow):
    """The flow of one link, over one connection to an MQTT provider."""

    __slots__ = ("_changed", "_promised", "_unsent", "outgoing", "qos")

    def __init__(self, outgoing: Outgoing, link: OutwardLink, endpoint: Endpoint) -> None:
        super().__init__(link, endpoint, outgoing.connection, limits.CLIENT_WINDOW)
        self.outgoing = outgoing
        self.qos = link.terms.qos
        # Identifiers of QoS 2 that are being written down, unit by unit.
        self._unsent: list[list[int]] = []
        self._promised: UnitOfWork | None = None
        # What waits for that, by its id, where the steps of the link have changed it.
        self._changed: dict[int, Message] = {}
        outgoing.flows.append(self)

    @override
    def provider_room(self) -> int:
        if self.qos == 0:
            return limits.CLIENT_WINDOW
        outgoing = self.outgoing
        room = outgoing.room()
        if outgoing.exchanges and self.qos == 2:
            room = min(room, outgoing.room_for_exact(self.endpoint))
        if room < self.window - len(self.unacked):
            outgoing.narrow = True
        return room

    @override
    def transmit(self, message_id: int, message: Message, topic: bytes) -> None:
        if self.qos == 0:
            self._send_once(message_id, message, topic)
            return
        outgoing = self.outgoing
        known = outgoing.sent_before(message_id)
        qos = known >> 16 if known else self.qos
        packet_id = known & 0xFFFF if known else outgoing.next_id()
        on_the_way = OnTheWay(self, message_id, qos, topic)
        outgoing.on_the_way[packet_id] = on_the_way
        waits = (qos == 2 and not known) or bool(self._unsent)
        if waits and self.link.terms.transform is not None:
            self._changed[message_id] = message
        if qos == 2 and not known:
            self._write_down(packet_id, message_id)
        elif self._unsent:
            # What came later is sent later.
            self._unsent[-1].append(packet_id)
        else:
            self._publish(packet_id, on_the_way, message, dup=known != 0)

    def _send_once(self, message_id: int, message: Message, topic: bytes) -> None:
        publishing = self.outgoing.publishing
        retain = publishing.retain(self.link.terms, message)
        named = self.endpoint.name
        frame = publishing.frame(message, topic, retain, 0, named=named, client=self.client_name)
        if not frame:
            self.link.give_up(self, message_id, publishing.too_large)
            return
        self._send(frame)
        self.trace_sent(message_id, message)
        self.link.accepted(self, message_id)

    def _send(self, frame: bytes) -> None:
        outbox = self.connection.outbox
        outbox.control(frame)
        outbox.messages += 1
        outbox.bytes_ += len(frame)

    def _write_down(self, packet_id: int, message_id: int) -> None:
        spool = self.endpoint.spool
        self.outgoing.session.will_send(packet_id, message_id)
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

    @override
    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        # The oldest batch of identifiers is in the spool.
        batch = self._unsent.pop(0) if self._unsent else []
        if self.closed:
            return
        for packet_id in batch:
            known = self.outgoing.on_the_way.get(packet_id)
            if known is not None and known.flow is self:
                message = self.unacked.get(known.message_id)
                changed = self._changed.pop(known.message_id, message)
                if message is not None and changed is not None:
                    self._publish(packet_id, known, changed, dup=False)

    def _publish(self, packet_id: int, known: OnTheWay, message: Message, *, dup: bool) -> None:
        outgoing = self.outgoing
        publishing = outgoing.publishing
        frame = publishing.frame(
            message,
            known.topic,
            publishing.retain(self.link.terms, message),
            known.qos,
            packet_id,
            dup=dup,
            named=self.endpoint.name,
            client=self.client_name,
        )
        if not frame:
            outgoing.on_the_way.pop(packet_id, None)
            if known.qos == 2:
                outgoing.abandon(packet_id | 2 << 16) if dup else outgoing.session.is_free(
                    packet_id
                )
            self.link.give_up(self, known.message_id, publishing.too_large)
            return
        known.sent = True
        self._send(frame)
        fault = self.endpoint.spool.fault
        if fault is not None:
            fault("deliver-before-flush")
        self.trace_sent(known.message_id, message)

    @override
    def let_be(self, message_id: int) -> None:
        self.outgoing.abandon(self.outgoing.sent_before(message_id))
