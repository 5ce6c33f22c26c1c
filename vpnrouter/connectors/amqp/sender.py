"""Links over which a provider of AMQP is sent messages: its credit, and what it says of each (AMQP 1.0, 2.6)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, final

from typing_extensions import override

from vpnrouter import limits
from vpnrouter.connectors.amqp.brokers import QUEUE, kind_and_name
from vpnrouter.connectors.amqp.content import outgoing
from vpnrouter.connectors.amqp.link import SETTLED, UNSETTLED, ProviderLink, said
from vpnrouter.connectors.outward import OutwardFlow
from vpnrouter.core.amqp.outcomes import is_outcome
from vpnrouter.core.amqp.sections import header_of
from vpnrouter.core.amqp.serials import HALF, SERIAL
from vpnrouter.core.conversion import with_application_properties
from vpnrouter.core.discard_reasons import (
    CLIENT_NOT_CONNECTED,
    MSG_TOO_BIG,
    PARSE_ERROR,
    TRANSMIT_CONGESTION,
)
from vpnrouter.core.tracing import leaving
from vpnrouter.errors import ProtocolError
from vpnrouter.trace.events import DELIVER, EVENT_NAMES
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Attach,
    Flow,
    Modified,
    Rejected,
    Source,
    Target,
)
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
class Sender(ProviderLink):
    """One link to the provider, for `link`, to one address or to that of each message.

    `credit` is how many messages more the provider takes; `most` how many bytes of one, 0 for no bound.
    """

    __slots__ = (
        "_count",
        "_held",
        "_kind",
        "_name",
        "_starves",
        "_waiting",
        "credit",
        "flow_out",
        "link",
        "most",
    )

    def __init__(self, session: ClientSession, link: OutwardLink, handle: int) -> None:
        super().__init__(session, link.terms.name, handle)
        self.link = link
        self.flow_out: AmqpOutwardFlow | None = None
        self.credit = 0
        self.most = 0
        self._count = 0
        # Messages waited for credit when it was last looked; the link is held for that.
        self._starves = False
        self._held = False
        self._kind, self._name = kind_and_name(link.terms.target)
        # Direct messages that the provider has no credit for yet.
        self._waiting: deque[tuple[Message, bytes]] = deque()

    @property
    @override
    def receives(self) -> bool:
        return False

    # -- attach ----------------------------------------------------------------------------------

    @override
    def request(self) -> Attach:
        broker = self.session.client.broker
        terms = self.link.terms
        capabilities: list[object] = []
        if broker.capable and self._kind and terms.one_target:
            capabilities.append(Symbol(self._kind))
        address = broker.target(self._kind, self._name) if terms.one_target else None
        return Attach(
            self.name,
            self.handle,
            False,
            UNSETTLED if terms.qos else SETTLED,
            0,
            Source(self.link.label),
            Target(address, capabilities=capabilities or None),
            initial_delivery_count=0,
        )

    @override
    def granted(self, packet: Attach) -> None:
        self.most = packet.max_message_size
        self.link.opened()

    @override
    def refused(self, why: str) -> None:
        self.session.forget(self)
        self.end()
        self.link.not_opened(why)
        self.session.client.retry(self.link.terms.name)

    # -- credit ----------------------------------------------------------------------------------

    @override
    def flow(self, packet: Flow) -> None:
        if packet.link_credit is not None:
            base = 0 if packet.delivery_count is None else packet.delivery_count
            left = (base + packet.link_credit - self._count) & SERIAL
            # What is on its way to the provider may be more than it takes now.
            self.credit = 0 if left >= HALF else left
        if self.credit and self._held:
            self._hold("")
        self.wake()
        if packet.drain:
            flow = self.flow_out
            if flow is not None and self.credit:
                # What is there goes before the rest of the credit is used up (2.6.7).
                flow.endpoint.dispatch()
            self._count = (self._count + self.credit) & SERIAL
            self.credit = 0
        if packet.drain or packet.echo:
            self._tell(drain=packet.drain)

    def _tell(self, *, drain: bool) -> None:
        state = self.session.flow()
        self.session.say(
            state._replace(
                handle=self.handle,
                delivery_count=self._count,
                link_credit=self.credit,
                available=0,
                drain=drain,
            )
        )

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
        starves = (
            flow is not None
            and not self.over
            and self.credit <= 0
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

    def send(self, message: Message, content: bytes, tag: bytes = b"", owner: int = 0) -> bool:
        """Send a message; with a `tag` the provider is to settle it, the spool's message `owner`. False where it is too
        large for the provider.
        """
        session = self.session
        client = session.client
        header = header_of(message, 0, client.vpn)
        if self.most and len(header) + len(content) > self.most:
            return False
        number = session.take_id()
        handle = handle_bytes(self.handle)
        most = client.max_frame
        sent = cut_transfer(0, handle, number, not tag, header, content, most, tag)
        if tag:
            session.unsettled[number] = (self, owner)
        self._count = (self._count + 1) & SERIAL
        self.credit -= 1
        session.transmit(sent)
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

    def settled(self, message_id: int, state: object, *, done: bool) -> bool:
        """Take what the provider says of a message; `done`: it says nothing more. False where it is no outcome."""
        if not done and not is_outcome(state):
            return False
        flow = self.flow_out
        if flow is None or message_id not in flow.unacked:
            return True
        if isinstance(state, Accepted):
            self.link.accepted(flow, message_id)
        else:
            self.link.refused(flow, message_id, _why(state))
        self._fault("ack-received")
        return True

    def _fault(self, point: str) -> None:
        spool = self.session.client.spool
        if spool is not None and spool.fault is not None:
            spool.fault(point)


def _why(state: object) -> str:
    """Return why a provider has not taken a message, for people."""
    if isinstance(state, Rejected):
        return f"the provider rejected it: {said(state.error)}"
    if isinstance(state, Modified):
        where = " here" if state.undeliverable_here else ""
        return f"the provider could not deliver it{where}"
    return "the provider released it"


@final
class AmqpOutwardFlow(OutwardFlow):
    """The flow of one link, over one connection to a provider of AMQP."""

    __slots__ = ("_sender",)

    def __init__(self, sender: Sender, link: OutwardLink, endpoint: Endpoint) -> None:
        super().__init__(link, endpoint, sender.session.client.connection, limits.CLIENT_WINDOW)
        self._sender = sender
        sender.flow_out = self

    @override
    def provider_room(self) -> int:
        sender = self._sender
        if sender.over or not sender.has_room():
            return 0
        client = sender.session.client
        return min(sender.credit, sender.session.window, client.room())

    @override
    def transmit(self, message_id: int, message: Message, topic: bytes) -> None:
        sender = self._sender
        link = self.link
        client = sender.session.client
        try:
            known = f"{client.store}-{self.endpoint.number}-{message_id}"
            endpoint = self.endpoint.name
            content = sender.content(message, topic, endpoint, self.client_name, known)
            if link.terms.qos == 2:
                name = client.broker.duplicate_id
                content = with_application_properties(content, {name: known})
        except ProtocolError as problem:
            link.give_up(self, message_id, f"it is damaged: {problem}")
            return
        tag = message_id.to_bytes(_ID_BYTES, "big") if link.terms.qos else b""
        if not sender.send(message, content, tag, message_id):
            text = f"it is larger than the {sender.most:,} bytes that the provider takes"
            link.give_up(self, message_id, text)
            return
        fault = self.endpoint.spool.fault
        if fault is not None:
            fault("deliver-before-flush")
        self.trace_sent(message_id, message)
        if not tag:
            link.accepted(self, message_id)
