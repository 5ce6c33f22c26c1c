"""What a router knows of its links: where other routers are, records of their bridges, who is told."""

from typing import Any

import pytest

from vpnrouter import limits
from vpnrouter.bridges.book import LinkBook, LinkLog, Place, client_name_of, key_of
from vpnrouter.bridges.terms import Owner
from vpnrouter.core.router import Router
from vpnrouter.trace.recorder import Recorder


@pytest.fixture
def book() -> LinkBook:
    """The book of a router that answers links on both ports."""
    made = LinkBook(Router("edge", 7, Recorder()))
    made.link_port, made.links_port = 55_555, 55_443
    return made


def test_the_own_router_is_here(book: LinkBook) -> None:
    """The own name leads to the loopback address and the port that fits; without a listener nowhere."""
    assert book.place_of("edge", tls=False) == ("127.0.0.1", 55_555)
    assert book.place_of("edge", tls=True) == ("127.0.0.1", 55_443)
    book.links_port = 0
    assert book.place_of("edge", tls=True) is None


def test_an_unknown_router_is_nowhere(book: LinkBook) -> None:
    """A name of which no link told has no place."""
    assert book.place_of("core", tls=False) is None


def test_what_a_link_told(book: LinkBook) -> None:
    """A name leads to the address that a link came from or went to, and the port that the peer told."""
    book.learn("core", "192.0.2.7", 1_000, 0)
    assert book.place_of("core", tls=False) == ("192.0.2.7", 1_000)
    assert book.place_of("core", tls=True) is None
    book.learn("core", "192.0.2.8", 1_000, 2_000)
    assert book.place_of("core", tls=True) == ("192.0.2.8", 2_000)
    book.learn("core", "192.0.2.9", 0, 0)
    assert book.place_of("core", tls=False) == ("192.0.2.8", 1_000)


def test_places_are_bounded(book: LinkBook) -> None:
    """One router too many takes the place of the one told of first."""
    book.places = {f"r{n}": Place("h", 1, 1) for n in range(limits.LINK_PLACES)}
    book.learn("r1", "again", 1, 1)
    assert len(book.places) == limits.LINK_PLACES
    book.learn("one more", "h", 1, 1)
    assert len(book.places) == limits.LINK_PLACES
    assert book.place_of("r0", tls=False) is None
    assert book.place_of("one more", tls=False) == ("h", 1)


@pytest.mark.parametrize("dials", ["core", "edge"])
def test_places_are_learned_from_links(world: Any, dials: str) -> None:
    """Whichever side dialled, both know afterwards where the other one answers."""
    acceptor = "edge" if dials == "core" else "core"
    into = world.vpn("yellow", dials)
    world.vpn("blue", acceptor)
    for name, port in (("core", 1_000), ("edge", 2_000)):
        world.book(name).link_port = port
        world.book(name).links_port = port + 1
    world.link(into, acceptor, "blue", peer="192.0.2.7:4711")
    ports = {"core": 1_000, "edge": 2_000}
    # The dialler knows the address it went to, the acceptor the one it came from.
    assert world.book(dials).place_of(acceptor, tls=False) == ("198.51.100.1", ports[acceptor])
    assert world.book(acceptor).place_of(dials, tls=False) == ("192.0.2.7", ports[dials])
    assert world.book(acceptor).place_of(dials, tls=True) == ("192.0.2.7", ports[dials] + 1)


def test_a_bridge_that_is_refused_teaches_nothing(world: Any) -> None:
    """Somebody who was not let in says nothing of where a router is."""
    into = world.vpn("yellow", "core")
    world.vpn("blue", "edge")
    world.book("core").link_port = 1_000
    world.link(into, "edge", "blue", terms={"remote_router": "other"})
    assert world.book("edge").place_of("core", tls=False) is None


class Watcher(Owner):
    """Keeps the links that came in."""

    def __init__(self) -> None:
        self.came: list[Any] = []

    def incoming(self, link: Any) -> None:
        """See Owner.incoming."""
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


def test_records_are_bounded(book: LinkBook) -> None:
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


def test_keys() -> None:
    """The same bridge into two VPNs is two; the VPN can't be mistaken for a part of the name."""
    assert key_of("a", "r", "v", "b") != key_of("b", "r", "v", "b")
    assert client_name_of("r", "v", "b") == "#bridge/r/v/b"


def test_the_base_log_is_silent(world: Any) -> None:
    """A book without a log tells nobody, and nothing breaks."""
    assert type(world.book("edge").log) is LinkLog
    into = world.vpn("yellow", "core")
    world.vpn("blue", "edge")
    world.link(into, "edge", "blue").dialed.goodbye(0x00, "Bridge Shutdown")
    world.settle()
