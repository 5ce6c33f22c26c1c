"""Links over which a provider of AMQP sends: credit, messages in parts, and what becomes of each (AMQP 1.0, 2.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from typing_extensions import override

from vpnrouter import limits
from vpnrouter.connectors.amqp.brokers import GLOBAL, TOPIC, kind_and_name
from vpnrouter.connectors.amqp.content import bare_of, came_before, is_named, taken_path
from vpnrouter.connectors.amqp.known import digest_of
from vpnrouter.connectors.amqp.link import SETTLED, SHARED, UNSETTLED, ProviderLink
from vpnrouter.connectors.links import LinkTopics
from vpnrouter.connectors.provider import Receipts
from vpnrouter.connectors.visited import entry_of
from vpnrouter.core.amqp.errors import error
from vpnrouter.core.amqp.incoming_message import message_of
from vpnrouter.core.amqp.serials import SERIAL
from vpnrouter.core.conversion import MEASURE, read_head
from vpnrouter.core.discard_reasons import MSG_TOO_BIG, PARSE_ERROR, TOPIC_PARSE_ERROR
from vpnrouter.core.guaranteed.unit_of_work import REJECTED
from vpnrouter.errors import ProtocolError, TopicError
from vpnrouter.wire.amqp import conditions
from vpnrouter.wire.amqp.performatives import (
    Attach,
    Disposition,
    Flow,
    Rejected,
    Released,
    Source,
    Target,
    Transfer,
)
from vpnrouter.wire.amqp.types import Described, Symbol

if TYPE_CHECKING:
    from vpnrouter.connectors.amqp.brokers import Broker
    from vpnrouter.connectors.amqp.session import ClientSession
    from vpnrouter.connectors.inward import InwardLink
    from vpnrouter.connectors.links import LinkSettings
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.conversion import MessageHead

KEPT_FOR_EVER: Final = 2
"""Durability of a subscription whose messages wait for the connector (3.5.5)."""

_SELECTOR: Final = Symbol("apache.org:selector-filter:string")
"""Descriptor of the registered filter for selectors: all brokers know its name, and not all its number."""

OUTCOMES: Final = (
    "amqp:accepted:list",
    "amqp:rejected:list",
    "amqp:released:list",
    "amqp:modified:list",
)


def subscription_name(terms: LinkSettings, broker: Broker) -> str:
    """Return the name of the link by which a broker knows a durable subscription, "" where it has none by that."""
    if not terms.subscription or broker.subscription:
        return ""
    return terms.subscription + (GLOBAL if terms.shared and broker.capable else "")


@final
class Incoming(Receipts):
    """The answers for the guaranteed messages of a link; a token is the id of a delivery."""

    __slots__ = ("_receiver",)

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver

    @override
    def owning_connection(self) -> Connection | None:
        return self._receiver.session.client.connection

    @override
    def remember(self, token: int) -> None:
        receiver = self._receiver
        digest = receiver.digests.get(token, b"")
        if digest:
            receiver.session.client.known.remember(digest)

    @override
    def forget(self, token: int) -> None:
        receiver = self._receiver
        digest = receiver.digests.get(token, b"")
        if digest:
            receiver.session.client.known.forget(digest)

    @override
    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        # What is refused waits, and is answered later.
        if outcome != REJECTED:
            self._receiver.taken(token)


@final
class Receiver(ProviderLink):
    """One link from the provider, for `link`. `digests` are those of deliveries that are known again, until they are
    answered.

    `whole`: the next frame begins a message.
    """

    __slots__ = (
        "_count",
        "_credit",
        "_data",
        "_incoming",
        "_kind",
        "_late",
        "_most",
        "_name",
        "_number",
        "_open",
        "_settled",
        "_size",
        "_topics",
        "_window",
        "digests",
        "link",
    )

    def __init__(self, session: ClientSession, link: InwardLink, handle: int) -> None:
        terms = link.terms
        name = subscription_name(terms, session.client.broker)
        super().__init__(session, name or terms.name, handle)
        self.link = link
        self.digests: dict[int, bytes] = {}
        client = session.client
        self._kind, self._name = kind_and_name(terms.source)
        self._topics = LinkTopics([terms])
        self._incoming = Incoming(self)
        self._window = client.settings.window
        self._credit = 0
        # Messages that may be on their way, though the credit for them was taken back.
        self._late = 0
        self._count = 0
        # Deliveries that are not answered.
        self._open = 0
        bounds = client.vpn.limits
        self._most = bounds.max_msg_size + limits.PROPERTY_BYTES
        # The delivery of which parts have come: its id (-1 for none), what has come, of how many bytes in all.
        self._number = -1
        self._data = bytearray()
        self._size = 0
        self._settled = False

    @property
    @override
    def receives(self) -> bool:
        return True

    @property
    def whole(self) -> bool:
        """Whether the next frame begins a message."""
        return self._number < 0

    # -- attach ----------------------------------------------------------------------------------

    @override
    def request(self) -> Attach:
        terms = self.link.terms
        client = self.session.client
        broker = client.broker
        capabilities: list[object] = []
        if broker.capable and self._kind:
            capabilities.append(Symbol(self._kind))
        if broker.capable and terms.shared:
            capabilities += SHARED
        chosen: dict[object, object] = {}
        if terms.selector_text:
            chosen[Symbol("jms-selector")] = Described(_SELECTOR, terms.selector_text)
        durable = subscription_name(terms, broker) != ""
        source = Source(
            broker.origin(self._kind, self._name, terms.subscription),
            durable=KEPT_FOR_EVER if durable else 0,
            expiry_policy=Symbol("never" if durable else "link-detach"),
            filter=chosen or None,
            default_outcome=Released(),
            outcomes=[Symbol(name) for name in OUTCOMES],
            capabilities=capabilities or None,
        )
        mode = UNSETTLED if terms.qos else SETTLED
        return Attach(
            self.name,
            self.handle,
            True,
            mode,
            0,
            source,
            Target(self.link.label),
            max_message_size=self._most,
        )

    @override
    def granted(self, packet: Attach) -> None:
        terms = self.link.terms
        chosen = packet.source.filter if isinstance(packet.source, Source) else None
        if terms.selector_text and not chosen:
            self.session.client.drop(self, "the provider knows no selectors")
            return
        if terms.qos and packet.snd_settle_mode == SETTLED:
            self.session.client.drop(self, "the provider sends without waiting for an answer")
            return
        self._count = packet.initial_delivery_count or 0
        self.link.opened()
        self._grant()

    @override
    def refused(self, why: str) -> None:
        self._drop_parts()
        self.link.refused(why)
        self.session.client.retry(self.link.terms.name)

    # -- credit ----------------------------------------------------------------------------------

    @override
    def flow(self, packet: Flow) -> None:
        if packet.delivery_count is not None:
            self._count = packet.delivery_count
        if packet.echo:
            self._tell()

    def _grant(self) -> None:
        """Let the provider send more, where half of the window is free: what is not answered counts in it."""
        free = self._window - self._open - self._credit
        if free * 2 >= self._window and not self.over and not self.link.status.paused:
            self._credit += free
            self._tell()

    def pause(self) -> None:
        """Take the credit back from the provider, or give it again: the link was paused, or goes on."""
        if not self.attached or self.over:
            return
        if not self.link.status.paused:
            self._grant()
        elif self._credit:
            self._late = min(self._window, self._late + self._credit)
            self._credit = 0
            self._tell()

    def _tell(self) -> None:
        state = self.session.flow()
        self.session.say(
            state._replace(handle=self.handle, delivery_count=self._count, link_credit=self._credit)
        )

    def _used(self) -> None:
        self._count = (self._count + 1) & SERIAL
        if self._credit == 0 and self._late:
            self._late -= 1
            return
        self._credit -= 1
        if self._credit < 0:
            raise ProtocolError(
                conditions.TRANSFER_LIMIT_EXCEEDED, "2.6.7: a message without credit"
            )

    # -- messages --------------------------------------------------------------------------------

    def transfer(self, packet: Transfer, payload: bytes, length: int) -> None:
        """Take one frame of a message. Raises ProtocolError."""
        if self._number < 0:
            if packet.delivery_id is None:
                raise ProtocolError(conditions.INVALID_FIELD, "2.7.5: a delivery without an id")
            self._number = packet.delivery_id
            self._size = 0
            self._settled = False
        elif packet.delivery_id not in (None, self._number):
            raise ProtocolError(conditions.ILLEGAL_STATE, "2.6.14: another delivery within one")
        self._settled = self._settled or packet.settled is True
        if packet.aborted:
            self._drop_parts()
            self._used()
            self._grant()
            return
        self._size += len(payload)
        if self._size > self._most:
            # It is passed over as it comes.
            self._data.clear()
        elif packet.more or self._data:
            self._data += payload
        self.session.client.connection.keep_packet(len(self._data))
        if packet.more:
            return
        number, size, settled = self._number, self._size, self._settled
        data = bytes(self._data) if self._data else payload
        self._drop_parts()
        if size > self._most:
            self._used()
            self.link.passed_over(size, MSG_TOO_BIG)
            self._reject(number, f"more than {self._most:,} bytes", settled=settled)
        elif packet.message_format:
            self._used()
            self.link.passed_over(length, PARSE_ERROR)
            self._reject(number, "its format is not known here", settled=settled)
        else:
            self.take(number, data, length, settled=settled)

    def _drop_parts(self) -> None:
        self._number = -1
        self._size = 0
        if self._data:
            self._data = bytearray()
        self.session.client.connection.keep_packet(0)

    def take(self, number: int, payload: bytes, length: int, *, settled: bool) -> None:
        """Take a message, whose last frame had `length` bytes. Raises ProtocolError for one without credit."""
        self._used()
        link = self.link
        client = self.session.client
        context = client.vpn.context
        try:
            head = read_head(payload)
            image = self._topic(head)
            flaw = ""
            try:
                image = self._topics.of(image)[0]
            except TopicError:
                flaw = TOPIC_PARSE_ERROR
            message = message_of(context, image, head, link.source, settled=settled)
            message.path = [*taken_path(message), entry_of(client.place, carries_path=True)]
        except (ProtocolError, TopicError, UnicodeError) as problem:
            parsed = isinstance(problem, ProtocolError)
            link.passed_over(length, PARSE_ERROR if parsed else TOPIC_PARSE_ERROR)
            self._reject(number, str(problem), settled=settled)
            return
        message.hops = len(message.path)
        guaranteed = not settled and link.terms.qos > 0
        message.qos = 1 if guaranteed else 0
        message.persistent = guaranteed
        digest = b""
        if guaranteed and link.terms.qos == 2:
            digest = digest_of(link.terms.name, bare_of(head.content))
            if digest in client.known and (is_named(head.content) or came_before(payload)):
                self._leave_out(number, length)
                return
        why = link.takes(message, length) or flaw
        if why and not (guaranteed and link.buries(why)):
            link.discards(message, why)
            if why in (TOPIC_PARSE_ERROR, MSG_TOO_BIG):
                self._reject(number, why, settled=settled)
            else:
                self._answer(number, settled=settled)
        elif guaranteed:
            self._open += 1
            if digest:
                self.digests[number] = digest
            link.enter(message, self._incoming, number, why)
            client.hold_back()
        else:
            link.enter_direct(message, client.connection)
            self._answer(number, settled=settled)
        context.work += MEASURE.work()

    def _topic(self, head: MessageHead) -> bytes:
        """Return what a message is called here before the link renames it: the topic that it was sent to, else the
        name of the source.
        """
        if self._kind == TOPIC and head.to:
            return kind_and_name(head.to)[1].encode()
        return self._name.encode()

    def _leave_out(self, number: int, length: int) -> None:
        """Answer a message that is known, when what it is known by is synced."""
        counters = self.link.counters
        counters.messages += 1
        counters.bytes_ += length
        counters.duplicates += 1
        self._open += 1
        spool = self.session.client.spool
        if spool is None:
            self.taken(number)
        else:
            spool.when_synced(self._incoming, number)

    # -- answers ---------------------------------------------------------------------------------

    def taken(self, number: int) -> None:
        """A guaranteed message is in the synced spool: it is settled."""
        self.digests.pop(number, b"")
        self._open -= 1
        if not self.over and not self.session.client.connection.closing:
            self.session.accept(number)
            self._grant()

    def _answer(self, number: int, *, settled: bool) -> None:
        if not settled:
            self.session.accept(number)
        self._grant()

    def _reject(self, number: int, why: str, *, settled: bool) -> None:
        """Refuse a message that can never enter: the provider has a place for such ones."""
        if not settled:
            state = Rejected(error(conditions.INVALID_FIELD, why))
            self.session.say(Disposition(True, number, number, True, state))
        self._grant()
