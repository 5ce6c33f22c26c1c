"""vpnrouter.management.status.clients: what counts as whose; clients as a whole are in test_clients.py."""

from types import ModuleType
from typing import Any

import pytest

from vpnrouter.core.connection import Connection
from vpnrouter.core.profile import ClientProfile
from vpnrouter.management.status.clients import (
    NOTHING,
    Counted,
    counted_by,
    holder_of,
    publisher_of,
    status_of,
    subscription_status,
)
from vpnrouter.selectors import parse_selector


def test_since() -> None:
    """What was counted since, by reason; what did not go on is left out."""
    base = Counted(1, 10, 2, 20, {"a": 1, "b": 1}, {"c": 5})
    now = Counted(4, 40, 2, 20, {"a": 1, "b": 3}, {"c": 6, "d": 1})
    assert now.since(base) == Counted(3, 30, 0, 0, {"b": 2}, {"c": 1, "d": 1})
    assert now.since(NOTHING) == now


@pytest.mark.parametrize(
    ("asked", "most", "shown"), [(30, 0, 30), (30, 60, 30), (90, 60, 60), (0, 60, 60), (0, 0, 0)]
)
def test_keepalive(kit: ModuleType, asked: int, most: int, shown: int) -> None:
    """The interval that the router holds the client to."""
    world = kit.MemoryRouter()
    world.add_vpn("blue", profile=ClientProfile("default", max_keepalive_timeout=most))
    client: Any = world.connect("c", keep_alive_s=asked)
    session = world.vpn().clients["c"]
    row = status_of("blue", session, client.connection, NOTHING, world.now_ns)
    assert row.keepalive == shown
    told = client.connack.properties.server_keep_alive
    assert shown == (asked if told is None else told)


def test_before_and_after(kit: ModuleType) -> None:
    """A connection without a client has counted nothing."""
    world = kit.MemoryRouter()
    client = world.open()
    assert counted_by(client.connection) == NOTHING
    assert publisher_of(Connection(world.router.context, "", 1)) is None
    client = world.connect("c")
    client.publish("a")
    assert counted_by(client.connection).rx_messages == 1
    client.lose()
    assert counted_by(client.connection) == NOTHING


def test_a_link(kit: ModuleType) -> None:
    """Its subscriptions are a bridge's, with their selectors."""
    link = kit.FakeLink(kit.MemoryRouter().vpn(), "far/v")
    subscription = link.subscribe("a/>", selector=parse_selector("x > 1"))
    assert holder_of(link) == ("bridge", "#bridge/far/v")
    row = subscription_status("blue", subscription)
    assert (row.syntax, row.selector, row.subscription_topic) == ("smf", "x > 1", "a/>")
    row = subscription_status("blue", link.subscribe("!a/no"))
    assert row.subscription_topic == "!a/no"
