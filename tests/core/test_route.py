"""vpnrouter.core.route: receivers of one topic by the form in which they take a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter.selectors import parse_selector
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    from types import ModuleType

    from vpnrouter.testing.memory import MemoryRouter


def test_receivers_by_form(world: MemoryRouter) -> None:
    """Plain ones by protocol level, those with options or wishes of their own apart, each once."""
    old, new, own, aliasing = (
        world.connect("old", level=4),
        world.connect("new"),
        world.connect("own"),
        world.connect("aliasing", properties=Properties(topic_alias_maximum=1)),
    )
    for client in (old, new, aliasing):
        client.subscribe("a")
        client.subscribe("+")
    own.subscribe("a", no_local=True)
    own.subscribe("#")
    route = world.vpn().route(b"a")
    assert [one.client_name for one in route.receivers4] == ["old"]
    assert [one.client_name for one in route.receivers5] == ["new"]
    assert sorted(target.subscriber.client_name for target in route.special) == ["aliasing", "own"]
    assert [len(target.subscriptions) for target in route.special] == [2, 2]
    assert route.plain4 == [old.connection.outbox]
    assert route.plain5 == [new.connection.outbox]
    assert not route.plain
    assert not route.empty
    assert len(route.targets()) == 4


def test_a_route_to_nobody(world: MemoryRouter) -> None:
    """It is plain and empty."""
    route = world.vpn().route(b"a")
    assert route.plain
    assert route.empty
    assert route.targets() == []


def test_a_group_is_named_once(world: MemoryRouter) -> None:
    """However many members match, the route has their group once."""
    for name in ("a", "b", "c"):
        world.connect(name).subscribe("$share/g/t")
    route = world.vpn().route(b"t")
    assert len(route.groups) == 1
    assert not route.empty


@pytest.mark.parametrize("options", [{"no_local": True}, {"retain_as_published": True}])
def test_options_make_a_receiver_special(world: MemoryRouter, options: dict[str, bool]) -> None:
    """A subscription with options wants frames of its own, and a plain one beside it changes nothing."""
    client = world.connect("c")
    client.subscribe("a", **options)
    assert len(world.vpn().route(b"a").special) == 1
    client.subscribe("a")
    assert world.vpn().route(b"a").plain


def test_one_link_takes_batches_two_do_not(kit: ModuleType, world: MemoryRouter) -> None:
    """Two ways out, links or groups with links, want ids; a selective link alone wants single messages."""
    vpn = world.vpn()
    one, other = kit.FakeLink(vpn, "one/blue"), kit.FakeLink(vpn, "other/blue")

    def flags() -> tuple[bool, bool]:
        route = vpn.route(b"t")
        assert route.one_link in (one, None)
        return route.many_links, route.one_link is None

    one.subscribe("t")
    assert flags() == (False, False)
    other.subscribe("t")
    assert flags() == (True, True)
    vpn.drop(other)
    other.subscribe("#share/g/t")
    assert flags() == (True, True)
    vpn.drop(other)
    world.connect("c").subscribe("$share/h/t")
    assert flags() == (False, False)
    one.subscribe("t", selector=parse_selector("a = 'b'"))
    assert flags() == (False, True)
    one.subscribe(">")
    assert flags() == (False, False)


def test_only_selectors_make_a_target_selective(world: MemoryRouter) -> None:
    """A plain subscription beside one with a selector lets everything through, in batches."""
    client = world.connect("c")
    client.subscribe("t")
    client.subscribe("+")
    session = world.vpn().clients["c"]
    session.subscriptions["t"].selector = parse_selector("a = 'b'")
    world.vpn().forget_routes(session)
    assert world.vpn().route(b"t").plain
    session.subscriptions["+"].selector = parse_selector("a = 'c'")
    world.vpn().forget_routes(session)
    (target,) = world.vpn().route(b"t").special
    assert target.selective
