"""Keeps an MQTT session: the state that outlives a connection (MQTT 5, 4.1), and how messages reach its client.

Rights are applied at the login, and again whenever they change (promise OWNER). A session keeps everything it asked
for: a right that is taken away and given back restores it. A subscription that the ACL profile denies altogether
stays, but nothing is sent for it. One of QoS 1 or 2 counts as QoS 0 while the client may not receive guaranteed
messages, and its messages go on waiting. Consumers of queues are unbound, and have to be bound again.

What outlives the router are rows in the spool, written in the unit of what they belong to: one for the session, and
one for each subscription (its key is the session's, a NUL, and the filter: a client id has no NUL in it,
MQTT-1.5.4-2), so that a client with many subscriptions writes each of them once.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.core.access import alike
from vpnrouter.core.discard_reasons import (
    MSG_TOO_BIG,
    NO_LOCAL_DELIVERY,
    PUBLISH_TOPIC_ACL,
    TOPIC_PARSE_ERROR,
)
from vpnrouter.core.fault_barrier import CONNECTION, ReleaseStep, release
from vpnrouter.core.guaranteed.endpoint import Endpoint, endpoint_of
from vpnrouter.core.guaranteed.endpoint_settings import SESSION
from vpnrouter.core.guaranteed.message_record import to_record
from vpnrouter.core.guaranteed.refusals import SESSION_ENDED
from vpnrouter.core.guaranteed.spool import spool_of
from vpnrouter.core.login import report_rights, rights_of
from vpnrouter.core.memory_account import MemoryAccount
from vpnrouter.core.message import Message
from vpnrouter.core.mqtt.due_wills import DueWill, due_wills, forget_stored, publish_or_wait
from vpnrouter.core.mqtt.handover import hand_over
from vpnrouter.core.outbox import Outbox
from vpnrouter.core.subscriber import FRAME_MQTT4, FRAME_MQTT5, FRAME_OWN, Subscriber, Subscription
from vpnrouter.core.tracing import leaving
from vpnrouter.errors import ProtocolError, TopicError
from vpnrouter.spool import keys
from vpnrouter.trace.events import DELIVER, EVENT_NAMES
from vpnrouter.units import SECOND_NS
from vpnrouter.wire.mqtt.encode import encode_publish_field
from vpnrouter.wire.mqtt.publish_block import publish_block_with
from vpnrouter.wire.mqtt.reason import QUOTA_EXCEEDED

if TYPE_CHECKING:
    from vpnrouter.core.access import BoundRule
    from vpnrouter.core.client_connection import ClientConnection
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.credentials import ClientUsername
    from vpnrouter.core.guaranteed.spool import Spool
    from vpnrouter.core.login import Admission
    from vpnrouter.core.mqtt.connection import MqttConnection
    from vpnrouter.core.mqtt.qos_sender import QosSender
    from vpnrouter.core.mqtt.subscribe import RetainedFeed
    from vpnrouter.core.profile import ClientProfile
    from vpnrouter.core.route import Route
    from vpnrouter.core.timers import Timer
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.events.table import EventType

EXPIRE: Final = 1
"""Timer kind: the session's expiry interval has passed."""

WILL: Final = 2
"""Timer kind: the will's delay has passed."""

DRAIN: Final = 3
"""Timer kind: a client that took messages slowly, or browses, is looked at again."""

NEVER_S: Final = 0xFFFF_FFFF
"""Session expiry interval that means "never" (MQTT 5, 3.1.2.11.2)."""

ENDPOINT_PREFIX: Final = "#mqtt/"
"""What the names of the endpoints of sessions begin with; the client id follows."""

CONNECTOR_PREFIX: Final = "#connector/"
"""What the client names of connectors begin with; no client may have such a name."""

ID_STEP: Final = 64
ID_COST: Final = 100
"""So many QoS 2 packet identifiers count at a time in the session's account, with so many bytes each."""

SEPARATOR: Final = "\0"

WILL_END: Final = b"\0"
"""Separates the JSON about a will from its message."""


@final
class Will:
    """A will as it will be published, with its delay and expiry in seconds (-1: it does not expire).

    `due_ns` is when it is due (monotonic) while its delay runs, else 0.
    """

    __slots__ = ("delay_s", "due_ns", "expiry_s", "message", "size")

    def __init__(self, message: Message, delay_s: int, expiry_s: int = -1) -> None:
        self.message = message
        self.delay_s = delay_s
        self.expiry_s = expiry_s
        self.due_ns = 0
        self.size = len(message.topic) + len(message.payload) + len(message.block)


@final
class MqttSession(Subscriber):
    """One session of one client in one message VPN.

    `connection` is None while the client is away; then nothing Direct is kept for it. `durable` says that it outlives
    the router, `number` is its key in the spool (0: none yet). `inbound` are QoS 2 packet identifiers of the client
    from PUBLISH to PUBREL, `carried` the spool ids of those that a bridge is to bring across, `outbound` what the
    client is sent with QoS 1 and 2, once it has subscribed so. `receive_maximum` is the client's. `owner` is the client
    username that owns the session and its endpoint (promise OWNER), "" for one stored by an earlier version.
    `username`, `publish_rule` (None: everything), `sends` and `receives` (guaranteed messages) are its rights
    (connect.py). `will_kept`: the store has its will. `is_bridge`: the client of 3.1 or 3.1.1 has said so.
    """

    __slots__ = (
        "_aliased",
        "_aliases",
        "_expiry_timer",
        "_ids_counted",
        "_memory",
        "_new_alias",
        "_will_timer",
        "alias_maximum",
        "carried",
        "connection",
        "durable",
        "expiry_s",
        "feed",
        "inbound",
        "is_bridge",
        "lasting",
        "level",
        "max_packet",
        "number",
        "outbound",
        "owner",
        "publish_rule",
        "receive_maximum",
        "receives",
        "sends",
        "username",
        "vpn",
        "will",
        "will_kept",
    )

    def __init__(self, vpn: MessageVpn, client_id: str, outbox: Outbox, owner: str = "") -> None:
        name = vpn.local_name(client_id)
        super().__init__(client_id, outbox, FRAME_MQTT4, local_name=name, connected=False)
        self.vpn = vpn
        self.level = 4
        self.is_bridge = False
        self.connection: MqttConnection | None = None
        self.expiry_s = 0
        self.lasting = False
        self.alias_maximum = 0
        self.max_packet = 0
        self.receive_maximum = 0
        self.durable = False
        self.number = 0
        self.owner = owner
        self.username: ClientUsername | None = None
        self.publish_rule: BoundRule | None = None
        self.sends = True
        self.receives = True
        self.inbound: set[int] = set()
        self.carried: dict[int, int] = {}
        self.outbound: QosSender | None = None
        self.feed: RetainedFeed | None = None
        self.will: Will | None = None
        self.will_kept = False
        self._memory: MemoryAccount | None = None
        self._ids_counted = 0
        self._aliases: dict[bytes, int] = {}
        # Of the frame encoded last: the alias stands for the topic, or is told to the client.
        self._aliased = False
        self._new_alias = False
        self._expiry_timer: Timer | None = None
        self._will_timer: Timer | None = None

    def memory(self) -> MemoryAccount:
        """The account of the session and of its connection, made when it is needed first."""
        account = self._memory
        if account is None:
            profile = self.profile()
            most = limits.CLIENT_MEMORY
            of_username = limits.USERNAME_MEMORY
            if profile is not None:
                most = profile.max_memory_bytes
                of_username = profile.max_memory_bytes_per_client_username
            home = self.vpn.memory.of(self.owner or self.client_name, of_username)
            account = MemoryAccount(self.client_name, most, home)
            self._memory = account
        return account

    @property
    def memory_held(self) -> int:
        """Bytes that count for the session and its connection."""
        account = self._memory
        return 0 if account is None else account.held

    def profile(self) -> ClientProfile | None:
        """The client profile of its owner, None where that is not known."""
        connection = self.connection
        admission = None if connection is None else connection.admission
        if admission is not None:
            return admission.profile
        rights = rights_of(self.vpn, self.owner)
        return None if rights is None else rights.profile

    # -- life ------------------------------------------------------------------------------------

    def attach(
        self,
        connection: MqttConnection,
        level: int,
        alias_maximum: int,
        max_packet: int,
        receive_maximum: int,
    ) -> None:
        """A client took the session up. A waiting will is not published (MQTT 5, 3.1.3.2.2)."""
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()
            self._expiry_timer = None
        if self._will_timer is not None:
            self._will_timer.cancel()
            self._will_timer = None
        self.connection = connection
        self.outbox = connection.outbox
        self.level = level
        self.alias_maximum = min(alias_maximum, limits.TOPIC_ALIASES)
        self.max_packet = max_packet
        self.receive_maximum = receive_maximum
        self._aliases.clear()
        if alias_maximum or max_packet:
            self.frame = FRAME_OWN
        else:
            self.frame = FRAME_MQTT5 if level == 5 else FRAME_MQTT4
        self.connected = True
        self.vpn.forget_routes(self)
        if self.outbound is not None:
            self.outbound.plug(receive_maximum)
        if self.feed is not None:
            self.feed.go_on()
        if self.durable:
            self.keep()

    def make_endpoint(self, spool: Spool) -> Endpoint:
        """Make the queue behind its subscriptions of QoS 1 and 2, under `number`; nothing is stored.

        It counts for the owner of the session.
        """
        name = ENDPOINT_PREFIX + self.client_name
        settings = self.vpn.session_terms.copy()
        settings.owner = self.owner
        endpoint = Endpoint(spool, self.vpn, SESSION, name, self.number, settings, self.durable)
        self.vpn.endpoints[SESSION, name] = endpoint
        self.vpn.count_endpoint(self.owner, 1)
        self.endpoint = endpoint
        return endpoint

    def belong_to_provider(self) -> None:
        """Take the name by which no-local knows the client now, after that of its connector has changed.

        The client has to log in again; nothing that came by the connector reaches it over any subscription.
        """
        self.local_name = self.vpn.local_name(self.client_name)
        if self.local_name != self.client_name:
            for subscription in self.subscriptions.values():
                subscription.no_local = True
        self.vpn.forget_routes(self)
        if self.connection is not None:
            self.connection.put_out("the connector to its broker was changed")

    def belong_to(self, owner: str) -> None:
        """Make `owner` the owner of a session that was stored without one."""
        if self.lasting:
            self.vpn.lasting.add(self.owner, -1)
            self.vpn.lasting.add(owner, 1)
        if self.will is not None:
            self.vpn.wills.add(self.owner, -self.will.size)
            self.vpn.wills.add(owner, self.will.size)
        self.owner = owner
        if self.endpoint is not None:
            self.endpoint.settings.owner = owner
            self.vpn.count_endpoint(owner, 1)

    def leave(self) -> None:
        """Another connection takes the session: a will without delay is due (MQTT 5, 3.1.3.2.2)."""
        self._unplug()
        if self.will is not None and self.will.delay_s == 0:
            self.publish_will()

    def _unplug(self) -> None:
        self.connection = None
        self.connected = False
        try:
            self.vpn.forget_routes(self)
        finally:
            if self.outbound is not None:
                self.outbound.unplug()

    def detach(self, publish_will: bool) -> None:
        """The connection ended; publish or delay the will, keep or end the session."""
        release(
            [
                # A flow that stays bound holds its messages for ever.
                ReleaseStep("connection", self._unplug, again=True),
                ReleaseStep("will", lambda: self._leave_will(publish_will)),
                ReleaseStep("expiry", self._begin_expiry),
            ],
            self._raised,
        )

    def _leave_will(self, publish_will: bool) -> None:
        if not publish_will:
            self.have_will(None)
        if self.will is not None:
            delay_s = min(self.will.delay_s, self.expiry_s)
            if delay_s == 0:
                self.publish_will()
            else:
                self.await_will(self.will, delay_s * SECOND_NS)
                self._keep_will(self.will)

    def _begin_expiry(self) -> None:
        if self.expiry_s == 0:
            self.end()
            return
        self.expire_in(self.expiry_s * SECOND_NS)
        if self.durable:
            self.keep()

    def _raised(self, error: Exception) -> None:
        cost = "the end of the session goes on"
        barrier = self.vpn.context.barrier
        barrier.caught(error, CONNECTION, self.client_name, self.vpn.name, cost)

    def expire_in(self, left_ns: int) -> None:
        """End the session when its client has not come back by then."""
        if self._expiry_timer is not None:
            # The client came back, and its connection was lost before it was attached.
            self._expiry_timer.cancel()
        if self.expiry_s != NEVER_S:
            context = self.vpn.context
            self._expiry_timer = context.timers.arm(context.now_ns + left_ns, self, EXPIRE)

    def end(self, why: str = "") -> None:
        """The session is over: a waiting will is published now, everything else forgotten.

        With `why`, a change of the configuration ends it, and an event says so.
        """
        release(
            [
                ReleaseStep("timers", self._cancel_timers),
                ReleaseStep("will", self.publish_will),
                ReleaseStep("stored", lambda: self._end_stored(why)),
                ReleaseStep("subscriptions", self._end_subscriptions),
                ReleaseStep("queue", self._end_queue),
                ReleaseStep("name", self._end_name),
                ReleaseStep("memory", self._end_memory),
            ],
            self._raised,
        )

    def _end_stored(self, why: str) -> None:
        """Give what waits for a shared subscription to the others, and forget the session in the store."""
        if self.lasting:
            self.lasting = False
            self.vpn.lasting.add(self.owner, -1)
        hand_over(self, why)
        if self.durable:
            self._erase()

    def _end_subscriptions(self) -> None:
        self.vpn.forget(self)
        if self.feed is not None:
            self.feed.go_on()

    def _end_queue(self) -> None:
        endpoint = endpoint_of(self)
        self.endpoint = None
        if endpoint is not None:
            endpoint.delete(SESSION_ENDED)
            self.vpn.count_endpoint(self.owner, -1)

    def _end_name(self) -> None:
        if self.vpn.clients.get(self.client_name) is self:
            del self.vpn.clients[self.client_name]

    def _end_memory(self) -> None:
        if self._memory is not None:
            self._memory.end()

    def _cancel_timers(self) -> None:
        if self._will_timer is not None:
            self._will_timer.cancel()
            self._will_timer = None
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()
            self._expiry_timer = None

    def have_will(self, will: Will | None) -> None:
        """Set the will, in the store too; None for no will."""
        self._count_will(will)
        if will is not None:
            self.will_kept = self.vpn.context.spool is not None
            self._keep_will(will)
        elif self.will_kept:
            self.will_kept = False
            forget_stored(self.vpn, self.client_name)

    def _count_will(self, will: Will | None) -> None:
        """Set the will, and count its bytes for the client username."""
        change = (0 if will is None else will.size) - (0 if self.will is None else self.will.size)
        self.will = will
        if change:
            self.vpn.wills.add(self.owner, change)

    def last(self) -> None:
        """Note that the session outlives its connection, and count it for its client username."""
        if not self.lasting:
            self.lasting = True
            self.vpn.lasting.add(self.owner, 1)

    def await_will(self, will: Will, left_ns: int) -> None:
        """Publish the will when its client has not come back by then."""
        context = self.vpn.context
        self._count_will(will)
        will.due_ns = context.now_ns + left_ns
        self._will_timer = context.timers.arm(will.due_ns, self, WILL)

    def publish_will(self) -> None:
        """Publish the will, once, if its client may publish it now.

        The unit that has the message also deletes the stored will.
        """
        will = self.will
        route = None if will is None else self._will_route(will.message)
        if will is None or route is None:
            self.have_will(None)
            return
        message = will.message
        if will.expiry_s >= 0:
            message.expires_ns = self.vpn.context.now_ns + will.expiry_s * SECOND_NS
        if not self.sends:
            message.qos = 0
        stored = self.will_kept
        self.will_kept = False
        self._count_will(None)
        due = DueWill(message, self.client_name, self.owner)
        publish_or_wait(self.vpn, route, due, stored=stored)

    def _will_route(self, message: Message) -> Route | None:
        """The route of the will, None where its client may not publish it now."""
        try:
            route = self.vpn.route(message.topic)
        except TopicError:
            # A limit of the message VPN was lowered after the login.
            self.vpn.discard(message, TOPIC_PARSE_ERROR)
            return None
        rule = self.publish_rule
        if (rule is not None and not rule.allows_topic(route.topic)) or not route.may_put(
            self.username, rule
        ):
            self.vpn.discard(message, PUBLISH_TOPIC_ACL)
            return None
        return route

    def owning_connection(self) -> Connection | None:
        """The client's connection, None while it is away."""
        return self.connection

    def client_connection(self) -> ClientConnection | None:
        """The client's connection, None while it is away."""
        return self.connection

    def on_timer(self, kind: int, now_ns: int) -> None:
        """A will delay or the session itself ran out."""
        if kind == WILL:
            self._will_timer = None
            self.publish_will()
        elif kind == DRAIN:
            if self.outbound is not None:
                self.outbound.drained()
        elif self.connection is None:
            # Otherwise an earlier try raised, and the client came back meanwhile.
            self._expiry_timer = None
            self.end()

    # -- rights ----------------------------------------------------------------------------------

    def judge(self, rights: Admission) -> list[str]:
        """Apply `rights`, those of its client username, to a session. Returns the names of what has changed.

        The caller has to forget the routes that the session is in.
        """
        changed: list[str] = []
        self.username = rights.username
        name = rights.username.name
        rule = self.vpn.subscribe_rule(rights.acl, name, self.client_name)
        if not alike(rule, self.rule):
            changed.append("subscribe_topic")
        self.rule = rule
        rule = rights.acl.publish.bound(name, self.client_name)
        if not alike(rule, self.publish_rule):
            changed.append("publish_topic")
        self.publish_rule = rule
        profile = rights.profile
        if self.sends != profile.allow_guaranteed_msg_send_enabled:
            self.sends = profile.allow_guaranteed_msg_send_enabled
            changed.append("allow_guaranteed_msg_send_enabled")
        if self.receives != profile.allow_guaranteed_msg_receive_enabled:
            self._receive(profile.allow_guaranteed_msg_receive_enabled)
            changed.append("allow_guaranteed_msg_receive_enabled")
        if self._share(rights):
            changed.append("shared subscriptions")
        if self.outbound is not None:
            self.outbound.deliveries.clear()
        return changed

    def judge_again(self, rights: Admission, told: bool = True) -> bool:
        """Apply changed `rights` to a session, connected or not, and to its publisher and its flows.

        True when something has changed; this raises an event where `told`.
        """
        changed = self.judge(rights)
        connection = self.connection
        publisher = None if connection is None else connection.publisher
        if publisher is not None:
            publisher.rule = self.publish_rule
            publisher.username = rights.username
            publisher.permitted.clear()
        outbound = self.outbound
        if outbound is not None:
            for flow in list(outbound.flows.values()):
                if flow.browsing:
                    flow.browse()
                else:
                    flow.endpoint.unbind_forbidden()
        if changed and told:
            report_rights(self.vpn, self.client_name, rights, changed)
        return bool(changed)

    def _receive(self, receives: bool) -> None:
        self.receives = receives
        for subscription in self.subscriptions.values():
            subscription.qos = subscription.granted if receives else 0
        if self.outbound is not None:
            self.outbound.open_own()

    def _share(self, rights: Admission) -> bool:
        """Suspend shared subscriptions that are not allowed, and bring back the others. True when one has changed."""
        changed = False
        for subscription in self.subscriptions.values():
            share = subscription.filter.share
            if not share:
                continue
            suspended = not rights.may_share(share, self.client_name)
            if suspended != subscription.suspended:
                self.vpn.suspend(subscription, suspended)
                changed = True
        return changed

    # -- events ----------------------------------------------------------------------------------

    def report(self, kind: EventType, username: str, text: str) -> None:
        """Raise an event about the client and its session."""
        events = self.vpn.context.events
        if events is not None:
            vpn = self.vpn.name
            name = self.client_name
            text = f"VPN {vpn} client {name} username {username}: {text}"
            events.raise_event(kind, vpn, name, text)

    # -- in the store ----------------------------------------------------------------------------

    def number_in(self, spool: Spool) -> int:
        """The number that the session's messages and packet identifiers are kept under; drawn when first needed."""
        if self.number == 0:
            self.number = spool.number()
            if self.durable:
                self.keep()
        return self.number

    def keep(self) -> None:
        """Write down a session that is to last, as it is now: `left_ns` is 0 while its client is here."""
        spool = spool_of(self.vpn.context)
        if spool is None:
            return
        row: dict[str, object] = {
            "level": self.level,
            "expiry": self.expiry_s,
            "number": self.number,
            "endpoint": self.endpoint is not None,
            "left_ns": 0 if self.connected else self.vpn.context.steady_ns,
            "owner": self.owner,
        }
        spool.ledger.put(keys.session(self.vpn.name, self.client_name), json.dumps(row).encode())
        if spool.fault is not None:
            spool.fault("session-saved")

    def keep_subscription(self, subscription: Subscription) -> None:
        """Write down one subscription with its options."""
        spool = spool_of(self.vpn.context)
        if spool is None:
            return
        row = {
            "qos": subscription.granted,
            "no_local": subscription.no_local,
            "retain_as_published": subscription.retain_as_published,
            "identifier": subscription.identifier,
        }
        spool.ledger.put(self._subscription_key(subscription.key), json.dumps(row).encode())

    def begin_inbound(self, packet_id: int) -> None:
        """Remember a QoS 2 packet identifier of the other side. Raises ProtocolError where it leaves too many open."""
        inbound = self.inbound
        inbound.add(packet_id)
        if len(inbound) > self._ids_counted + ID_STEP:
            if not self.memory().keep(ID_STEP * ID_COST):
                raise ProtocolError(QUOTA_EXCEEDED, "too many QoS 2 messages are not released")
            self._ids_counted += ID_STEP

    def end_inbound(self, packet_id: int) -> None:
        """Forget one of these."""
        inbound = self.inbound
        inbound.discard(packet_id)
        if self._ids_counted and len(inbound) + ID_STEP < self._ids_counted:
            self._ids_counted -= ID_STEP
            self.memory().forget(ID_STEP * ID_COST)

    def forget_subscription(self, text: str) -> None:
        """Delete the row of one subscription."""
        spool = spool_of(self.vpn.context)
        if spool is not None:
            spool.ledger.delete(self._subscription_key(text))

    def _erase(self) -> None:
        """Delete all rows of a session, but those of its endpoint."""
        spool = spool_of(self.vpn.context)
        if spool is None:
            return
        ledger = spool.ledger
        ledger.delete(keys.session(self.vpn.name, self.client_name))
        for text in self.subscriptions:
            ledger.delete(self._subscription_key(text))
        for packet_id in self.inbound:
            ledger.delete(keys.inbound(self.number, packet_id))
        if self.outbound is not None and self.number:
            for packet_id in self.outbound.identifiers():
                ledger.delete(keys.outbound(self.number, packet_id))

    def _keep_will(self, will: Will) -> None:
        """Store the will of a session: a router that is killed publishes it when it is back.

        The stored `due_ns` is wall clock time while the delay runs, 0 while the client is connected.
        """
        context = self.vpn.context
        spool = spool_of(context)
        if spool is None:
            return
        message = will.message
        row = {
            "delay": will.delay_s,
            "expiry": will.expiry_s,
            "qos": message.qos,
            "owner": self.owner,
            "due_ns": will.due_ns - context.now_ns + context.steady_ns if will.due_ns else 0,
        }
        record = to_record(message, context.now_ns, context.steady_ns)
        key = keys.will(self.vpn.name, self.client_name)
        spool.ledger.put(key, json.dumps(row).encode() + WILL_END + record)
        if self.vpn.due_wills is not None:
            due_wills(self.vpn).replaced(self.client_name)

    def _subscription_key(self, text: str) -> bytes:
        return keys.session(self.vpn.name, self.client_name + SEPARATOR + text)

    # -- delivery --------------------------------------------------------------------------------

    def deliver(self, message: Message, subscriptions: list[Subscription]) -> None:
        """Encode `message` for this client: identifiers, retain as published, topic alias, no-local."""
        retain = False
        taken = False
        identifiers: list[int] = []
        for subscription in subscriptions:
            if subscription.no_local and message.local_name == self.local_name:
                continue
            taken = True
            if subscription.retain_as_published and message.retain:
                retain = True
            if subscription.identifier:
                identifiers.append(subscription.identifier)
        if not taken:
            self.vpn.discard(message, NO_LOCAL_DELIVERY, self)
        elif self.connected:
            self.send(message, retain, identifiers)

    def send(self, message: Message, retain: bool, identifiers: list[int]) -> None:
        """Queue one Direct PUBLISH for this client, with exactly these flags and identifiers."""
        block = message.mqtt().block
        if message.traced and self.level == 5:
            vpn = self.vpn
            name = EVENT_NAMES[DELIVER]
            block = leaving(vpn.context, message, block, vpn.name, name, self.client_name, "")
        frame = self.encoded(message, block, retain, identifiers)
        if not frame:
            # MQTT 5, 3.1.2.11.4: the client must not get it; the delivery counts as done.
            self.vpn.discard(message, MSG_TOO_BIG, self)
            return
        taken = self.outbox.offer(frame, 1)
        if not taken and self._new_alias:
            # The frame that was to establish the alias never left: nobody knows it.
            del self._aliases[message.topic]
        self._new_alias = False
        if message.traced:
            self.vpn.trace_outcome(self, message, taken)

    def encoded(
        self,
        message: Message,
        block: bytes,
        retain: bool,
        identifiers: list[int],
        qos: int = 0,
        dup: bool = False,
        packet_id: int = 0,
    ) -> bytes:
        """Return the PUBLISH with these properties, flags and identifiers; b"" where it is too large for the client.

        `block` are properties in MQTT's terms. It may establish a topic alias, so what is sent with QoS 1 or 2 must
        leave, and in this order.
        """
        message = message.mqtt()
        if self.level < 5:
            frame = encode_publish_field(
                message.topic, message.payload, b"", qos, retain, dup, packet_id
            )
        else:
            self._new_alias = False
            most = self.alias_maximum
            field = self._field(message, block, identifiers, most)
            topic = b"" if most and self._aliased else message.topic
            frame = encode_publish_field(topic, message.payload, field, qos, retain, dup, packet_id)
            if self._new_alias and self.max_packet and len(frame) > self.max_packet:
                # It may fit without the alias.
                self._new_alias = False
                del self._aliases[message.topic]
                field = self._field(message, block, identifiers, 0)
                frame = encode_publish_field(
                    message.topic, message.payload, field, qos, retain, dup, packet_id
                )
        if self.max_packet and len(frame) > self.max_packet:
            return b""
        return frame

    def _field(
        self, message: Message, block: bytes, identifiers: list[int], alias_maximum: int
    ) -> bytes:
        expiry_s = -1
        if message.expires_ns:
            left_ns = message.expires_ns - self.vpn.context.now_ns
            # It can be more than the interval where the clock was set back while the router was down.
            expiry_s = min(max(0, -(-left_ns // SECOND_NS)), limits.MESSAGE_EXPIRY_S)
        topic = message.topic
        alias = 0
        self._aliased = False
        # In the place of a topic of three bytes an alias makes the packet longer.
        if alias_maximum and 3 < len(topic) <= limits.ALIASED_TOPIC_BYTES:
            alias = self._aliases.get(topic, 0)
            if alias:
                self._aliased = True
            elif len(self._aliases) < alias_maximum:
                alias = len(self._aliases) + 1
                self._aliases[topic] = alias
                self._new_alias = True
        return publish_block_with(block, expiry_s, alias, identifiers)
