"""A connector's connection to a broker that speaks AMQP 1.0: the login, and its links over one session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from typing_extensions import override

from vpnrouter import limits
from vpnrouter.connectors.amqp.batches import Batches
from vpnrouter.connectors.amqp.brokers import (
    KNOWS_NONE,
    ONE_ADDRESS,
    broker_named,
    broker_that_says,
)
from vpnrouter.connectors.amqp.connection import AMQP_DUE, OPENED, AmqpProviderConnection
from vpnrouter.connectors.amqp.known import KnownMessages
from vpnrouter.connectors.amqp.link import Ending, said
from vpnrouter.connectors.amqp.login import REFUSED, SaslLogin
from vpnrouter.connectors.amqp.receiver import Receiver, subscription_name
from vpnrouter.connectors.amqp.sender import AmqpOutwardFlow, Sender
from vpnrouter.connectors.amqp.session import ClientSession
from vpnrouter.connectors.provider import ALONE, ENDED, LOOKS, Loss, Provider
from vpnrouter.connectors.provider_timers import ProviderTimers
from vpnrouter.core.amqp.errors import error
from vpnrouter.core.discard_reasons import CLIENT_NOT_CONNECTED
from vpnrouter.core.guaranteed.unit_of_work import CompletionCallback
from vpnrouter.core.known_deliveries import KNOWS
from vpnrouter.core.tracing import sent_out
from vpnrouter.units import MILLISECOND_NS, SECOND_NS
from vpnrouter.wire.amqp.frames import AMQP_HEADER, EMPTY, MIN_MAX_FRAME
from vpnrouter.wire.amqp.performatives import (
    Close,
    Detach,
    Open,
    SaslChallenge,
    SaslMechanisms,
    SaslOutcome,
)
from vpnrouter.wire.amqp.types import Symbol

if TYPE_CHECKING:
    from vpnrouter.connectors.amqp.brokers import Broker
    from vpnrouter.connectors.amqp.link import ProviderLink
    from vpnrouter.connectors.inward import InwardLink
    from vpnrouter.connectors.links import LinkSettings
    from vpnrouter.connectors.outward import OutwardFlow, OutwardLink
    from vpnrouter.connectors.provider import ConnectorCallbacks
    from vpnrouter.connectors.provider_session import ProviderSession
    from vpnrouter.connectors.settings import ProviderSettings
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.memory_account import MemoryAccount
    from vpnrouter.core.message import Message
    from vpnrouter.core.scram import Derivation
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.errors import ProtocolError

GREET: Final = 0
BEAT: Final = 1
IDLE: Final = 2
WATCH: Final = 3
AGAIN: Final = 4
BATCH: Final = 5
"""Kinds of timers: the login is late, a sign of life is due to the provider, or from it, a look is due whether messages
are answered, refused links are to be asked for again. From the last one on, by the handle of a link: a batch that is
not full has waited."""

AGAIN_NS: Final = 10 * SECOND_NS
"""How soon a link that the provider has refused is asked for again."""

LEAST_BEAT_NS: Final = 50 * MILLISECOND_NS

PROTOCOL: Final = "AMQP 1.0"

RELAY: Final = "ANONYMOUS-RELAY"
"""Capability of a provider that takes messages over a link without an address."""

LEVEL: Final = 10
"""What the row of the session says of its protocol; those of MQTT have their protocol level there."""


@final
class AmqpProvider(Provider):
    """One connection of a connector, from its first header on.

    `host` is whom the address names. `leaving`: it only logs in to end the subscriptions `asked` of the session.
    `broker` says what the provider is, once it has answered, and `knows_deliveries` whether it knows them again by
    their tags. `max_frame` bounds the frames that it takes. `store` names the spool in the ids by which the provider
    knows messages again.
    """

    def __init__(
        self,
        owner: ConnectorCallbacks,
        vpn: MessageVpn,
        peer: str,
        host: str,
        session: ProviderSession,
        home: MemoryAccount,
        inward: list[InwardLink],
        outward: list[OutwardLink],
        settings: ProviderSettings,
        derivations: list[Derivation],
        *,
        leaving: bool = False,
    ) -> None:
        connection = AmqpProviderConnection(vpn.context, self, peer, home)
        super().__init__(
            connection, vpn, session.client_name, PROTOCOL, settings, carries_path=True
        )
        self.amqp_connection = connection
        self.settings = settings
        self.spool = session.spool
        self.session = ClientSession(self)
        self.known = KnownMessages(session)
        self.broker: Broker = broker_named("other")
        self.max_frame = MIN_MAX_FRAME
        self.knows_deliveries = False
        spool = session.spool
        self.store_id = b"" if spool is None else spool.ledger.store_id
        self.store = self.store_id.hex()
        self._owner = owner
        self._kept = session
        self._host = host
        self._inward = {link.terms.name: link for link in inward}
        self._outward = {link.terms.name: link for link in outward}
        self._leaving = leaving
        self._senders: dict[str, Sender] = {}
        self._receivers: dict[str, Receiver] = {}
        self._refused: dict[str, None] = {}
        # Subscriptions that the provider has been asked to end.
        self._forgetting: set[str] = set()
        self._relays = False
        self._joined = False
        self._by_us = False
        self._renews = False
        self._beat_ns = 0
        # How many messages may be on the way, 0 for no bound of this kind; `_proving`: one is suspected.
        self._most = 0
        self._proving = False
        # The message that had to be answered next when it was last looked, and since when.
        self._owed = -1
        self._owed_ns = 0
        self._unanswered = False
        self._read_on = ReadOn(self)
        self._timers = ProviderTimers(self)
        nonce = vpn.credentials.assigned_client_id(vpn.context.ids.next())
        self._login = SaslLogin(connection, settings, nonce, derivations)

    # -- login -----------------------------------------------------------------------------------

    @override
    def begin(self) -> None:
        self._timers.arm(GREET, limits.CONNECT_TIMEOUT_S * SECOND_NS)
        self.amqp_connection.begin()

    def login(self, packet: tuple[Any, ...]) -> None:
        """Take a frame of SASL. Raises ProtocolError, and OperationError for what ends the login."""
        if isinstance(packet, SaslMechanisms):
            self._login.begin([str(name) for name in packet.sasl_server_mechanisms])
        elif isinstance(packet, SaslChallenge):
            self._login.challenged(packet.challenge)
        elif isinstance(packet, SaslOutcome):
            if packet.code:
                why = REFUSED.get(packet.code, f"code {packet.code}")
                self.end(f"the provider refused the login: {why}")
                return
            self._login.accepted(packet.additional_data or b"")
            self._open()

    def _open(self) -> None:
        settings = self.settings
        connection = self.amqp_connection
        connection.state = AMQP_DUE
        connection.outbox.control(AMQP_HEADER)
        properties: dict[object, object] = {Symbol("product"): "vpnrouter"}
        idle_ms = settings.keep_alive_s * 1_000
        connection.say(
            Open(
                settings.client_id,
                settings.virtual_host or self._host,
                limits.AMQP_FRAME_BYTES,
                0,
                idle_ms,
                desired_capabilities=[Symbol(RELAY), Symbol("SHARED-SUBS"), Symbol(KNOWS)],
                properties=properties,
            )
        )

    def opened(self, packet: Open) -> None:
        """The provider has opened the connection. Where it is about to refuse it, `close` follows (Qpid JMS)."""
        connection = self.amqp_connection
        connection.state = OPENED
        named = self.settings.broker
        says = broker_that_says(packet.properties)
        self.broker = says if named == "auto" else broker_named(named)
        offered = [str(name) for name in packet.offered_capabilities or []]
        self.knows_deliveries = KNOWS in offered
        self._relays = self.broker.relays and (RELAY in offered or self.broker.name != "other")
        self.max_frame = min(max(packet.max_frame_size, MIN_MAX_FRAME), limits.AMQP_FRAME_BYTES)
        if packet.idle_time_out:
            # Twice as often as it asks for: what is late on its way is still in time.
            self._beat_ns = max(packet.idle_time_out * MILLISECOND_NS // 2, LEAST_BEAT_NS)
            self._timers.arm(BEAT, self._beat_ns)
        self.session.begin()

    def begun(self) -> None:
        """The session has begun: the provider has let the router in."""
        self._timers.cancel(GREET)
        self._joined = True
        kept = self._kept
        if self._leaving:
            self._forget(list(kept.asked))
            self._leave()
            return
        if kept.is_new or kept.level != LEVEL:
            # What was agreed on over another protocol means nothing here.
            kept.lost_by_provider()
            kept.level = LEVEL
            kept.keep()
            self.known = KnownMessages(kept)
        self.connection.guaranteed = True
        self._timers.arm(IDLE, self.settings.keep_alive_s * SECOND_NS)
        self._watch()
        wanted = self._subscriptions()
        self._forget([name for name in kept.asked if name not in wanted])
        self._owner.joined(self)
        # Now it is known whether the end of the connection before counts against a message. Nothing was sent yet.
        for link in self._outward.values():
            link.sweep()
            if link.suspected:
                self._proving = True
        self._most = ALONE if self._proving else 0

    def closed(self, packet: Close) -> None:
        """The provider closes the connection."""
        self.amqp_connection.say(Close())
        why = said(packet.error, self)
        if not self._joined:
            self._by_us = True
            self.amqp_connection.end(f"the provider refused the connection: {why}")
            return
        self.amqp_connection.end(f"{ENDED}: {why}")

    # -- durable subscriptions -------------------------------------------------------------------

    def _subscriptions(self) -> set[str]:
        """Return the subscriptions of links whose messages wait at the provider, by their names there."""
        terms = [link.terms for link in self._inward.values()]
        return {subscription_name(each, self.broker) for each in terms if each.enabled}

    def _forget(self, names: list[str]) -> None:
        """Have the provider end subscriptions that no link has any more."""
        for name in names:
            handle = self.session.next_handle()
            if handle >= 0:
                self._forgetting.add(name)
                self.session.attach(Ending(self.session, name, handle))

    def forgotten(self, name: str) -> None:
        """The provider has ended a subscription."""
        self._forgetting.discard(name)
        kept = self._kept
        if kept.asked.pop(name, -1) >= 0 and not self._leaving:
            kept.keep()
        self._leave()

    def _leave(self) -> None:
        """Log out where that is all that is to be done, and is done."""
        if self._leaving and not self._forgetting:
            self.end("the subscriptions are over")

    # -- links -----------------------------------------------------------------------------------

    @override
    def obstacle(self, terms: LinkSettings) -> str:
        if terms.qos and self.spool is None:
            return "guaranteed messages are disabled here"
        broker = self.broker
        _, why = broker.obstacle(terms)
        if why or terms.inbound:
            return why
        if not terms.one_target and not self._relays:
            return f"{broker.name} {ONE_ADDRESS}"
        if terms.qos == 2 and not broker.duplicate_id and not self.knows_deliveries:
            return f"{broker.name} {KNOWS_NONE}"
        return ""

    @override
    def ask(self, link: InwardLink) -> None:
        handle = self.session.next_handle()
        if handle < 0:
            link.refused("the provider allows no more links")
            return
        subscription = subscription_name(link.terms, self.broker)
        if subscription and subscription not in self._kept.asked:
            self._kept.asked[subscription] = link.terms.qos
            self._kept.keep()
        receiver = Receiver(self.session, link, handle)
        self._receivers[link.terms.name] = receiver
        self.session.attach(receiver)

    @override
    def inward_paused(self, link: InwardLink) -> None:
        receiver = self._receivers.get(link.terms.name)
        if receiver is not None:
            receiver.pause()

    @override
    def outward_resumed(self, link: OutwardLink) -> None:
        sender = self._senders.get(link.terms.name)
        if sender is not None:
            sender.wake()

    @override
    def offer(self, link: OutwardLink) -> None:
        handle = self.session.next_handle()
        if handle < 0:
            link.not_opened("the provider allows no more links")
            return
        sender = Sender(self.session, link, handle)
        self._senders[link.terms.name] = sender
        self.session.attach(sender)
        if not link.terms.transacted:
            return
        handle = self.session.next_handle()
        if handle < 0:
            sender.uncontrolled("the provider allows no more links")
            return
        sender.batches = Batches(sender, handle)
        self.session.attach(sender.batches.control)

    def drop(self, link: ProviderLink, why: str) -> None:
        """Detach a link that the provider has attached in another way than was asked for."""
        link.over = True
        self.session.say(Detach(link.handle, True))
        link.refused(why)

    def retry(self, name: str) -> None:
        """Ask for a link again after a while."""
        self._refused[name] = None
        self._timers.arm(AGAIN, AGAIN_NS)

    def _ask_again(self) -> None:
        refused, self._refused = self._refused, {}
        for name in refused:
            inward, outward = self._inward.get(name), self._outward.get(name)
            if inward is not None:
                self.ask(inward)
            elif outward is not None:
                self.offer(outward)

    # -- messages that leave ---------------------------------------------------------------------

    @override
    def flow(self, link: OutwardLink, endpoint: Endpoint) -> OutwardFlow:
        return AmqpOutwardFlow(self._senders[link.terms.name], link, endpoint)

    @override
    def send_direct(self, link: OutwardLink, message: Message, topic: bytes) -> str:
        sender = self._senders.get(link.terms.name)
        if sender is None or sender.over:
            return CLIENT_NOT_CONNECTED
        why = sender.send_direct(message, topic)
        if message.traced and link.tap is not None and not why:
            sent_out(self.vpn, link.tap, message, link.label, self.place)
        return why

    def wait_for_batch(self, sender: Sender, wait_ns: int) -> None:
        """Tell a link after so long that its batch has waited long enough."""
        self._timers.arm(BATCH + sender.handle, wait_ns)

    def waits_no_more(self, sender: Sender) -> None:
        """Its batch does not wait any more."""
        self._timers.cancel(BATCH + sender.handle)

    @property
    def proving(self) -> bool:
        """Whether only so many messages may be on the way, since one is suspected of ending the connection."""
        return self._most > 0

    def room(self) -> int:
        """Return how many more guaranteed messages may be on the way."""
        if not self._most:
            return limits.CLIENT_WINDOW
        return self._most - len(self.session.unsettled)

    def answered(self) -> None:
        """The provider has answered messages: it lives on, and may be sent more."""
        if self._most:
            self._most += 1
            if self._most > limits.RECEIVE_MAXIMUM:
                self._most = 0
            self.session.wake()

    def hold_back(self) -> None:
        """Read no further until the next commit, where too much waits for it."""
        spool = self.spool
        connection = self.connection
        if spool is None or spool.down or connection.paused:
            return
        if spool.ledger.pending_bytes > limits.UNIT_BYTES:
            connection.paused = True
            spool.when_synced(self._read_on, 0)

    # -- life ------------------------------------------------------------------------------------

    @override
    def on_timer(self, kind: int) -> None:
        connection = self.amqp_connection
        if connection.closing:
            return
        now_ns = connection.context.now_ns
        if kind == GREET:
            self.end("the login takes too long")
        elif kind == BEAT:
            connection.outbox.control(EMPTY)
            self._timers.arm(BEAT, self._beat_ns)
        elif kind == IDLE:
            self._look_for_life(now_ns)
        elif kind == WATCH:
            self._look(now_ns)
        elif kind == AGAIN:
            self._ask_again()
        else:
            sender = self.session.sender(kind - BATCH)
            if sender is not None and sender.batches is not None:
                sender.batches.hurry()

    def _look_for_life(self, now_ns: int) -> None:
        """End a connection over which nothing comes for one and a half of the time that the provider was told."""
        interval_ns = self.settings.keep_alive_s * SECOND_NS
        silent_ns = now_ns - self.connection.heard_ns
        if silent_ns > interval_ns * 3 // 2 and not self.connection.paused:
            self._by_us = True
            self.connection.cut_off("the provider gives no sign of life")
            return
        for link in self._outward.values():
            link.sweep()
        self._timers.arm(IDLE, interval_ns)

    def _watch(self) -> None:
        timeout_s = self.settings.answer_timeout_s
        if timeout_s:
            self._timers.arm(WATCH, timeout_s * SECOND_NS // LOOKS)

    def _look(self, now_ns: int) -> None:
        """End a connection over which the provider is alive, but does not answer a message for too long."""
        for sender in self._senders.values():
            sender.look()
        owed = next(iter(self.session.unsettled), -1)
        if owed < 0 or owed != self._owed:
            self._owed = owed
            self._owed_ns = now_ns
        if now_ns - self._owed_ns >= self.settings.answer_timeout_s * SECOND_NS:
            self._unanswered = True
            seconds = (now_ns - self._owed_ns) // SECOND_NS
            self.connection.cut_off(f"the provider has not answered a message for {seconds} s")
            return
        self._watch()

    # -- the end ---------------------------------------------------------------------------------

    @override
    def end(self, why: str) -> None:
        self._by_us = True
        connection = self.amqp_connection
        if connection.state == OPENED:
            connection.say(Close())
        connection.end(why)

    @override
    def renew(self, why: str) -> None:
        self._renews = True
        self.end(why)

    def violated(self, problem: ProtocolError) -> None:
        """End the connection for a violation of AMQP by the provider."""
        self._by_us = True
        connection = self.amqp_connection
        if connection.state == OPENED:
            connection.say(Close(error(problem.reason_code, str(problem))))
        connection.end(f"the provider broke the protocol: {problem}")

    @override
    def ended(self, why: str) -> None:
        # What was on the way goes back to its queues.
        self._timers.stop()
        link, message_id = "", 0
        on_the_way = len(self.session.unsettled)
        if on_the_way and not self._by_us:
            sender, number = next(iter(self.session.unsettled.values()))
            link, message_id = sender.owed(number)
        told = self._unanswered or why.startswith(ENDED)
        self.session.end()
        self._owner.lost(
            self,
            Loss(
                why,
                joined=self._joined,
                renews=self._renews,
                link=link,
                message_id=message_id,
                blame=why if told else f"{ENDED}: {why}",
                suspected=self._proving and on_the_way == ALONE,
            ),
        )


@final
class ReadOn(CompletionCallback):
    """Goes on reading a provider when the unit has been committed."""

    __slots__ = ("_provider",)

    def __init__(self, provider: AmqpProvider) -> None:
        self._provider = provider

    @override
    def owning_connection(self) -> Connection | None:
        return self._provider.connection

    @override
    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        if not self._provider.connection.closing:
            self._provider.connection.resume()
