"""What selectors cost is counted and shared out among turns, whoever publishes and whoever receives."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter import limits
from vpnrouter.core.conversion import MEASURE
from vpnrouter.selectors import parse_selector
from vpnrouter.spool import keys
from vpnrouter.testing.memory import FakeLink
from vpnrouter.units import SECOND_NS
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Attach,
    Discharge,
    Disposition,
    Flow,
    Source,
    Target,
    TransactionalState,
    Transfer,
    write,
)
from vpnrouter.wire.amqp.types import Described, Symbol
from vpnrouter.wire.mqtt.packets import (
    Ack,
    Connect,
    Disconnect,
    Publish,
    Subscribe,
    SubscriptionRequest,
    Will,
)
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    from tests.core.amqp.amqp_peer import Peer
    from tests.core.mqtt.spooled import SpooledWorld

MANY = 8
"""Receivers. The selector of each costs more than a turn for each message."""

BOUND = limits.TURN_WORK + limits.SELECTOR_LOOKED // 32 + 200
"""What a turn may cost: what it may do, one evaluation at its end, and a message besides."""

VALUES = {b"0": "a" * 65_000 + "b", b"1": "a" * 65_000, b"2": "b" + "a" * 65_000, b"3": ""}
"""Property `k` by payload; the selectors match those with `b` behind something, and those without the property."""

WANTED = [b"0", b"3"]


def selector(number: int) -> str:
    """One that costs much and differs from those of the other receivers."""
    return f"p{number} = 1 OR k LIKE '%a_b%' OR k IS NULL OR k LIKE '%a_%b%'"


def filters(number: int) -> dict[Symbol, Described]:
    """Return the filters of an AMQP source with that selector."""
    name = Symbol("apache.org:selector-filter:string")
    return {Symbol("s"): Described(name, selector(number))}


class Turns:
    """Counts the turns of a router, and looks at what each costs."""

    def __init__(self, router: SpooledWorld) -> None:
        self.router = router
        self.count = 0

    def after(self, name: str) -> None:
        """A turn has ended."""
        # What nobody has counted yet as well.
        work = self.router.router.context.work + MEASURE.work()
        assert work <= BOUND, f"{name}: {work}"
        self.count += 1

    def run(self) -> None:
        """Do all that there is to do, turn by turn."""
        router = self.router
        jobs = router.router.context.jobs
        while True:
            while len(jobs):
                jobs.step()
                self.after("a job")
            batch = router.spool.end_round()
            self.after("a round")
            if batch is not None:
                router.store.commit(batch)
                router.spool.committed()
                self.after("a commit")
            elif not router.spool.busy and not len(jobs):
                return


# -- receivers: each yields, when it is asked, the payloads that came -----------------------------------


def bodies(peer: Peer) -> list[bytes]:
    """What a client of AMQP got, in order."""
    return [got.body for got in peer.messages()]


def amqp_topic(router: SpooledWorld, join: Any, number: int) -> Callable[[], list[bytes]]:
    """A link for Direct messages."""
    peer = join(f"r{number}")
    peer.receiver("topic://t", filter=filters(number), mode=1)
    return lambda: bodies(peer)


def amqp_durable(router: SpooledWorld, join: Any, number: int) -> Callable[[], list[bytes]]:
    """A durable subscription."""
    peer = join(f"r{number}")
    policy = Symbol("never")
    source = {"durable": 2, "expiry_policy": policy, "filter": filters(number)}
    peer.receiver("topic://t", name="sub", **source)
    return lambda: bodies(peer)


def bridge(router: SpooledWorld, join: Any, number: int) -> Callable[[], list[bytes]]:
    """A link of a bridge that attracts the topic."""
    link = FakeLink(router.vpn(), f"there/{number}")
    link.subscribe("t", selector=parse_selector(selector(number)))

    def taken() -> list[bytes]:
        payloads = [message.mqtt().payload for message in link.singles]
        link.singles.clear()
        return payloads

    return taken


def queued(router: SpooledWorld, number: int) -> str:
    """The name of a queue that attracts the topic."""
    router.queue(f"q{number}", "t")
    return f"q{number}"


def amqp_queue(router: SpooledWorld, join: Any, number: int) -> Callable[[], list[bytes]]:
    """A consumer of a queue."""
    peer = join(f"r{number}")
    peer.receiver(f"queue://{queued(router, number)}", filter=filters(number))
    return lambda: bodies(peer)


def amqp_browser(router: SpooledWorld, join: Any, number: int) -> Callable[[], list[bytes]]:
    """A browser of a queue."""
    peer = join(f"r{number}")
    address = f"queue://{queued(router, number)}"
    peer.receiver(address, filter=filters(number), distribution_mode=Symbol("copy"), mode=1)
    return lambda: bodies(peer)


def mqtt_flow(router: SpooledWorld, number: int, text: str) -> Callable[[], list[bytes]]:
    """A client of MQTT with a selector."""
    client = router.join(f"r{number}")
    name = queued(router, number)
    assert client.sub(text.format(name), user=[("selector", selector(number))]) == 1
    return lambda: [message.payload for message in client.messages()]


def mqtt_queue(router: SpooledWorld, join: Any, number: int) -> Callable[[], list[bytes]]:
    """A consumer of a queue."""
    return mqtt_flow(router, number, "$queue/{}")


def mqtt_browser(router: SpooledWorld, join: Any, number: int) -> Callable[[], list[bytes]]:
    """A browser of a queue."""
    return mqtt_flow(router, number, "$browse/{}")


RECEIVERS = [
    amqp_topic,
    amqp_durable,
    bridge,
    amqp_queue,
    amqp_browser,
    mqtt_queue,
    mqtt_browser,
]

# -- publishers: each publishes all messages at once, and returns how it is seen that they were answered ---


def by_mqtt(router: SpooledWorld, qos: int) -> Callable[[], bool]:
    """A client of MQTT."""
    client = router.join("p")
    packets = []
    for number, (payload, value) in enumerate(VALUES.items()):
        user = [("k", value)] if value else [("other", "x")]
        packets.append(
            Publish(
                b"t",
                payload,
                qos=qos,
                packet_id=number + 1,
                properties=Properties(user_properties=user),
            )
        )
    client.send(*packets)

    def answered() -> bool:
        packets = client.got()
        assert all(isinstance(packet, Ack) and packet.reason_code < 0x80 for packet in packets)
        ids = [packet.packet_id for packet in packets if isinstance(packet, Ack)]
        return ids == ([1, 2, 3, 4] if qos else [])

    return answered


def by_amqp(
    router: SpooledWorld, join: Any, amqp: ModuleType, *, settled: bool, within: bool = False
) -> Callable[[], bool]:
    """A client of AMQP."""
    peer = join("p")
    peer.sender("topic://t")
    state = None
    if within:
        peer.coordinator()
        txn_id = peer.declare()
        state = TransactionalState(txn_id)
    for payload, value in VALUES.items():
        application: Any = {"k": value} if value else {"other": "x"}
        data = amqp.message(payload, application=application)
        peer.send(data, settled=settled, state=state)
    if within:
        return lambda: isinstance(peer.discharge(txn_id), Accepted)

    def answered() -> bool:
        told = [one for one in peer.answers() if isinstance(one, Disposition)]
        count = sum((one.last or one.first) - one.first + 1 for one in told)
        assert all(isinstance(one.state, Accepted) for one in told)
        return count == (0 if settled else 4)

    return answered


def by_will(router: SpooledWorld, cause: str, qos: int) -> Callable[[], bool]:
    """Clients whose wills are due one after the other."""
    delay_s, lasts_s = CAUSES[cause]
    clients = {}
    for payload, value in VALUES.items():
        user = [("k", value)] if value else [("other", "x")]
        more = Properties(user_properties=user, will_delay_interval=delay_s)
        name = f"w{payload.decode()}"
        clients[name] = router.join(
            name,
            will=Will(b"t", payload, qos, properties=more),
            properties=Properties(session_expiry_interval=lasts_s),
        )
    for name, client in clients.items():
        if cause == "takeover":
            router.open().send(Connect(name))
        else:
            client.lose()
    context = router.router.context
    context.now_ns += 20 * SECOND_NS
    context.work = 0
    context.timers.run(context.now_ns)

    def done() -> bool:
        router.settle()
        return router.vpn().wills.total == 0

    return done


CAUSES = {"lost": (0, 0), "takeover": (0, 0), "delay": (9, 99), "expiry": (9, 5)}
"""Why wills are due: the delay of each, and how long its session lasts, in seconds."""

WILLS: dict[str, Callable[..., Callable[[], bool]]] = {
    f"will {cause} {qos}": lambda router, join, amqp, cause=cause, qos=qos: by_will(
        router, cause, qos
    )
    for cause in ("lost", "takeover", "delay", "expiry")
    for qos in (0, 1)
}

PUBLISHERS: dict[str, Callable[..., Callable[[], bool]]] = {
    **WILLS,
    "mqtt 0": lambda router, join, amqp: by_mqtt(router, 0),
    "mqtt 1": lambda router, join, amqp: by_mqtt(router, 1),
    "mqtt 2": lambda router, join, amqp: by_mqtt(router, 2),
    "amqp settled": lambda router, join, amqp: by_amqp(router, join, amqp, settled=True),
    "amqp unsettled": lambda router, join, amqp: by_amqp(router, join, amqp, settled=False),
    "amqp within": lambda router, join, amqp: by_amqp(
        router, join, amqp, settled=False, within=True
    ),
}


@pytest.mark.parametrize("publisher", PUBLISHERS)
@pytest.mark.parametrize("receiver", RECEIVERS)
def test_no_turn_is_long(
    router: SpooledWorld, join: Any, amqp: ModuleType, receiver: Any, publisher: str
) -> None:
    """Of many receivers with expensive selectors each gets what it wants, in order, and no turn is long."""
    takers = [receiver(router, join, number) for number in range(MANY)]
    turns = Turns(router)
    answered = PUBLISHERS[publisher](router, join, amqp)
    turns.after("publishing")
    # Whatever looks at what came does what there is to do first.
    router.settle = turns.run  # type: ignore[method-assign]
    assert answered()
    # A browser looks again after a while.
    context = router.router.context
    context.now_ns += 5 * SECOND_NS
    context.timers.run(context.now_ns)
    turns.after("timers")
    # Wills are those of several clients, whose order is open.
    ordered = sorted if publisher in WILLS else list
    assert [ordered(take()) for take in takers] == [WANTED] * MANY
    assert turns.count > 2 * MANY


@pytest.mark.parametrize("qos", [0, 1])
def test_client_that_ends_behind_its_message(
    router: SpooledWorld, join: Any, amqp: ModuleType, qos: int
) -> None:
    """A Direct message is delivered all the same; one that was not acknowledged is not."""
    takers = [amqp_topic(router, join, number) for number in range(MANY)]
    client = router.join("p")
    client.publish(
        "t",
        b"0",
        qos=qos,
        packet_id=1,
        properties=Properties(user_properties=[("k", VALUES[b"0"])]),
    )
    client.lose()
    Turns(router).run()
    assert [take() for take in takers] == [[b"0"] if qos == 0 else []] * MANY
    assert router.vpn().ingress_flows == 0


def test_who_comes_meanwhile_is_too_late(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """A subscription that is made while a message waits gets the next one, and this one where it has no selector."""
    takers = [amqp_topic(router, join, number) for number in range(MANY)]
    late = [router.join("plain"), join("late")]
    client = router.join("p")
    user = [("k", VALUES[b"0"])]
    packets = [
        Publish(b"t", payload, properties=Properties(user_properties=user))
        for payload in (b"0", b"1")
    ]
    client.send(*packets)
    jobs = router.router.context.jobs
    jobs.step()
    late[0].send(Subscribe(1, [SubscriptionRequest("t", 0)]))
    late[1].say(
        Attach(
            "late",
            1,
            True,
            1,
            source=Source("topic://t", filter=filters(99)),
            target=Target("here"),
        ),
        Flow(0, 5_000, 0, 5_000, 1, 0, 100),
    )
    Turns(router).run()
    assert [take() for take in takers] == [[b"0", b"1"]] * MANY
    assert [packet.payload for packet in late[0].got() if isinstance(packet, Publish)] == [
        b"0",
        b"1",
    ]
    assert [
        frame.payload[-1:] for frame in late[1].got() if isinstance(frame.performative, Transfer)
    ] == [b"1"]


@pytest.mark.parametrize("qos", [0, 1])
def test_messages_without_properties(
    router: SpooledWorld, join: Any, amqp: ModuleType, qos: int
) -> None:
    """Topics and long selectors count as well: what comes in one chunk is delivered over several turns, in order."""
    peer = join("r")
    terms = " OR ".join(f"p{number} = 1" for number in range(500))
    for number in range(20):
        source = {
            Symbol("s"): Described(
                Symbol("apache.org:selector-filter:string"), f"{terms} OR q{number} IS NULL"
            )
        }
        peer.receiver("topic://t", number, name=f"l{number}", filter=source, mode=1)
    client = router.join("p")
    client.send(
        *[Publish(b"t", bytes([number]), qos=qos, packet_id=number + 1) for number in range(20)]
    )
    turns = Turns(router)
    turns.after("publishing")
    turns.run()
    assert turns.count > 20
    assert bodies(peer) == [bytes([number]) for number in range(20) for _ in range(20)]


def test_commit_of_many_messages(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """Each costs little, and the receivers come behind the messages: the sum is shared out among turns all the same."""
    peer = join("p")
    peer.sender("topic://t")
    peer.coordinator()
    txn_id = peer.declare()
    for number in range(100):
        state = TransactionalState(txn_id)
        data = amqp.message(b"%d" % number, application={"k": "a" * 2_000})
        peer.send(data, settled=True, state=state)
    takers = [amqp_durable(router, join, number) for number in range(MANY)]
    plain = join("plain")
    plain.receiver("topic://t", mode=1)
    turns = Turns(router)
    router.settle = turns.run  # type: ignore[method-assign]
    peer.send(b"\x00\x53\x77" + write(Discharge(txn_id, False)), handle=9)
    turns.after("discharge")
    turns.run()
    assert any(isinstance(getattr(one, "state", None), Accepted) for one in peer.answers())
    assert [take() for take in takers] == [[]] * MANY
    assert len(bodies(plain)) == 100
    assert turns.count > MANY


def test_client_that_ends_in_a_commit(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """Nothing of its transaction is published, and nothing is held any more."""
    takers = [amqp_durable(router, join, number) for number in range(MANY)]
    peer = join("p")
    peer.sender("topic://t")
    peer.coordinator()
    txn_id = peer.declare()
    data = amqp.message(b"0", application={"k": VALUES[b"0"]})
    peer.send(data, settled=True, state=TransactionalState(txn_id))
    peer.send(b"\x00\x53\x77" + write(Discharge(txn_id, False)), handle=9)
    assert peer.connection.held
    peer.connection.lost("cut")
    Turns(router).run()
    assert [take() for take in takers] == [[]] * MANY


@pytest.mark.parametrize("again", [None, "other", "ends", "leaves"])
def test_stored_will(router: SpooledWorld, join: Any, amqp: ModuleType, again: str | None) -> None:
    """It is in the store until it is published, once, whatever its client does; a new one of the client stays."""
    takers = [amqp_durable(router, join, number) for number in range(MANY)]
    will = Will(b"t", b"0", 1, properties=Properties(user_properties=[("k", VALUES[b"0"])]))
    key = keys.will("blue", "w")
    router.join("w", will=will).lose()
    context = router.router.context
    jobs = context.jobs
    jobs.step()
    router.round()
    assert router.store.get(key) is not None
    assert router.vpn().wills.total == len(VALUES[b"0"]) + 8
    other = Will(b"other", b"!")
    if again:
        client = router.open()
        client.send(Connect("w", will=None if again == "leaves" else other))
        router.round()
        if again == "ends":
            client.lose()
        elif again == "leaves":
            client.send(Disconnect(0))
    Turns(router).run()
    assert [take() for take in takers] == [[b"0"]] * MANY
    assert (router.store.get(key) is not None) == (again == "other")
    assert router.vpn().wills.total == (6 if again == "other" else 0)


@pytest.mark.parametrize("ends", [False, True])
def test_commit_for_many_receivers(
    router: SpooledWorld, join: Any, amqp: ModuleType, ends: bool
) -> None:
    """Without any selector: messages enter a queue together, and reach those who take them as Direct ones in slices."""
    count, receivers = 100, 60
    queue = router.queue("q", "t")
    takers = []
    for number in range(receivers):
        peer = join(f"taker {number}")
        peer.receiver("topic://t", mode=1)
        takers.append(peer)
    peer = join("p")
    peer.sender("topic://t")
    own = {Symbol("nl"): Described(Symbol("apache.org:no-local-filter:list"), [])}
    peer.receiver("topic://t", 2, mode=1, filter=own)
    peer.coordinator()
    txn_id = peer.declare()
    for number in range(count):
        data = amqp.message(b"%d" % number, application={"k": "a" * 2_000 + "b"})
        peer.send(data, settled=True, state=TransactionalState(txn_id))
    late = [join(f"late {number}") for number in range(MANY)]
    turns = Turns(router)
    peer.send(b"\x00\x53\x77" + write(Discharge(txn_id, False)), handle=9)
    turns.after("discharge")
    for number, one in enumerate(late):
        # Without the settlement of the world, which would finish the commit.
        source = Source("topic://t", filter=filters(number))
        one.say(Attach("late", 1, True, 1, source=source, target=Target("here")))
        one.credit(1, 1_000)
    router.settle = turns.run  # type: ignore[method-assign]
    assert queue.spooled_count == count
    assert peer.connection.held
    if ends:
        peer.connection.lost("cut")
    turns.run()
    wanted = [b"%d" % number for number in range(count)]
    assert [bodies(taker) for taker in takers] == [wanted] * receivers
    assert not any(isinstance(answer, Transfer) for one in late for answer in one.answers())
    assert queue.spooled_count == count
    assert turns.count > count * receivers // limits.TURN_WORK
    if not ends:
        answers = peer.answers()
        assert any(isinstance(getattr(one, "state", None), Accepted) for one in answers)
        assert not any(isinstance(one, Transfer) for one in answers)
