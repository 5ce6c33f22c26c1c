"""What clients leave behind, form by form, and what can be done to it: the same acts for its owner and for others.

All clients give the same names (client id or container, link, queue): only their client usernames differ. A protocol
joins the matrix with a subclass of `Form` for each of its forms, and rows in the table of test_matrix.py.
"""

from __future__ import annotations

from typing import Any

from vpnrouter.bridges.link_registry import LinkRegistry
from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.core.guaranteed.endpoint_settings import NO_ACCESS, QUEUE, SUBSCRIPTION
from vpnrouter.core.profile import ClientProfile
from vpnrouter.server.apply.message_vpn_change import judge_all
from vpnrouter.spool.rocks_store import RocksStore
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Attach,
    Close,
    Detach,
    Disposition,
    Rejected,
    Source,
    Target,
    TransactionalState,
    Transfer,
    described,
)
from vpnrouter.wire.amqp.types import Symbol
from vpnrouter.wire.mqtt.packets import (
    Ack,
    Connack,
    Connect,
    Disconnect,
    Publish,
    Suback,
    Subscribe,
    SubscriptionRequest,
    Will,
)
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import PUBACK, PUBCOMP, PUBREC, PUBREL

spooled: Any = None
amqp: Any = None
"""Modules of the other folders, which conftest.py puts here."""

NAME = "c"
"""Client id and container of everybody."""

TOPIC = "secret/x"
OTHER_TOPIC = "other/x"


class Stage:
    """A router with the queue `q` of ann; `publish` sends to TOPIC."""

    def __init__(self, store: Any = None) -> None:
        self.world: Any = spooled.SpooledWorld(store)
        self._senders = 0
        self.watcher: Any = None
        self.world.queue("q", TOPIC, owner="ann", permission=NO_ACCESS)
        self.world.settle()
        self.watch()

    def watch(self) -> None:
        """Have somebody who is sent all Direct and retained copies."""
        self.watcher = self.world.join("watcher", username="watcher")
        assert self.watcher.sub("#", 0) == 0

    def publish(self, body: bytes, topic: str = TOPIC) -> None:
        """Publish a guaranteed message."""
        self._senders += 1
        sender = self.world.join(f"sender {self._senders}", username="sender")
        sender.pub(topic, body)
        ((kind, _, code),) = sender.acks()
        assert (kind, code) == (PUBACK, 0)
        sender.lose()

    def restart(self) -> None:
        """Stop the router and start one with the same store."""
        self.world.settle()
        store = self.world.store
        if isinstance(store, RocksStore):
            store.close()
            self.world.store = RocksStore(store.directory)
        self.world = self.world.restart()
        # What the configuration says of the queue.
        queue = self.world.attract("q", TOPIC)
        settings = queue.settings.copy()
        settings.owner = "ann"
        settings.permission = NO_ACCESS
        queue.take_settings(settings)
        self.watch()

    def allow(
        self,
        subscribe: TopicRule | None = None,
        publish: TopicRule | None = None,
        share: TopicRule | None = None,
        **profile: Any,
    ) -> None:
        """Give everybody another ACL profile and client profile, as a reload brings them."""
        vpn = self.world.vpn()
        acl = AclProfile("default", subscribe=subscribe, publish=publish, share_name=share)
        vpn.acl_profiles = {"default": acl}
        vpn.profiles = {"default": ClientProfile("default", **profile)}
        self.judge()

    def judge(self) -> None:
        """Apply changed rights."""
        judge_all(self.world.vpn(), LinkRegistry(self.world.router))

    def names(self) -> list[str]:
        """Names of the endpoints of subscriptions."""
        return sorted(name for kind, name in self.world.vpn().endpoints if kind == SUBSCRIPTION)

    def close(self) -> None:
        """Close the store."""
        self.world.store.close()


class Form:
    """What one client of `username` has. Acts return why they were refused, "" where they were done.

    `ended`: the router has ended it. `topic` is the filter that it attracts, where it attracts; `wide` is one with a
    wildcard.
    """

    wide = TOPIC

    def __init__(self, stage: Stage, username: str) -> None:
        self.stage = stage
        self.username = username
        self.ended = False
        self.topic = TOPIC

    def make(self) -> str:
        """Make it, or have it again."""
        raise AssertionError(self.username)

    def took(self) -> list[bytes]:
        """Bodies of messages that came, all accepted."""
        raise AssertionError(self.username)

    def leave(self) -> None:
        """Lose the connection."""
        raise AssertionError(self.username)

    def take(self) -> str:
        """Have it, as its owner would."""
        return self.make()

    def peer_or_client(self) -> Any:
        """The client's end of its connection, None without one."""
        raise AssertionError(self.username)


# -- MQTT --------------------------------------------------------------------------------------------


class MqttForm(Form):
    """What a client of MQTT has."""

    wide = "secret/#"

    def __init__(self, stage: Stage, username: str) -> None:
        super().__init__(stage, username)
        self.client: Any = None
        self._came: list[Any] = []

    def connect(self, *, clean: bool = False, lasts: bool = True, **more: Any) -> str:
        """Connect as NAME."""
        self.client = self.stage.world.open("blue")
        properties = spooled.FOREVER if lasts else Properties()
        connect = Connect(
            NAME, username=self.username, clean_start=clean, properties=properties, **more
        )
        self.client.send(connect)
        first, *self._came = self.client.got()
        assert isinstance(first, Connack)
        return "" if first.reason_code == 0 else f"{first.reason_code:#x}"

    def subscribe(self, text: str, qos: int = 1) -> str:
        """Subscribe to a filter."""
        self.client.send(Subscribe(1, [SubscriptionRequest(text, qos)]))
        came = self.client.got()
        (answer,) = [one for one in came if isinstance(one, Suback)]
        self._came += [one for one in came if one is not answer]
        (code,) = answer.reason_codes
        return "" if code < 0x80 else f"{code:#x}"

    def took(self) -> list[bytes]:
        bodies: list[bytes] = []
        if self.client is None:
            return bodies
        came = self._came + self.client.got()
        self._came = []
        while came:
            for packet in came:
                if isinstance(packet, Disconnect):
                    self.ended = True
                elif isinstance(packet, Publish):
                    bodies.append(packet.payload)
                    if packet.qos:
                        kind = PUBACK if packet.qos == 1 else PUBREC
                        self.client.send(Ack(kind, packet.packet_id))
                elif isinstance(packet, Ack) and packet.packet_type == PUBREL:
                    self.client.send(Ack(PUBCOMP, packet.packet_id))
            came = self.client.got()
        return bodies

    def peer_or_client(self) -> Any:
        return self.client

    def leave(self) -> None:
        self.client.lose()
        self.client = None
        self._came = []


class MqttSession(MqttForm):
    """A session with a subscription."""

    def __init__(self, stage: Stage, username: str, qos: int) -> None:
        super().__init__(stage, username)
        self._qos = qos

    def make(self) -> str:
        return self.connect() or self.subscribe(self.topic, self._qos)

    def look_up(self) -> str:
        """Resume it without subscribing."""
        return self.connect()

    def replace(self) -> str:
        """Begin anew under its name."""
        return self.connect(clean=True) or self.subscribe(OTHER_TOPIC, self._qos)

    def delete(self) -> str:
        """End it."""
        why = self.connect(clean=True, lasts=False)
        if not why:
            self.leave()
        return why


class MqttWill(MqttForm):
    """A will; its body is the client username, and who watches gets it when the client has gone."""

    def make(self) -> str:
        will = Will(TOPIC.encode(), self.username.encode(), qos=1)
        return self.connect(clean=True, lasts=False, will=will)

    def took(self) -> list[bytes]:
        if self.client is not None and not self.client.closed:
            self.leave()
        return [one.payload for one in self.stage.watcher.messages()]

    def delete(self) -> str:
        """Take its place without a will."""
        return self.connect(clean=True, lasts=False)


class MqttQueue(MqttForm):
    """The queue q, from which a client consumes."""

    def make(self) -> str:
        return self.connect(clean=True, lasts=False) or self.subscribe("$queue/q")

    def take(self) -> str:
        # Client ids of others are no matter here.
        self.client = self.stage.world.join("another", username=self.username)
        return self.subscribe("$queue/q")

    def look_up(self) -> str:
        """Browse it."""
        self.client = self.stage.world.join("another", username=self.username)
        return self.subscribe("$browse/q")

    def fill(self) -> str:
        """Publish to it by its name."""
        client = self.stage.world.join("another", username=self.username)
        client.pub("$queue/q", b"filled")
        ((_, _, code),) = client.acks()
        return f"{code:#x}" if code else ""


# -- AMQP --------------------------------------------------------------------------------------------


def refusal(answers: list[Any]) -> str:
    """The condition with which a link was refused, "" where it was not."""
    for one in answers:
        if isinstance(one, (Detach, Close)) and one.error is not None:
            return str(one.error.condition)
    return ""


class AmqpForm(Form):
    """What a client of AMQP has: a connection of the container NAME, with a session.

    `credit` is what its links get at once.
    """

    wide = "secret/>"

    def __init__(self, stage: Stage, username: str) -> None:
        super().__init__(stage, username)
        self.peer: Any = None
        self.credit = 100
        self.tags: list[bytes] = []

    def connect(self) -> None:
        """Log in and begin a session."""
        self.peer = amqp.Peer(self.stage.world)
        self.peer.plain(self.username, "")
        self.peer.open(NAME)
        self.peer.begin()

    def took(self) -> list[bytes]:
        bodies: list[bytes] = []
        while self.peer is not None:
            came = self.peer.got()
            ended = [one for one in came if isinstance(one.performative, (Detach, Close))]
            self.ended = self.ended or bool(ended)
            self.peer.kept = [one for one in came if isinstance(one.performative, Transfer)]
            got = self.peer.messages()
            for one in got:
                bodies.append(one.body)
                if not one.transfer.settled:
                    self.peer.settle(one, Accepted())
            if not got:
                break
        return bodies

    def glance(self) -> None:
        """Take what came without settling it; its tags are in `tags`."""
        self.tags = [one.transfer.delivery_tag for one in self.peer.messages()]

    def peer_or_client(self) -> Any:
        return self.peer

    def leave(self) -> None:
        self.peer.connection.lost("gone")
        self.peer = None


class AmqpSubscription(AmqpForm):
    """A subscription to a topic, as JMS clients form it."""

    def __init__(
        self,
        stage: Stage,
        username: str,
        name: str = "s",
        capabilities: tuple[str, ...] = (),
        durable: bool = False,
        mode: int = 0,
    ) -> None:
        super().__init__(stage, username)
        self._name = name
        self._mode = mode
        self._source: dict[str, Any] = {"capabilities": amqp.symbols("topic", *capabilities)}
        if durable:
            self._source |= {"durable": 2, "expiry_policy": Symbol("never")}
        # As unsubscribing names it: without the number of the link.
        first, *rest = name.split("|")
        self._plain = "|".join([first, *[part for part in rest if part == "global"]])

    def make(self) -> str:
        return self._attach(self.topic)

    def attach(self) -> str:
        """Attach it over the connection that there is."""
        return self._attach(self.topic, fresh=False)

    def _attach(self, topic: str, unsettled: Any = None, *, fresh: bool = True) -> str:
        if fresh:
            self.connect()
        answers = self.peer.attach(
            Attach(
                self._name,
                1,
                True,
                self._mode,
                source=Source(f"topic://{topic}", **self._source),
                target=Target("here"),
                unsettled=unsettled,
            )
        )
        why = refusal(answers)
        if not why:
            self.peer.credit(1, self.credit)
        return why

    def look_up(self) -> str:
        """Ask for it by its name (a null source)."""
        self.connect()
        answers = self.peer.attach(Attach(self._plain, 2, True, source=None, target=Target("here")))
        why = refusal(answers)
        if not why:
            assert answers[0].source.address == f"topic://{self.topic}"
        return why

    def replace(self) -> str:
        """Attach it with another topic, which ends it."""
        return self._attach(OTHER_TOPIC)

    def delete(self) -> str:
        """Unsubscribe: ask for it, and close it."""
        why = self.look_up()
        if not why:
            self.peer.say(Detach(2, True))
            assert self.peer.answers() == [Detach(2, True)]
        return why

    def settle(self, tags: list[bytes]) -> str:
        """Resume deliveries that its owner got, and accept them."""
        return self._attach(self.topic, {tag: described(Accepted()) for tag in tags})


class AmqpUnsettled(AmqpForm):
    """Deliveries of a client that sends and settles second: what became of them is kept for it."""

    def _attach(self, unsettled: Any = None) -> Any:
        self.connect()
        answers = self.peer.attach(
            Attach(
                "s",
                0,
                False,
                rcv_settle_mode=1,
                source=Source("here"),
                target=Target(f"topic://{TOPIC}"),
                unsettled=unsettled,
                initial_delivery_count=0,
            )
        )
        assert refusal(answers) == ""
        return answers[0]

    def make(self) -> str:
        self._attach()
        self.peer.send(amqp.message(b"1"))
        self.tags = [bytes(4)]
        return refusal(self.peer.answers())

    def take(self) -> str:
        """Ask what became of it; what the router knows nothing of counts as refused."""
        return "" if self._attach({bytes(4): None}).unsettled else "unknown"


class AmqpTransaction(AmqpForm):
    """A transaction with a message; its ids are small numbers that everybody can guess."""

    def __init__(self, stage: Stage, username: str) -> None:
        super().__init__(stage, username)
        self._id = (1).to_bytes(8, "big")

    def make(self) -> str:
        self.connect()
        self.peer.sender(f"topic://{TOPIC}", 1)
        self.peer.coordinator()
        assert self.peer.declare() == self._id
        state = self.peer.sent(amqp.message(b"1"), 1, state=TransactionalState(self._id))
        assert isinstance(state, TransactionalState)
        return ""

    def _control(self) -> Any:
        if self.peer is None:
            self.connect()
            self.peer.sender(f"topic://{TOPIC}", 1)
            self.peer.coordinator()
        return self.peer

    def take(self) -> str:
        """Commit it."""
        return self._answer(self._control().discharge(self._id))

    def delete(self) -> str:
        """Roll it back."""
        return self._answer(self._control().discharge(self._id, fail=True))

    def fill(self) -> str:
        """Publish in it."""
        peer = self._control()
        state = TransactionalState(self._id)
        return self._answer(peer.sent(amqp.message(b"filled"), 1, state=state))

    def _answer(self, state: Any) -> str:
        if isinstance(state, Rejected) and state.error is not None:
            return str(state.error.condition)
        return ""

    def took(self) -> list[bytes]:
        """What it brought to those who watch, once its owner has committed it."""
        if not self.ended:
            self.ended = bool(self.take())
        return [one.payload for one in self.stage.watcher.messages()]


class AmqpTemporary(AmqpForm):
    """A temporary queue. Everybody may send to it."""

    def make(self) -> str:
        self.connect()
        packet = Target(None, dynamic=True, capabilities=amqp.symbols("temporary-queue"))
        attached, _ = self.peer.sender(None, 5, target=packet)
        self.peer.receiver(attached.target.address, 1)
        self.stage.publish(b"1", f"$queue/{self._queue()}")
        return ""

    def _queue(self) -> str:
        (found,) = [
            name
            for kind, name in self.stage.world.vpn().endpoints
            if kind == QUEUE and name.startswith("_P2P/")
        ]
        return str(found)

    def take(self) -> str:
        """Consume from it."""
        self.connect()
        return refusal(self.peer.receiver(f"queue://{self._queue()}", 1))

    def look_up(self) -> str:
        """Browse it."""
        self.connect()
        copy = Symbol("copy")
        return refusal(self.peer.receiver(f"queue://{self._queue()}", distribution_mode=copy))

    def take_by_mqtt(self) -> str:
        """Consume from it over another protocol."""
        client = self.stage.world.join("another", username=self.username)
        code, _ = client.refused(f"$queue/{self._queue()}")
        return f"{code:#x}"

    def delete(self) -> str:
        """End a link of the same name and handle as the one that made it."""
        self.connect()
        self.peer.sender(f"queue://{self._queue()}", 5)
        self.peer.say(Detach(5, True))
        self.peer.answers()
        return "" if "_P2P" not in str(list(self.stage.world.vpn().endpoints)) else "still there"


class AmqpQueue(AmqpForm):
    """The queue q, from which a client consumes."""

    def make(self) -> str:
        self.connect()
        return refusal(self.peer.receiver("queue://q", 1))

    def look_up(self) -> str:
        """Browse it."""
        self.connect()
        return refusal(self.peer.receiver("queue://q", distribution_mode=Symbol("copy")))

    def fill(self) -> str:
        """Publish to it by its name."""
        self.connect()
        why = refusal(self.peer.sender("queue://q"))
        if not why:
            self.peer.send(amqp.message(b"filled"))
            states = [one.state for one in self.peer.answers() if isinstance(one, Disposition)]
            assert states == [Accepted()]
        return why


SHARED = ("shared",)
GLOBAL = ("shared", "global")

FORMS: dict[tuple[str, str], tuple[type[Form], dict[str, Any]]] = {
    ("mqtt", "session, QoS 1"): (MqttSession, {"qos": 1}),
    ("mqtt", "session, QoS 2"): (MqttSession, {"qos": 2}),
    ("mqtt", "will"): (MqttWill, {}),
    ("mqtt", "queue"): (MqttQueue, {}),
    ("amqp", "link"): (AmqpSubscription, {}),
    ("amqp", "Direct link"): (AmqpSubscription, {"mode": 1}),
    ("amqp", "durable"): (AmqpSubscription, {"durable": True}),
    ("amqp", "durable, global"): (
        AmqpSubscription,
        {"name": "s|global", "capabilities": ("global",), "durable": True},
    ),
    ("amqp", "shared"): (AmqpSubscription, {"name": "s|volatile1", "capabilities": SHARED}),
    ("amqp", "shared, global"): (
        AmqpSubscription,
        {"name": "s|global|volatile1", "capabilities": GLOBAL},
    ),
    ("amqp", "shared, durable"): (
        AmqpSubscription,
        {"name": "s|1", "capabilities": SHARED, "durable": True},
    ),
    ("amqp", "shared, durable, global"): (
        AmqpSubscription,
        {"name": "s|global|2", "capabilities": GLOBAL, "durable": True},
    ),
    ("amqp", "unsettled deliveries"): (AmqpUnsettled, {}),
    ("amqp", "transaction"): (AmqpTransaction, {}),
    ("amqp", "temporary queue"): (AmqpTemporary, {}),
    ("amqp", "queue"): (AmqpQueue, {}),
}
