"""Links over which a provider of AMQP is sent messages: its credit, and what it says of each (AMQP 1.0, 2.6)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, final

from typing_extensions import override

from vpnrouter import limits
from vpnrouter.connectors.amqp.batches import Batches, why_not
from vpnrouter.connectors.amqp.brokers import QUEUE, kind_and_name
from vpnrouter.connectors.amqp.content import outgoing
from vpnrouter.connectors.amqp.link import SETTLED, UNSETTLED, OutgoingLink
from vpnrouter.connectors.outward import OutwardFlow
from vpnrouter.core.amqp.outcomes import is_outcome
from vpnrouter.core.amqp.sections import header_of
from vpnrouter.core.conversion import with_application_properties
from vpnrouter.core.discard_reasons import (
    CLIENT_NOT_CONNECTED,
    MSG_TOO_BIG,
    PARSE_ERROR,
    TRANSMIT_CONGESTION,
)
from vpnrouter.core.known_deliveries import KNOWS
from vpnrouter.core.tracing import leaving
from vpnrouter.errors import ProtocolError
from vpnrouter.trace.events import DELIVER, EVENT_NAMES
from vpnrouter.wire.amqp.performatives import Accepted, Attach, Detach, Flow, Source, Target
from vpnrouter.wire.amqp.transfers import cut_transfer, handle_bytes
from vpnrouter.wire.amqp.types import Symbol

if TYPE_CHECKING:
    from vpnrouter.connectors.amqp.session import ClientSession
    from vpnrouter.connectors.outward import OutwardLink
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.message import Message

NO_CREDIT: Final = "the provider gives no credit, as one does whose queue is full"

_ID_BYTES: Final = 8


@final
class Sender(OutgoingLink):
    """One link to the provider, for `link`, to one address or to that of each message.

    `most` is how many bytes of one message the provider takes, 0 for no bound. `batches` are its transactions, None for
    a link without. `known` is how many deliveries the provider knows again by their tags, 0 where that is not needed.
    """

    __slots__ = (
        "_held",
        "_kind",
        "_name",
        "_starves",
        "_waiting",
        "batches",
        "flow_out",
        "known",
        "link",
        "most",
    )

    def __init__(self, session: ClientSession, link: OutwardLink, handle: int) -> None:
        super().__init__(session, link.terms.name, handle)
        self.link = link
        self.flow_out: AmqpOutwardFlow | None = None
        self.batches: Batches | None = None
        self.most = 0
        self.known = 0
        # Messages waited for credit when it was last looked; the link is held for that.
        self._starves = False
        self._held = False
        self._kind, self._name = kind_and_name(link.terms.target)
        # Direct messages that the provider has no credit for yet.
        self._waiting: deque[tuple[Message, bytes]] = deque()

    # -- attach ----------------------------------------------------------------------------------

    @override
    def request(self) -> Attach:
        broker = self.session.client.broker
        terms = self.link.terms
        capabilities: list[object] = []
        if broker.capable and self._kind and terms.one_target:
            capabilities.append(Symbol(self._kind))
        address = broker.target(self._kind, self._name) if terms.one_target else None
        known: list[object] | None = [Symbol(KNOWS)] if self._to_be_known else None
        return Attach(
            self.name,
            self.handle,
            False,
            UNSETTLED if terms.qos else SETTLED,
            0,
            Source(self.link.label),
            Target(address, capabilities=capabilities or None),
            initial_delivery_count=0,
            desired_capabilities=known,
        )

    @property
    def _to_be_known(self) -> bool:
        """Whether the provider is to know deliveries again by their tags: it has no other way."""
        return self.link.terms.qos == 2 and not self.session.client.broker.duplicate_id

    @override
    def granted(self, packet: Attach) -> None:
        if self.over:
            return
        self.most = packet.max_message_size
        if self._to_be_known:
            count = (packet.properties or {}).get(Symbol(KNOWS))
            if not isinstance(count, int) or count <= 0:
                self.session.client.drop(
                    self, "the provider has no room to know its messages again"
                )
                return
            self.known = count
        batches = self.batches
        if batches is None or batches.control.granted_to_us:
            self.link.opened()

    def controlled(self) -> None:
        """The provider has granted the link to its coordinator as well."""
        if self.there and not self.over:
            self.link.opened()

    def uncontrolled(self, why: str) -> None:
        """There is no link to the coordinator: one without the other is of no use."""
        if not self.over:
            self.over = True
            self.session.say(Detach(self.handle, True))
            self.refused(why)

    @override
    def refused(self, why: str) -> None:
        self.session.forget(self)
        self.end()
        if self.batches is not None:
            self.batches.control.drop()
        self.link.not_opened(why)
        self.session.client.retry(self.link.terms.name)

    # -- credit ----------------------------------------------------------------------------------

    @override
    def flow(self, packet: Flow) -> None:
        self.take_credit(packet)
        if self.credit and self._held:
            self._hold("")
        self.wake()
        if packet.drain:
            flow = self.flow_out
            if flow is not None and self.credit:
                # What is there goes before the rest of the credit is used up.
                flow.endpoint.dispatch()
        self.answer(packet)

    @override
    def wake(self) -> None:
        if self.link.status.paused:
            return
        waiting = self._waiting
        while waiting and self.has_room():
            message, topic = waiting.popleft()
            self._unpark(message)
            why = self._send_settled(message, topic)
            if why:
                self._was_not_sent(message, why)
        flow = self.flow_out
        if flow is not None and self.has_room():
            flow.endpoint.wake()

    def look(self) -> None:
        """Hold the link where messages have waited for credit since the last look: the provider's queue is full,
        perhaps.
        """
        flow = self.flow_out
        batches = self.batches
        starves = (
            flow is not None
            and not self.over
            and (self.credit <= 0 or (batches is not None and batches.starves))
            and not flow.unacked
            and flow.endpoint.spooled_count > 0
        )
        if starves and self._starves:
            self._hold(NO_CREDIT)
        self._starves = starves

    def _hold(self, why: str) -> None:
        self._held = why != ""
        self.link.status.hold(why, self.session.client.vpn.context.now_ns)

    def has_room(self) -> bool:
        """Whether the provider takes another message now."""
        session = self.session
        return self.credit > 0 and session.window > 0 and not session.backlog

    # -- messages --------------------------------------------------------------------------------

    def content(
        self, message: Message, topic: bytes, named: str, client: str, name: str = ""
    ) -> bytes:
        """Return the content of a message for `topic`, which is a name at the provider. Raises ProtocolError.

        It comes from the endpoint `named`, and has the id `name` where it has no other one.
        """
        provider = self.session.client
        vpn = provider.vpn
        if message.traced:
            event = EVENT_NAMES[DELIVER]
            block = leaving(vpn.context, message, message.block, vpn.name, event, client, named)
            if block is not message.block:
                message = message.copy()
                message.block = block
        one = self.link.terms.one_target
        to = self._name if one else provider.broker.target(self._kind, topic.decode())
        to_queue = self._kind == QUEUE
        return outgoing(message, vpn.vpn_id, to, to_queue=to_queue, readdress=not one, name=name)

    def send(
        self,
        message: Message,
        content: bytes,
        tag: bytes = b"",
        owner: int = 0,
        state: bytes = b"",
    ) -> bool:
        """Send a message; with a `tag` the provider is to settle it, the spool's message `owner`. `state` says its
        transaction, as it is written. False where it is too large for the provider.
        """
        session = self.session
        client = session.client
        header = header_of(message, 0, client.vpn)
        if self.most and len(header) + len(content) > self.most:
            return False
        number = session.take_id()
        handle = handle_bytes(self.handle)
        most = client.max_frame
        sent = cut_transfer(0, handle, number, not tag, header, content, most, tag=tag, state=state)
        if tag:
            session.unsettled[number] = (self, owner)
        self.use_credit()
        session.transmit(sent)
        if state and self.batches is not None:
            self.batches.sent(owner, number, sent.size)
        return True

    def send_direct(self, message: Message, topic: bytes) -> str:
        """Send a message at most once, or have it wait for credit; "" or why it is discarded."""
        if not self._waiting and self.has_room():
            return self._send_settled(message, topic)
        client = self.session.client
        outbox = client.connection.outbox
        size = message.size + limits.SPOOL_BODY_COST
        if outbox.parked + size > outbox.limit or not client.connection.take(size):
            return TRANSMIT_CONGESTION
        outbox.parked += size
        self._waiting.append((message, topic))
        return ""

    def _send_settled(self, message: Message, topic: bytes) -> str:
        try:
            content = self.content(message, topic, "", self.link.client_name)
        except ProtocolError:
            return PARSE_ERROR
        return "" if self.send(message, content) else MSG_TOO_BIG

    def _unpark(self, message: Message) -> None:
        size = message.size + limits.SPOOL_BODY_COST
        connection = self.session.client.connection
        connection.outbox.parked -= size
        connection.give_back(size)

    def end(self) -> None:
        """Discard what has waited for credit: the link is over."""
        self.flow_out = None
        if self.batches is not None:
            self.batches.end()
        if self._held:
            self._hold("")
        while self._waiting:
            message = self._waiting.popleft()[0]
            self._unpark(message)
            self._was_not_sent(message, CLIENT_NOT_CONNECTED)

    def _was_not_sent(self, message: Message, why: str) -> None:
        """Count as discarded a message that counts as sent, since it was to be sent as soon as there was credit."""
        link = self.link
        link.counters.delivered -= 1
        link.counters.discarded.add(why)
        if link.tap is not None:
            link.vpn.discard(message, why, link.tap)

    # -- answers ---------------------------------------------------------------------------------

    @override
    def settled(self, message_id: int, state: object, *, done: bool) -> bool:
        batches = self.batches
        if batches is not None and batches.holds(message_id):
            return batches.answered(message_id, state, done=done)
        if not done and not is_outcome(state):
            return False
        flow = self.flow_out
        if flow is None or message_id not in flow.unacked:
            return True
        if isinstance(state, Accepted):
            self.link.accepted(flow, message_id)
        else:
            self.link.refused(flow, message_id, why_not(state, self.session.client))
        self.fault("ack-received")
        return True

    @override
    def owed(self, message_id: int) -> tuple[str, int]:
        return self.link.terms.name, message_id

    def fault(self, point: str) -> None:
        """Crash here, where a test wants it."""
        spool = self.session.client.spool
        if spool is not None and spool.fault is not None:
            spool.fault(point)


@final
class AmqpOutwardFlow(OutwardFlow):
    """The flow of one link, over one connection to a provider of AMQP."""

    __slots__ = ("_accepted", "_asks", "_sender", "_synced")

    def __init__(self, sender: Sender, link: OutwardLink, endpoint: Endpoint) -> None:
        terms = link.terms
        window = limits.CLIENT_WINDOW
        if terms.batch_size and not terms.transacted:
            window = min(window, terms.batch_size)
        if sender.known:
            window = min(window, sender.known)
        super().__init__(link, endpoint, sender.session.client.connection, window)
        self._sender = sender
        # Messages that the provider has accepted, and of these, those of which that is synced here.
        self._accepted = 0
        self._synced = 0
        self._asks = False
        sender.flow_out = self

    @override
    def provider_room(self) -> int:
        sender = self._sender
        if sender.over or not sender.has_room():
            return 0
        client = sender.session.client
        room = min(sender.credit, sender.session.window, client.room())
        if sender.known:
            # What is not synced here would be sent again after a crash: the provider has to know it then.
            room = min(room, sender.known - len(self.unacked) - (self._accepted - self._synced))
        batches = sender.batches
        if batches is None or client.proving:
            return room
        return min(room, batches.room(self))

    @override
    def settles(self, message_id: int) -> Message | None:
        message = super().settles(message_id)
        if message is not None and self._sender.known:
            self._accepted += 1
            if not self._asks:
                self._asks = True
                self.endpoint.spool.when_synced(self, self._accepted)
        return message

    @override
    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        self._asks = False
        self._synced = token
        if self._accepted > token:
            self._asks = True
            self.endpoint.spool.when_synced(self, self._accepted)
        if not self.closed:
            self.endpoint.wake()

    @override
    def look_again(self) -> None:
        batches = self._sender.batches
        if batches is not None and self.connection.outbox.size < limits.GUARANTEED_AHEAD_BYTES // 2:
            # No more fits into memory before some of it is answered.
            batches.hurry()
        super().look_again()

    @override
    def letting_go(self) -> None:
        super().letting_go()
        batches = self._sender.batches
        if batches is not None:
            batches.abandon()

    @override
    def transmit(self, message_id: int, message: Message, topic: bytes) -> None:
        sender = self._sender
        link = self.link
        client = sender.session.client
        try:
            known = f"{client.store}-{self.endpoint.number}-{message_id}"
            endpoint = self.endpoint.name
            content = sender.content(message, topic, endpoint, self.client_name, known)
            name = client.broker.duplicate_id
            if name and link.terms.qos == 2:
                content = with_application_properties(content, {name: known})
        except ProtocolError as problem:
            link.give_up(self, message_id, f"it is damaged: {problem}")
            return
        tag = message_id.to_bytes(_ID_BYTES, "big") if link.terms.qos else b""
        if sender.known:
            # As long as the store lasts, no other message of the link has it.
            tag = client.store_id + self.endpoint.number.to_bytes(4, "big") + tag
        batches = sender.batches
        alone = batches is None or client.proving
        state = b"" if batches is None or alone else batches.state_for(self, message_id)
        if not sender.send(message, content, tag, message_id, state):
            text = f"it is larger than the {sender.most:,} bytes that the provider takes"
            link.give_up(self, message_id, text)
            return
        fault = self.endpoint.spool.fault
        if fault is not None:
            fault("deliver-before-flush")
        self.trace_sent(message_id, message)
        if not tag:
            link.accepted(self, message_id)
