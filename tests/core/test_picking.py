"""vpnrouter.core.tracing: the first filter that fits decides how many messages are traced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter import limits
from vpnrouter.core.tracing import TraceFilter, TraceSettings
from vpnrouter.topics.grammar import MQTT, SMF, parse_filter
from vpnrouter.trace.sampler import Sampler
from vpnrouter.wire.mqtt.encode import encode_publish

if TYPE_CHECKING:
    from types import ModuleType

    from vpnrouter.testing.memory import MemoryRouter


def one(
    sample: float,
    *subscriptions: str,
    vpns: tuple[str, ...] = (),
    usernames: tuple[str, ...] = (),
    names: tuple[str, ...] = (),
    dialect: int = SMF,
) -> TraceFilter:
    """A filter."""
    return TraceFilter(
        Sampler(sample, 5),
        [parse_filter(text, dialect) for text in subscriptions],
        list(vpns),
        list(usernames),
        list(names),
    )


def traced(world: MemoryRouter) -> dict[tuple[str, bytes], int]:
    """How many messages of each client and topic were traced since the last call."""
    found: dict[tuple[str, bytes], int] = {}
    for row in world.rows():
        if row.event == "ingress":
            key = (row.context.client, row.topic)
            found[key] = found.get(key, 0) + 1
    return found


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        ({}, True),
        ({"vpns": ("blue",)}, True),
        ({"vpns": ("green", "red")}, False),
        ({"usernames": ("ann",)}, True),
        ({"usernames": ("an",)}, False),
        ({"names": ("sensor-1",)}, True),
        ({"names": ("sensor-",)}, False),
        ({"names": ("x", "sensor-*")}, True),
        ({"names": ("*",)}, True),
        ({"names": ("sensor-1*",)}, True),
        ({"names": ("sensor-11*",)}, False),
        ({"vpns": ("blue",), "usernames": ("ann",), "names": ("other",)}, False),
    ],
)
def test_fits_a_client(given: dict[str, Any], fits: bool) -> None:
    """Every criterion that is given has to fit; what is left out fits everybody."""
    assert one(1.0, **given).fits_client("blue", "ann", "sensor-1") is fits


@pytest.mark.parametrize(
    ("dialect", "text", "fits"),
    [(SMF, "a/>", True), (SMF, "a/*", True), (MQTT, "a/+", True), (MQTT, "a/*", False)],
)
def test_fits_a_topic(dialect: int, text: str, fits: bool) -> None:
    """Subscriptions are topic filters of their dialect; without any every topic fits."""
    assert one(1.0, "z", text, dialect=dialect).fits_topic("a/b") is fits
    assert one(1.0).fits_topic("a/b")


@pytest.mark.parametrize("level", [4, 5])
def test_the_first_that_fits_decides(kit: ModuleType, level: int) -> None:
    """By topic: all alarms but the noisy ones, nothing else."""
    terms = TraceSettings(
        filters=[one(0.0, "alarm/noise"), one(1.0, "alarm/>"), one(0.0, "alarm/x")]
    )
    world = kit.MemoryRouter(terms=terms)
    world.connect("sub").subscribe("#")
    client = world.connect("c", level=level)
    for topic in (b"alarm/noise", b"alarm/x", b"other", b"alarm/x"):
        client.raw(encode_publish(topic, b"x", level) * 3)
        client.publish(topic.decode(), b"yy", retain=True)
    assert traced(world) == {("c", b"alarm/x"): 8}


def test_by_client(kit: ModuleType) -> None:
    """A filter without topics is decided at the login: nothing is left to ask for a message."""
    world = kit.MemoryRouter(
        sample=1.0, terms=TraceSettings(filters=[one(0.0, names=("quiet-*",))])
    )
    loud, quiet = world.connect("loud"), world.connect("quiet-1")
    for client in (loud, quiet):
        client.raw(encode_publish(b"a", b"x", 5) * 2)
        assert client.connection.publisher is not None
        assert client.connection.publisher.picking is None
    assert traced(world) == {("loud", b"a"): 2}


def test_routes_are_shared_by_clients_of_two_kinds(kit: ModuleType) -> None:
    """Two kinds of clients that publish to the same topic in turn each keep their own filter."""
    terms = TraceSettings(
        filters=[one(1.0, "a", names=("all",)), one(0.0, "a", names=("none",)), one(1.0, "b")]
    )
    world = kit.MemoryRouter(terms=terms)
    every, none = world.connect("all"), world.connect("none")
    for _ in range(3):
        for client in (every, none):
            for topic in (b"a", b"b", b"c"):
                client.raw(encode_publish(topic, b"x", 5))
    assert traced(world) == {("all", b"a"): 3, ("all", b"b"): 3, ("none", b"b"): 3}


def test_clients_of_one_kind_share_what_is_known(kit: ModuleType) -> None:
    """A thousand sensors are one kind, and what was chosen for topics is bounded."""
    world = kit.MemoryRouter(terms=TraceSettings(filters=[one(1.0, "a/>", names=("s*",))]))
    clients = [world.connect(f"s{number}") for number in range(5)]
    pickings = {id(client.connection.publisher.picking) for client in clients}
    assert len(pickings) == 1
    for number in range(limits.TRACE_PICKED_TOPICS + 10):
        clients[0].raw(encode_publish(b"a/%d" % number, b"x", 5))
    (picking,) = world.router.context.pickings.values()
    assert 0 < len(picking._chosen) <= limits.TRACE_PICKED_TOPICS
    assert len(traced(world)) == limits.TRACE_PICKED_TOPICS + 10


def test_a_share(kit: ModuleType) -> None:
    """A filter's share holds for the messages that fit it, however they are mixed with others."""
    world = kit.MemoryRouter(terms=TraceSettings(filters=[one(0.25, "a")]))
    client = world.connect("c", level=4)
    for _ in range(200):
        client.raw(encode_publish(b"b", b"x", 4) * 7 + encode_publish(b"a", b"x", 4) * 5)
    found = traced(world)
    assert set(found) == {("c", b"a")}
    assert 200 < found["c", b"a"] < 300


def test_without_filters_nothing_is_chosen(kit: ModuleType) -> None:
    """Clients have the router's own sampler."""
    world = kit.MemoryRouter(sample=0.5, terms=TraceSettings())
    publisher = world.connect("c").connection.publisher
    assert publisher is not None
    assert publisher.picking is None
    assert publisher.sampler is world.router.context.sampler
    assert not world.router.context.pickings
