"""vpnrouter.core.pre_login_limits: what connections may hold before login."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter import limits
from vpnrouter.core.context import RouterContext
from vpnrouter.core.credentials import ClientUsername
from vpnrouter.core.outbox import Channel
from vpnrouter.core.pending_connections import PendingConnections
from vpnrouter.core.pre_login_limits import MADE_ROOM, NO_DESCRIPTOR, PreLoginLimits
from vpnrouter.core.profile import ClientProfile
from vpnrouter.core.vpn import VpnLimits
from vpnrouter.trace.recorder import Recorder
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import Connack, Connect, Will
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    from vpnrouter.testing.memory import Client, MemoryRouter

NEVER = 0xFFFF_FFFF


class Guest(Channel):
    """A connection that gives its place up when it is told to."""

    def __init__(self, strangers: PendingConnections, origin: str) -> None:
        self.strangers = strangers
        self.origin = origin
        self.gone = False

    def cut(self, why: str) -> bool:
        self.gone = True
        self.strangers.leave(self.origin, self)
        return True


class Inn:
    """An entrance whose places for strangers on plain sockets are few."""

    def __init__(self, most: int, of_address: int) -> None:
        self.context = RouterContext("here", 1, Recorder(), 0.0)
        self.pre_login_limits = PreLoginLimits(self.context)
        self.strangers = self.pre_login_limits.plain
        self.strangers.most = most
        self.strangers.most_of_address = of_address

    def come(self, origin: str) -> Guest | None:
        """One more stranger; None if there was no place."""
        if not self.pre_login_limits.has_place(self.strangers, origin):
            return None
        guest = Guest(self.strangers, origin)
        self.strangers.enter(origin, guest)
        return guest


def test_an_address_that_has_its_places() -> None:
    """The oldest silent connection of an address makes room for its next one; other addresses keep theirs."""
    inn = Inn(100, 3)
    other = inn.come("b")
    mine = [inn.come("a") for _ in range(4)]
    assert other is not None
    assert not other.gone
    assert [guest.gone for guest in mine if guest is not None] == [True, False, False, False]
    assert inn.strangers.of("a") == 3
    assert inn.pre_login_limits.refused == {MADE_ROOM: 1}


def test_a_crowd_of_one_address() -> None:
    """Where logins take round trips the connection that makes room is drawn: some logins always get through."""
    strangers = PendingConnections(100, 10, seed=7)
    crowd: list[Guest] = []
    for _ in range(30):
        victim = strangers.victim("a")
        if victim is not None:
            victim.cut("")
        crowd.append(Guest(strangers, "a"))
        strangers.enter("a", crowd[-1])
    assert strangers.count == 10
    assert any(not guest.gone for guest in crowd[:15])
    assert any(guest.gone for guest in crowd[15:])


def test_all_places_are_taken() -> None:
    """The address with most strangers makes room for those with fewer."""
    inn = Inn(6, 100)
    hostile = [inn.come("a") for _ in range(6)]
    honest = [inn.come(origin) for origin in ("b", "c", "d")]
    assert [guest.gone for guest in hostile if guest is not None] == [True] * 3 + [False] * 3
    assert all(guest is not None and not guest.gone for guest in honest)
    assert inn.strangers.count == 6


def test_no_descriptor_is_left() -> None:
    """Beyond what leaves the reserve a stranger makes room, and where all are logged in nobody comes in."""
    inn = Inn(100, 100)
    inn.pre_login_limits.most_open = 2
    first = inn.come("a")
    inn.pre_login_limits.open = 2
    assert inn.come("b") is not None
    assert first is not None
    assert first.gone
    inn.strangers.leave("b", next(iter(inn.strangers._of["b"])))
    assert inn.come("c") is None
    assert inn.pre_login_limits.refused[NO_DESCRIPTOR] == 1


def test_the_reserve() -> None:
    """With few descriptors half of them are kept back, and strangers have at most half of the rest."""
    entrance = Inn(1, 1).pre_login_limits
    entrance.bound(1_024)
    assert (entrance.most_open, entrance.plain.most, entrance.shaken.most) == (512, 256, 128)
    entrance.bound(1_048_576)
    assert entrance.most_open == limits.OPEN_CONNECTIONS
    assert entrance.plain.most == limits.STRANGERS


def test_half_a_connect(world: MemoryRouter) -> None:
    """What all strangers hold of unfinished packets stays within STRANGER_BYTES; the address with most pays."""
    small = world.open(peer="198.51.100.7")
    small.raw(b"\x10\xff\x7f" + bytes(5_000))
    hostile = [world.open() for _ in range(60)]
    for client in hostile:
        client.raw(b"\x10\xff\xff\x1a" + bytes(400_000))
    held = world.router.pre_login_limits.held
    assert 0 < held.total <= limits.STRANGER_BYTES
    assert (
        sum(client.closed for client in hostile) == 60 - (limits.STRANGER_BYTES - 5_003) // 400_004
    )
    assert not small.closed
    for client in (*hostile, small):
        client.lose()
    assert held.total == 0


def test_packets_that_wait_for_a_verdict(world: MemoryRouter) -> None:
    """Wills of logins that are being verified count as well, and are given back with the verdict."""
    world.add_vpn("blue", (ClientUsername("u", "pw"),), basic=True)
    held = world.router.pre_login_limits.held
    will = Will(b"t", bytes(60_000))
    clients = [
        world.hello(
            f"c{number}", username="u", password=b"%d" % number, will=will, peer=f"{number}"
        )
        for number in range(400)
    ]
    assert held.total <= limits.STRANGER_BYTES
    assert sum(client.closed for client in clients) > 100
    good = world.hello("good", username="u", password=b"pw", will=will, peer="home")
    world.verify()
    first = good.received()[0]
    assert isinstance(first, Connack)
    assert first.reason_code == 0
    assert held.total == 0


def test_unfinished_packets_of_clients(world: MemoryRouter) -> None:
    """Thirty unfinished messages of 10 MB stay within USERNAME_MEMORY; the connections that hold most are closed."""
    honest = world.connect("honest", peer="198.51.100.7")
    honest.raw(b"\x30\xff\xff\xff\x03" + bytes(1_000_000))
    clients = [world.connect(f"c{number}") for number in range(30)]
    frame = b"\x30\xff\xac\xe2\x04" + bytes(9_900_000)
    for client in clients:
        client.raw(frame)
        world.router.context.jobs.finish()
    memory = world.vpn().memory
    assert memory.held <= limits.USERNAME_MEMORY
    assert sum(client.closed for client in clients) == 30 - limits.USERNAME_MEMORY // len(frame)
    assert not honest.closed
    assert next(client for client in clients if client.closed).reason() == 0x97
    for client in clients:
        client.lose()
    assert memory.held == 1_000_005
    honest.lose()
    assert memory.held == world.router.context.memory.held == 0


def test_a_connect_as_large_as_mqtt_allows(world: MemoryRouter) -> None:
    """A username, password, will topic and payload of 64 KiB each are taken, in pieces."""
    world.add_vpn("blue", (ClientUsername("u" * 65_535, "p" * 65_535),), basic=True)
    will = Will(b"t" * 65_000, bytes(65_535))
    client = world.open()
    frame = Connect(
        "c" * limits.CLIENT_ID_BYTES,
        username="u" * 65_535,
        password=b"p" * 65_535,
        will=will,
        protocol_level=5,
    )
    data = encode(frame, 5)
    for pos in range(0, len(data), 10_000):
        client.raw(data[pos : pos + 10_000])
    world.verify()
    first = client.received()[0]
    assert isinstance(first, Connack)
    assert first.reason_code == 0
    assert world.router.pre_login_limits.held.total == 0


def test_a_client_id_is_bounded(world: MemoryRouter) -> None:
    """A client id that is one byte too long is refused (0x85)."""
    world.connect("c" * limits.CLIENT_ID_BYTES)
    assert world.refused("c" * (limits.CLIENT_ID_BYTES + 1)).reason_code == 0x85


def test_sessions_that_outlive_their_connection(world: MemoryRouter) -> None:
    """A client is refused a session beyond the bound of its client username, or of its message VPN."""
    lasting = Properties(session_expiry_interval=NEVER)
    profile = ClientProfile("default", max_mqtt_session_count_per_client_username=2)
    world.add_vpn("blue", profile=profile, bounds=VpnLimits(max_mqtt_session_count=3))
    for name in ("a", "b"):
        world.connect(name, username="u", properties=lasting).lose()
    assert world.refused("c", username="u", properties=lasting).reason_code == 0x97
    assert world.refused("c", level=4, clean_start=False, username="u").reason_code == 0x88
    world.connect("c", username="u")
    world.connect("a", username="u", clean_start=False, properties=lasting)
    world.connect("d", username="v", properties=lasting)
    assert world.refused("e", username="w", properties=lasting).reason_code == 0x97
    world.connect("b", username="u").disconnect()
    world.connect("e", username="w", properties=lasting)
    assert world.vpn().lasting.total == 3


def test_sessions_last_as_long_as_they_may(world: MemoryRouter) -> None:
    """A client that asks for more gets what its client profile has, and is told; its will is due then."""
    world.add_vpn("blue", profile=ClientProfile("default", max_mqtt_session_expiry_interval=60))
    watcher = world.connect("w")
    watcher.subscribe("t")
    will = Will(b"t", b"gone", properties=Properties(will_delay_interval=NEVER))
    client = world.connect("c", properties=Properties(session_expiry_interval=NEVER), will=will)
    assert client.connack.properties.session_expiry_interval == 60
    client.lose()
    world.connect("d", level=4, clean_start=False).lose()
    world.advance(61)
    assert watcher.payloads() == [b"gone"]
    assert sorted(world.vpn().clients) == ["w"]
    assert world.vpn().wills.total == world.vpn().lasting.total == 0


def test_wills_are_bounded(world: MemoryRouter) -> None:
    """Clients that left keep no more bytes of wills than their client username may have."""
    lasting = Properties(session_expiry_interval=NEVER)
    count = 0
    while True:
        will = Will(b"t", bytes(65_000), properties=Properties(will_delay_interval=NEVER))
        client = world.hello(f"c{count}", username="u", will=will, properties=lasting)
        first = client.received()[0]
        assert isinstance(first, Connack)
        client.lose()
        if first.reason_code:
            break
        count += 1
    assert first.reason_code == 0x97
    assert count == limits.WILL_BYTES_OF_USERNAME // 65_001
    world.connect("other", username="v", will=Will(b"t", bytes(65_000)))
    world.connect("c0", username="u").disconnect()
    world.connect("more", username="u", will=Will(b"t", bytes(65_000)))


def pinging(world: MemoryRouter) -> Client:
    """A client that asks until it is read no further, and reads nothing."""
    world.add_vpn("blue", profile=ClientProfile("default", max_outbox_bytes=65_536))
    client = world.connect("c")
    for _ in range(20):
        client.raw(b"\xc0\x00" * 10_000)
        world.router.context.jobs.finish()
    assert client.connection.choked
    return client


def test_a_client_that_reads_nothing(world: MemoryRouter) -> None:
    """A client that does not read its answers is read no further, and disconnected when it takes nothing for long."""
    client = pinging(world)
    assert 65_536 < client.connection.outbox.size < 90_000
    world.advance(limits.UNREAD_S)
    assert world.vpn().clients == {}
    assert client.connection.outbox.size == 0


def test_a_client_that_reads_again(world: MemoryRouter) -> None:
    """When half of what waits has left it is read again, and all that it asked is answered."""
    client = pinging(world)
    answers = 0
    while client.connection.choked:
        answers += len(client.connection.outbox.take(40_000)) // 2
        client.connection.eased()
        world.advance(limits.UNREAD_S - 1)
        world.router.context.jobs.finish()
    answers += len(client.received())
    assert answers == 20 * 10_000
    world.advance(3 * limits.UNREAD_S)
    assert not client.closed


@pytest.mark.parametrize("level", [4, 5])
def test_small_answers_are_bounded_by_their_number(world: MemoryRouter, level: int) -> None:
    """Long before they fill the outbox; a client that only receives more than that is read all the same."""
    silent, slow, source = (world.connect(name, level=level) for name in ("p", "c", "s"))
    slow.subscribe("a/#")
    for number in range(limits.OUTBOX_CHUNKS + 10):
        source.publish(f"a/{number % 3}", b"%d" % number)
    assert len(slow.connection.outbox.chunks) > limits.OUTBOX_CHUNKS
    slow.publish("b")
    assert not slow.connection.paused
    for _ in range(4):
        silent.raw(b"\xc0\x00" * limits.OUTBOX_CHUNKS)
        world.router.context.jobs.finish()
    assert silent.connection.choked
    assert len(silent.connection.outbox.chunks) < 1.1 * limits.OUTBOX_CHUNKS
    answers = 0
    while silent.connection.choked:
        answers += len(silent.connection.outbox.take(40_000)) // 2
        silent.connection.eased()
        world.router.context.jobs.finish()
    assert answers >= limits.OUTBOX_CHUNKS // 2
    assert answers + len(silent.received()) == 4 * limits.OUTBOX_CHUNKS


def test_outboxes_of_all_who_do_not_read(world: MemoryRouter) -> None:
    """Beyond the bound of all together the largest outbox of the address with most goes, with its client."""
    memory = world.router.context.memory
    memory.most = 1_000_000
    clients = [world.connect(f"c{number}", peer=f"192.0.2.{number // 3}") for number in range(4)]
    for client, size in zip(clients, (300_000, 400_000, 100_000, 250_000), strict=True):
        client.connection.stuck_with(size)
    world.router.context.jobs.finish()
    assert [client.closed for client in clients] == [False, True, False, False]
    assert memory.held == 650_000
    for client in clients:
        client.connection.stuck_with(0)
