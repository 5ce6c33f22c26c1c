"""What a router knows of its links: where other routers are, records of their bridges, who is told."""

from typing import Any

import pytest

from vpnrouter import limits
from vpnrouter.bridges.half_events import HalfCallbacks
from vpnrouter.bridges.link_registry import (
    LinkRegistry,
    ListenAddress,
)
from vpnrouter.core.credentials import ClientUsername
from vpnrouter.core.router import Router
from vpnrouter.trace.recorder import Recorder


@pytest.fixture
def book() -> LinkRegistry:
    """The book of a router that answers links on both ports."""
    made = LinkRegistry(Router("edge", 7, Recorder()))
    made.link_port, made.links_port = 55_555, 55_443
    return made


def test_the_own_router_is_here(book: LinkRegistry) -> None:
    """The own name leads to the loopback address and the port that fits; without a listener nowhere."""
    assert book.listen_address("v", "edge", tls=False) == ("127.0.0.1", 55_555)
    assert book.listen_address("v", "edge", tls=True) == ("127.0.0.1", 55_443)
    book.links_port = 0
    assert book.listen_address("v", "edge", tls=True) is None


def test_an_unknown_router_is_nowhere(book: LinkRegistry) -> None:
    """A name of which no link told has no place."""
    assert book.listen_address("v", "core", tls=False) is None


def test_what_a_link_told(book: LinkRegistry) -> None:
    """A name leads to the address that a link came from or went to, and the port that the peer told."""
    book.learn("v", "core", ListenAddress("192.0.2.7", 1_000, 0), proved=True)
    assert book.listen_address("v", "core", tls=False) == ("192.0.2.7", 1_000)
    assert book.listen_address("v", "core", tls=True) is None
    book.learn("v", "core", ListenAddress("192.0.2.8", 1_000, 2_000), proved=True)
    assert book.listen_address("v", "core", tls=True) == ("192.0.2.8", 2_000)
    book.learn("v", "core", ListenAddress("192.0.2.9", 0, 0), proved=True)
    assert book.listen_address("v", "core", tls=False) == ("192.0.2.8", 1_000)


def test_a_place_is_of_one_message_vpn(book: LinkRegistry) -> None:
    """What a peer of one message VPN tells sends no bridge of another one anywhere."""
    book.learn("blue", "core", ListenAddress("198.51.100.66", 1_000, 0), proved=True)
    assert book.listen_address("red", "core", tls=False) is None


def test_what_is_proved_is_not_overwritten_by_a_claim(book: LinkRegistry) -> None:
    """A peer that logs in and claims to be a router does not move the place that this router proved."""
    book.learn("v", "core", ListenAddress("198.51.100.66", 1_000, 0), proved=False)
    book.learn("v", "core", ListenAddress("192.0.2.7", 1_000, 0), proved=True)
    book.learn("v", "core", ListenAddress("198.51.100.66", 1_000, 0), proved=False)
    assert book.listen_address("v", "core", tls=False) == ("192.0.2.7", 1_000)


def test_places_are_bounded(book: LinkRegistry) -> None:
    """A place beyond the bound replaces the oldest claim; a claim replaces no proved place."""
    for number in range(limits.LINK_PLACES):
        book.learn("v", f"r{number}", ListenAddress("h", 1, 1), proved=number == 0)
    book.learn("v", "r2", ListenAddress("again", 1, 1), proved=False)
    book.learn("v", "one more", ListenAddress("h", 1, 1), proved=True)
    assert len(book.listen_addresses["v"]) == limits.LINK_PLACES
    assert book.listen_address("v", "r0", tls=False) == ("h", 1)
    assert book.listen_address("v", "r1", tls=False) is None
    assert book.listen_address("v", "one more", tls=False) == ("h", 1)
    for place in book.listen_addresses["v"].values():
        place.proved = True
    book.learn("v", "a claim", ListenAddress("h", 1, 1), proved=False)
    assert book.listen_address("v", "a claim", tls=False) is None
    assert len(book.listen_addresses["v"]) == limits.LINK_PLACES


BRIDGE = {"client_username": "bridge", "password": "word"}


@pytest.mark.parametrize("dials", ["core", "edge"])
def test_places_are_learned_from_links(world: Any, dials: str) -> None:
    """Whichever side dialled, both know afterwards where the other one answers, and who has proved it."""
    acceptor = "edge" if dials == "core" else "core"
    into = world.vpn("yellow", dials)
    world.vpn("blue", acceptor, basic=True, usernames=[ClientUsername("bridge", "word")])
    for name, port in (("core", 1_000), ("edge", 2_000)):
        world.book(name).link_port = port
        world.book(name).links_port = port + 1
    world.link(into, acceptor, "blue", peer="192.0.2.7:4711", terms=BRIDGE)
    ports = {"core": 1_000, "edge": 2_000}
    # The dialler knows the address it went to, the acceptor the one it came from.
    near, far = world.book(dials), world.book(acceptor)
    assert near.listen_address("yellow", acceptor, tls=False) == ("198.51.100.1", ports[acceptor])
    assert far.listen_address("blue", dials, tls=False) == ("192.0.2.7", ports[dials])
    assert far.listen_address("blue", dials, tls=True) == ("192.0.2.7", ports[dials] + 1)
    assert near.listen_addresses["yellow"][acceptor].proved
    assert not far.listen_addresses["blue"][dials].proved


def test_who_proves_nothing_teaches_nothing(world: Any) -> None:
    """Where everybody may come in, neither side believes the other where some router is."""
    into = world.vpn("yellow", "core")
    world.vpn("blue", "edge")
    world.book("core").link_port = world.book("edge").link_port = 1_000
    assert world.link(into, "edge", "blue").up
    assert world.book("edge").listen_addresses == world.book("core").listen_addresses == {}


def test_a_bridge_that_is_refused_teaches_nothing(world: Any) -> None:
    """Somebody who was not let in says nothing of where a router is."""
    into = world.vpn("yellow", "core")
    world.vpn("blue", "edge", basic=True, usernames=[ClientUsername("bridge", "word")])
    world.book("core").link_port = 1_000
    world.link(into, "edge", "blue", terms=BRIDGE | {"password": "other"})
    assert world.book("edge").listen_addresses == {}


class Watcher(HalfCallbacks):
    """Keeps the links that came in."""

    def __init__(self) -> None:
        self.came: list[Any] = []

    def incoming(self, link: Any) -> None:
        self.came.append(link)


def test_watchers_are_told(world: Any) -> None:
    """Whoever watches a VPN hears of each link into it, of no other, and of none afterwards."""
    into = world.vpn("yellow", "core")
    world.vpn("blue", "edge")
    world.vpn("green", "edge")
    book = world.book("edge")
    watcher = Watcher()
    book.watch("blue", watcher)
    link = world.link(into, "edge", "blue")
    world.link(into, "edge", "green", bridge="other")
    assert watcher.came == [link.accepted]
    book.unwatch("blue", watcher)
    book.unwatch("blue", watcher)
    world.link(into, "edge", "blue", bridge="third")
    assert watcher.came == [link.accepted]


def test_records_are_bounded(book: LinkRegistry) -> None:
    """Beyond the bound the record of a bridge that is gone makes room, one that is here does not."""
    kept = book.record("kept", "blue", "c", 0)
    assert book.record("kept", "blue", "c", 1) is kept
    book.serving["kept"] = object()  # type: ignore[assignment]
    for number in range(limits.LINK_REMOTE_RECORDS - 1):
        book.records[str(number)] = kept
    assert len(book.records) == limits.LINK_REMOTE_RECORDS
    book.record("one more", "blue", "c", 0)
    assert len(book.records) == limits.LINK_REMOTE_RECORDS
    assert "kept" in book.records
    assert "0" not in book.records


def test_a_message_vpn_makes_room_for_itself(book: LinkRegistry) -> None:
    """Who comes with ever new bridges pushes out its own, and not those of other message VPNs."""
    book.record("calm", "blue", "c", 0)
    for number in range(limits.LINK_REMOTE_RECORDS + 10):
        book.record(str(number), "green", "c", 0)
    assert len(book.records) == limits.LINK_REMOTE_RECORDS
    assert "calm" in book.records
    assert str(limits.LINK_REMOTE_RECORDS + 9) in book.records


def test_a_record_outlives_its_connection(world: Any) -> None:
    """A peer's bridge that comes back goes on counting where it was."""
    into = world.vpn("yellow", "core")
    remote = world.vpn("blue", "edge")
    publisher = world.client(remote, "p")
    for expected in (1, 2):
        link = world.link(into, "edge", "blue")
        publisher.publish("a", b"x")
        link.dialed.goodbye(0x00, "Bridge Shutdown")
        world.settle()
        (record,) = world.book("edge").records.values()
        assert record.counters.data_tx_msg_count == expected
        assert record.outbound_failure_reason == "Bridge Shutdown"
