"""Nothing of what clients and links did is kept when it is over: each kind of it is done thousands of times.

`VPNROUTER_KEPT=400000 … -m pytest tests/test_nothing_is_kept.py -m slow` does each so often, and prints the memory.
"""

from __future__ import annotations

import base64
import gc
import hashlib
import hmac
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from vpnrouter.build_info import build_kind
from vpnrouter.core.credentials import ClientUsername
from vpnrouter.core.scram import salted_password, stored_text, verifier_of
from vpnrouter.server.net.layers import WebSocketLayer
from vpnrouter.testing.modules import load_module
from vpnrouter.wire.amqp import frames
from vpnrouter.wire.amqp.frames import SASL_HEADER
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Detach,
    Disposition,
    End,
    Flow,
    SaslChallenge,
    SaslInit,
    SaslResponse,
)
from vpnrouter.wire.amqp.types import Symbol
from vpnrouter.wire.mqtt.packets import Subscribe, SubscriptionRequest, Unsubscribe, Will
from vpnrouter.wire.mqtt.properties import Properties

HERE: Final = Path(__file__).parent
FAST: Final = 1_000
MANY: Final = int(os.environ.get("VPNROUTER_KEPT", "20000"))
WARM: Final = 250
NAMES: Final = 100
"""Client ids, one after the other: what is kept by name is bounded, and full when it has seen them all."""

SLACK: Final = 300
"""Blocks by which cancelled timers, dictionaries and free lists differ from one moment to another."""


SPOOLED: Final = load_module("kept_spooled", HERE / "core/mqtt/spooled.py")
AMQP: Final = load_module("kept_amqp_peer", HERE / "core/amqp/amqp_peer.py")
LINKS: Final = load_module("kept_links", HERE / "bridges/conftest.py")

SALT: Final = b"0123456789abcdef"
ROUNDS: Final = 4_096
SALTED: Final = salted_password(b"secret", SALT, ROUNDS)

RARE: Final = 40
"""What takes so much longer than the cheapest is not among the fast tests."""

Step = Callable[[int], None]
"""One repetition, by its number."""


WORLDS: Final[list[Any]] = []
"""The router that is looked at."""


def spooled() -> Any:
    """A router with a spool, and one message VPN with a queue."""
    WORLDS[:] = [SPOOLED.SpooledWorld()]
    return WORLDS[0]


def guarded() -> Any:
    """A router whose clients need a password."""
    world = spooled()
    stored = stored_text(verifier_of(SALTED, SALT, ROUNDS))
    users = (ClientUsername("ann", "secret"), ClientUsername("bob", stored))
    world.add_vpn("blue", users, basic=True)
    return world


# -- MQTT ----------------------------------------------------------------------------------------------


def mqtt_login(level: int, **more: Any) -> Step:
    """Log in, and leave, now with a DISCONNECT and now without."""
    world = spooled()

    def step(number: int) -> None:
        client = world.connect(f"client-{number % NAMES:060}", level=level, **more)
        if number & 1:
            client.disconnect()
        client.lose()

    return step


def mqtt_password(password: bytes) -> Step:
    """Log in with a password, right or wrong."""
    world = guarded()

    def step(number: int) -> None:
        client = world.hello(f"client-{number % NAMES}", username="ann", password=password)
        world.verify()
        assert client.received()
        client.lose()

    return step


def mqtt_session() -> Step:
    """Leave a session with subscriptions behind, and end it."""
    world = spooled()
    lasting = Properties(session_expiry_interval=1_000)

    def step(number: int) -> None:
        name = f"client-{number % NAMES}"
        client = world.connect(name, clean_start=True, properties=lasting)
        client.sub(f"t/{number % NAMES}", qos=1)
        client.lose()
        world.settle()
        client = world.connect(name, clean_start=True)
        client.disconnect()
        client.lose()
        world.settle()

    return step


def mqtt_subscription() -> Step:
    """Subscribe to literal, wildcard and shared filters, and unsubscribe."""
    world = spooled()
    client = world.connect("c")

    def step(number: int) -> None:
        filters = [f"a/{number % NAMES}/b", f"w/{number % NAMES}/#", f"$share/g/s/{number % NAMES}"]
        requests = [SubscriptionRequest(each, number % 3) for each in filters]
        client.send(Subscribe(1, requests, Properties(subscription_identifiers=[7])))
        client.got()
        client.send(Unsubscribe(2, filters))
        client.got()

    return step


def mqtt_publish(qos: int) -> Step:
    """Publish to a session with the same QoS, on many topics, and settle."""
    world = spooled()
    publisher, subscriber = world.connect("p"), world.connect("s")
    subscriber.sub("#", qos=qos)

    def step(number: int) -> None:
        publisher.pub(f"t/{number % NAMES}", b"%030d" % number, qos=qos, pid=qos and 1)
        if qos == 2:
            publisher.got()
            publisher.ack(SPOOLED.PUBREL, 1)
        publisher.got()
        assert len(subscriber.take()) == 1

    return step


def mqtt_will() -> Step:
    """Lose a client with a will."""
    world = spooled()
    subscriber = world.connect("s")
    subscriber.sub("wills/#", qos=0)

    def step(number: int) -> None:
        world.connect(f"client-{number % NAMES}", will=Will(b"wills/a", b"gone")).lose()
        assert len(subscriber.take()) == 1

    return step


def mqtt_retained() -> Step:
    """Retain a message, read it, and take it away."""
    world = spooled()
    client = world.connect("c")

    def step(number: int) -> None:
        topic = f"kept/{number % NAMES}"
        client.publish(topic, b"x" * 40, retain=True)
        client.sub("kept/#", qos=0)
        client.send(Unsubscribe(3, ["kept/#"]))
        client.publish(topic, b"", retain=True)
        client.got()

    return step


# -- AMQP ----------------------------------------------------------------------------------------------


def amqp_peer(world: Any, number: int = 0) -> Any:
    """A client of AMQP that is logged in, with a session."""
    peer = AMQP.Peer(world)
    peer.join(f"container-{number % NAMES:060}")
    return peer


def amqp_login() -> Step:
    """Log in without a name."""
    world = spooled()

    def step(number: int) -> None:
        amqp_peer(world, number).connection.lost("gone")

    return step


def amqp_plain(password: str) -> Step:
    """Log in with a password, right or wrong."""
    world = guarded()

    def step(number: int) -> None:
        peer = AMQP.Peer(world)
        peer.plain("ann", password)
        world.verify()
        if password == "secret":
            peer.open(f"container-{number % NAMES}")
        assert peer.closed is (password != "secret") or peer.drain()
        peer.connection.lost("gone")

    return step


def amqp_scram() -> Step:
    """Log in by SCRAM-SHA-256."""
    world = guarded()

    def step(number: int) -> None:
        peer = AMQP.Peer(world)
        peer.raw(SASL_HEADER)
        peer.answers()
        bare = b"n=bob,r=%d" % number
        peer.say(SaslInit(Symbol("SCRAM-SHA-256"), b"n,," + bare), kind=frames.SASL)
        challenge = peer.answer(SaslChallenge).challenge
        said = dict(part.split(b"=", 1) for part in challenge.split(b","))
        assert base64.b64decode(said[b"s"]) == SALT
        unproven = b"c=biws,r=" + said[b"r"]
        key = hmac.digest(SALTED, b"Client Key", "sha256")
        text = b",".join([bare, challenge, unproven])
        signed = hmac.digest(hashlib.sha256(key).digest(), text, "sha256")
        proof = bytes([one ^ other for one, other in zip(key, signed, strict=True)])
        peer.say(SaslResponse(unproven + b",p=" + base64.b64encode(proof)), kind=frames.SASL)
        LINKS.derive(world.router)
        peer.answers()
        peer.open(f"container-{number % NAMES}")
        assert not peer.closed
        peer.connection.lost("gone")

    return step


def amqp_session() -> Step:
    """Begin and end a session."""
    peer = amqp_peer(spooled())

    def step(_: int) -> None:
        peer.begin(channel=1)
        peer.say(End(), channel=1)
        peer.answers()

    return step


def amqp_link(address: str, *, sends: bool) -> Step:
    """Attach a link, give it credit, and detach it; also one that is refused."""
    world = spooled()
    world.queue("q")
    peer = amqp_peer(world)

    def step(number: int) -> None:
        if sends:
            peer.sender(address, 3, f"link-{number % NAMES}")
        else:
            peer.receiver(address, 3, 10, f"link-{number % NAMES}")
        peer.say(Detach(3, True))
        peer.answers()

    return step


def amqp_flow() -> Step:
    """Tell the state of a link, and ask for the router's."""
    world = spooled()
    peer = amqp_peer(world)
    peer.receiver("topic://t/>", 1, 1)

    def step(number: int) -> None:
        peer.say(Flow(0, 5_000, 0, 5_000, 1, 0, 1 + number % 50, echo=True))
        assert peer.answers()

    return step


def amqp_transfer(address: str, *, settled: bool) -> Step:
    """Send a message, receive it, and settle both."""
    world = spooled()
    world.queue("q")
    peer = amqp_peer(world)
    peer.sender(address, 0)
    peer.receiver(address, 1, 0, mode=int(settled))
    data = AMQP.message(b"x" * 50)

    def step(number: int) -> None:
        # Credit for one more, and a window that goes on with what has come.
        peer.say(Flow(number, 5_000, number, 5_000, 1, number, 1))
        peer.send(data, 0, settled=settled)
        transfers = [each for each in peer.got() if isinstance(each.performative, AMQP.Transfer)]
        assert len(transfers) == 1
        if not transfers[0].performative.settled:
            number_there = transfers[0].performative.delivery_id
            peer.say(Disposition(True, number_there, None, True, Accepted()))
            peer.answers()

    return step


def amqp_transaction() -> Step:
    """Declare a transaction, and end it either way."""
    world = spooled()
    peer = amqp_peer(world)
    peer.coordinator()

    def step(number: int) -> None:
        peer.discharge(peer.declare(), fail=bool(number & 1))
        if number % 1_000 == 999:
            peer.say(Flow(number + 1, 5_000, 2 * number + 2, 5_000))

    return step


# -- links, layers -------------------------------------------------------------------------------------


def link_login(*, scram: bool = False) -> Step:
    """Dial, log in, subscribe, carry a message, and break."""
    world = LINKS.World()
    users = [ClientUsername("edge", password="secret")]
    near, far = world.vpn("near", "here"), world.vpn("far", "there", usernames=users, basic=scram)
    terms = {"client_username": "edge", "password": "secret"} if scram else {}
    far_client = None if scram else world.client(far, "p")

    def step(number: int) -> None:
        link = world.link(near, "there", "far", [f"t/{number % NAMES}"], terms=terms)
        while LINKS.derive(world.routers["there"]):
            world.settle()
        world.settle()
        assert link.up
        if far_client is not None:
            far_client.publish(f"t/{number % NAMES}")
            world.settle()
        link.wire.cut = True
        link.dialed.lost("gone")
        link.accepted.lost("gone")
        world.links.clear()
        world.settle()

    return step


def websocket() -> Step:
    """Upgrade a connection, and take a frame through it."""
    asked = (
        b"GET /mqtt HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Protocol: mqtt\r\n\r\n"
    )

    def step(_: int) -> None:
        layer = WebSocketLayer([])
        layer.receive(asked)
        assert layer.take_own().startswith(b"HTTP/1.1 101")
        assert layer.receive(b"\x82\x82\0\0\0\0\xc0\0") == b"\xc0\0"
        layer.send(b"\xd0\0")
        layer.close()

    return step


KINDS: Final[dict[str, tuple[Callable[[], Step], int]]] = {
    "mqtt 3.1.1 login": (lambda: mqtt_login(4), 1),
    "mqtt 5 login": (lambda: mqtt_login(5, properties=Properties(receive_maximum=5)), 1),
    "mqtt right password": (lambda: mqtt_password(b"secret"), 1),
    "mqtt wrong password": (lambda: mqtt_password(b"wrong"), 1),
    "mqtt session": (mqtt_session, 4),
    "mqtt subscription": (mqtt_subscription, 2),
    "mqtt QoS 0": (lambda: mqtt_publish(0), 1),
    "mqtt QoS 1": (lambda: mqtt_publish(1), 2),
    "mqtt QoS 2": (lambda: mqtt_publish(2), 4),
    "mqtt will": (mqtt_will, 2),
    "mqtt retained": (mqtt_retained, 4),
    "amqp ANONYMOUS": (amqp_login, 2),
    "amqp PLAIN": (lambda: amqp_plain("secret"), 2),
    "amqp wrong password": (lambda: amqp_plain("wrong"), 2),
    "amqp SCRAM": (amqp_scram, 2),
    "amqp session": (amqp_session, 1),
    "amqp sender to a queue": (lambda: amqp_link("queue://q", sends=True), 2),
    "amqp sender to a topic": (lambda: amqp_link("topic://t", sends=True), 2),
    "amqp receiver of a queue": (lambda: amqp_link("queue://q", sends=False), 2),
    "amqp receiver of a topic": (lambda: amqp_link("topic://t/>", sends=False), 2),
    "amqp refused link": (lambda: amqp_link("queue://none", sends=False), 2),
    "amqp flow": (amqp_flow, 1),
    "amqp settled transfer": (lambda: amqp_transfer("topic://t", settled=True), 2),
    "amqp guaranteed transfer": (lambda: amqp_transfer("queue://q", settled=False), 4),
    "amqp transaction": (amqp_transaction, 4),
    "link": (link_login, 8),
    "link SCRAM": (lambda: link_login(scram=True), RARE),
    "websocket": (websocket, 2),
}
"""What is done, and by how much less often than the cheapest."""


IDS: Final = dict.fromkeys(("mqtt QoS 1", "mqtt QoS 2", "amqp guaranteed transfer"), 4300)
"""Blocks of ids of messages that have gone, which the spool sweeps from time to time (MessageCache)."""


def blocks() -> int:
    """Blocks of memory in use."""
    gc.collect()
    return sys.getallocatedblocks()


def repeat(step: Step, first: int, count: int) -> None:
    """Do it so often, as in rounds: outboxes that were flushed are forgotten."""
    for number in range(first, first + count):
        step(number)
        for world in WORLDS:
            world.router.context.ready.clear()


def kept(name: str, count: int) -> tuple[int, int]:
    """Blocks and kilobytes by which memory grows while a kind is done `count` times after a warm-up."""
    make, _ = KINDS[name]
    step = make()
    repeat(step, 0, WARM)
    before, resident = blocks(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    repeat(step, WARM, count)
    return blocks() - before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - resident


@pytest.mark.parametrize("name", [name for name, (_, weight) in KINDS.items() if weight < RARE])
def test_what_is_over_is_freed(name: str) -> None:
    """Each kind of thing leaves no block of memory behind that grows with their number."""
    count = FAST // 2 if KINDS[name][1] > 4 else FAST
    grown, _ = kept(name, count)
    assert grown < SLACK + count // 10 + min(IDS.get(name, 0), count)


if build_kind() == "compiled":
    # The pure files are slow, and are freed by Python itself.

    @pytest.mark.slow
    @pytest.mark.parametrize("name", KINDS)
    def test_what_is_over_is_freed_in_the_long_run(name: str) -> None:
        """Twenty thousand of each kind leave no block of memory behind for each, and no resident memory."""
        count = max(FAST, MANY // KINDS[name][1])
        grown, kilobytes = kept(name, count)
        print(f"{name}: {count} times, {grown} blocks, {kilobytes} KB")
        assert grown < SLACK + count // 100 + IDS.get(name, 0)
        assert kilobytes < 4_096
