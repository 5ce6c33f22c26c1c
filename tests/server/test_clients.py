"""vpnrouter.management.status.clients over a router in memory: what is told is what the core has."""

import time
from types import ModuleType
from typing import Any

import pytest
import trio

from vpnrouter import limits
from vpnrouter.bridges.link_registry import LinkRegistry
from vpnrouter.core.connection import Connection
from vpnrouter.core.discard_reasons import NO_SUBSCRIPTION_MATCH, TRANSMIT_CONGESTION
from vpnrouter.core.profile import ClientProfile
from vpnrouter.core.router import Router
from vpnrouter.core.vpn import MessageVpn
from vpnrouter.errors import TopicError
from vpnrouter.management.server_hooks import ServerHooks
from vpnrouter.management.status.clients import (
    NOTHING,
    ClientLook,
    Clients,
    ClientStatus,
    MqttSessionStatus,
    SessionLook,
    counted_by,
    holder_of,
    publisher_of,
    subscription_status,
)
from vpnrouter.management.status.profiles import Profiles
from vpnrouter.management.status.stats_baseline import EndpointBaselines
from vpnrouter.selectors import parse_selector
from vpnrouter.server.apply.assemble import build_router
from vpnrouter.settings.shown import fill
from vpnrouter.wire.mqtt import reason
from vpnrouter.wire.mqtt.packets import (
    Connack,
    Connect,
    Disconnect,
    Suback,
    Subscribe,
    SubscriptionRequest,
    Will,
)
from vpnrouter.wire.mqtt.properties import Properties

FOR_EVER = Properties(session_expiry_interval=0xFFFF_FFFF)


@pytest.fixture
def clients(world: Any) -> Clients:
    """What management asks; its clock is the world's."""
    return Clients(
        LinkRegistry(world.router), ServerHooks(), EndpointBaselines(), lambda: world.now_ns
    )


def test_names(world: Any, clients: Clients) -> None:
    """In order, whoever comes and goes; sessions whose clients are away stay."""
    assert clients.client_names("blue") == []
    assert clients.client_names("none") == ()
    for name in ("b", "c", "a"):
        world.connect(name, clean_start=False, properties=FOR_EVER if name == "c" else Properties())
    assert clients.client_names("blue") == ["a", "b", "c"]
    world.connect("aa").lose()
    gone, away = (world.vpn().clients[name].connection for name in "bc")
    gone.lost("gone")
    assert clients.client_names("blue") == ["a", "c"]
    away.lost("gone")
    assert clients.client_names("blue") == ["a", "c"]
    assert clients.session_names("blue") == ["a", "c"]
    link = world.vpn().clients
    link["#bridge/x"] = link["a"]
    assert clients.session_names("blue") == ["a", "c"]


def test_one(world: Any, clients: Clients) -> None:
    """What it is and what it has done."""
    client = world.connect("c", level=4, keep_alive_s=300)
    client.subscribe("a/+")
    other = world.connect("other", clean_start=False, properties=FOR_EVER)
    client.publish("nobody", b"12345")
    client.publish("a/1")
    other.publish("a/2")
    world.advance(90)
    row = clients.client("blue", "c")
    assert row is not None
    assert (row.platform, row.keepalive, row.clean_session) == ("MQTT 3.1.1", 300, True)
    assert (row.connected, row.uptime, row.client_address) == (True, 90, "192.0.2.1")
    assert (row.client_profile_name, row.acl_profile_name) == ("default", "default")
    assert row.client_username == "#anonymous"
    assert row.subscription_count == 1
    assert (row.rx_msg_count, row.tx_msg_count) == (2, 2)
    assert row.rx_byte_count == len(b"\x30\x0d\x00\x06nobody12345\x30\x06\x00\x03a/1x")
    assert row.tx_byte_count == 2 * len(b"\x30\x06\x00\x03a/1x")
    assert (row.discarded, row.rx_discarded_msg_count) == ({NO_SUBSCRIPTION_MATCH: 1}, 1)
    assert row.outbox_bytes == row.tx_byte_count
    assert not row.slow_subscriber
    away = clients.client("blue", "other")
    assert away is not None
    assert (away.platform, away.clean_session) == ("MQTT 5", False)
    other.lose()
    away = clients.client("blue", "other")
    assert away is not None
    assert (away.connected, away.client_address, away.rx_msg_count) == (False, "", 0)
    assert clients.client("blue", "none") is None
    assert clients.client("none", "c") is None


def test_a_slow_one(world: Any, clients: Clients) -> None:
    """Who does not read is told from others, and its losses have their reason; also after its counts are cleared."""
    world.add_vpn("blue", profile=ClientProfile("default", max_outbox_bytes=40))
    slow = world.connect("slow", level=4)
    slow.subscribe("a")
    publisher = world.connect("p")
    for _ in range(10):
        publisher.publish("a", b"123")
    row = clients.client("blue", "slow")
    assert row is not None
    assert row.slow_subscriber
    assert row.tx_msg_count == 5
    assert row.discarded == {TRANSMIT_CONGESTION: 5}
    assert (row.tx_discarded_msg_count, row.rx_discarded_msg_count) == (5, 0)
    slow.drain()
    assert clients.clear_stats("blue", "slow")
    row = clients.client("blue", "slow")
    assert row is not None
    assert (row.slow_subscriber, row.tx_msg_count, row.discarded) == (False, 0, {})
    publisher.publish("a", b"123")
    row = clients.client("blue", "slow")
    assert row is not None
    assert (row.slow_subscriber, row.tx_msg_count, row.tx_byte_count) == (False, 1, 8)


def test_clear_stats(world: Any, clients: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is shown begins anew, what the message VPN counts does not; the next connection owes nothing."""
    monkeypatch.setattr(limits, "CLEARED_COUNTS", 2)
    first = world.connect("c", clean_start=False, properties=FOR_EVER)
    for _ in range(3):
        first.publish("a")
    before = world.vpn().totals()
    assert clients.clear_stats("blue", "c")
    assert world.vpn().totals() == before
    row = clients.client("blue", "c")
    assert row is not None
    assert (row.rx_msg_count, row.rx_byte_count, row.discarded) == (0, 0, {})
    first.publish("a")
    row = clients.client("blue", "c")
    assert row is not None
    assert (row.rx_msg_count, row.discarded) == (1, {NO_SUBSCRIPTION_MATCH: 1})
    first.lose()
    again = world.connect("c", clean_start=False, properties=FOR_EVER)
    again.publish("a")
    row = clients.client("blue", "c")
    assert row is not None
    assert row.rx_msg_count == 1
    for name in ("c", "d", "e"):
        world.connect(name).publish("a")
        assert clients.clear_stats("blue", name)
    shown = [clients.client("blue", name) for name in "cde"]
    assert [row.rx_msg_count for row in shown if row is not None] == [1, 0, 0], "bounded"
    assert not clients.clear_stats("blue", "none")


def test_disconnect(world: Any, clients: Clients) -> None:
    """An MQTT 5 client is told why; its will is published; who is not connected cannot be disconnected."""
    watcher = world.connect("watcher")
    watcher.subscribe("#")
    five = world.connect("five", clean_start=False, properties=FOR_EVER)
    four = world.connect("four", level=4)
    for client, name in ((five, "five"), (four, "four")):
        assert clients.disconnect("blue", name)
        assert client.closed
    (said,) = five.received()
    assert isinstance(said, Disconnect)
    assert said.reason_code == reason.ADMINISTRATIVE_ACTION == 0x98
    assert said.properties.reason_string == "disconnected by the operator"
    assert four.received() == []
    assert not clients.disconnect("blue", "five")
    assert not clients.disconnect("blue", "four")
    assert not clients.disconnect("none", "five")
    assert "five" in world.vpn().clients
    assert "four" not in world.vpn().clients


def test_subscriptions(world: Any, clients: Clients) -> None:
    """As written, in order; whoever has any is a holder."""
    client = world.connect("c")
    for text in ("b", "$share/g/a/#", "a"):
        client.subscribe(text)
    world.connect("idle")
    rows = clients.subscriptions("blue", "c")
    assert [row.subscription_topic for row in rows] == ["$share/g/a/#", "a", "b"]
    assert (rows[0].share_name, rows[0].syntax, rows[0].holder) == ("g", "mqtt", "client")
    assert clients.holders("blue") == [("client", "c")]
    assert clients.held("blue", "client", "c") == rows
    assert clients.held("blue", "bridge", "c") == ()
    assert clients.subscription_count("blue") == 3
    assert clients.subscriptions("blue", "none") == clients.subscriptions("none", "c") == ()
    assert clients.holders("none") == clients.held("none", "client", "c") == ()
    assert clients.subscription_count("none") == 0


async def test_matches(world: Any, clients: Clients) -> None:
    """In order of holder and name, and not more than asked for."""
    for name in ("b", "a"):
        client = world.connect(name)
        client.subscribe("t/+")
        client.subscribe("t/1")
    rows = await clients.matches("blue", "t/1", 100)
    assert [(row.name, row.subscription_topic) for row in rows] == [
        ("a", "t/+"),
        ("a", "t/1"),
        ("b", "t/+"),
        ("b", "t/1"),
    ]
    assert await clients.matches("blue", "t/1", 3) == rows[:3]
    assert await clients.matches("blue", "u", 3) == []
    assert await clients.matches("none", "t/1", 3) == ()
    with pytest.raises(TopicError):
        await clients.matches("blue", "t/#", 3)


STORED = (
    "msg_vpns: {blue: {authentication: {basic: {enabled: false}},"
    " queues: {q: {subscriptions: [a/>]}}, topic_endpoints: {t: {}}}}"
)


async def test_sessions(kit: ModuleType, stored: Any) -> None:
    """What a session keeps for a client that is away; its counts are cleared, and it is deleted for good."""
    one = stored(STORED)
    world = kit.MemoryRouter()
    world.router = one.router
    cleared = EndpointBaselines()
    clients = Clients(LinkRegistry(one.router), ServerHooks(), cleared)
    one.router.tick(time.monotonic_ns(), time.time_ns())
    client = world.open("blue")
    client.send(Connect("c", protocol_level=5, clean_start=False, properties=FOR_EVER))
    assert isinstance(client.received()[0], Connack)
    client.send(Subscribe(1, [SubscriptionRequest("a/+", qos=1)]))
    one.commit()
    assert isinstance(client.received()[0], Suback)
    client.lose()
    one.publish("a/1")
    row = clients.session("blue", "c")
    assert row is not None
    assert (row.connected, row.clean, row.durable) == (False, False, True)
    assert (row.queue_name, row.session_expiry_interval) == ("#mqtt/c", 0xFFFF_FFFF)
    assert (row.msg_count, row.spooled_msg_count, row.subscription_count) == (1, 1, 1)
    assert clients.holders("blue") == [("client", "c"), ("queue", "q")]
    assert [each.name for each in await clients.matches("blue", "a/1", 9)] == ["c", "q"]
    assert not (await clients.matches("blue", "a/1", 9))[0].connected
    assert [each.subscription_topic for each in clients.held("blue", "queue", "q")] == ["a/>"]
    assert clients.clear_session_stats("blue", "c")
    row = clients.session("blue", "c")
    assert row is not None
    assert (row.msg_count, row.spooled_msg_count) == (1, 0)
    assert not clients.clear_session_stats("blue", "none")
    one.spooling.serve_with(None)
    with trio.fail_after(20):
        assert await clients.end_session("blue", "c")
    assert clients.session("blue", "c") is None
    assert not await clients.end_session("blue", "c")
    assert (2, "#mqtt/c") not in one.router.vpns["blue"].endpoints
    again = stored(STORED)
    assert "c" not in again.router.vpns["blue"].clients


async def test_a_session_in_use_is_not_ended(world: Any, clients: Clients) -> None:
    """Its client is to be disconnected first."""
    client = world.connect("c", clean_start=False, properties=FOR_EVER)
    assert not await clients.end_session("blue", "c")
    assert clients.disconnect("blue", "c")
    assert client.closed
    assert await clients.end_session("blue", "c")
    assert clients.client("blue", "c") is None


@pytest.mark.parametrize("count", [10_000])
def test_a_page_of_many_is_quick(world: Any, clients: Clients, count: int) -> None:
    """Names of ten thousand clients and a page of a hundred take milliseconds of the router's thread."""
    vpn = world.vpn()
    template = world.connect("template")
    session = vpn.clients.pop("template")
    for number in range(count):
        vpn.clients[f"c{number * 7919 % count}"] = session
    assert template is not None
    clients.client_names("blue")
    best = min(_page_s(clients) for _ in range(5))
    # 10 ms, and room for a machine that does other things as well.
    assert best < 0.05


def _page_s(clients: Clients) -> float:
    began = time.perf_counter()
    names = clients.client_names("blue")
    keys = sorted([("blue", name) for name in names])
    for _, name in keys[5_000:5_100]:
        assert clients.client("blue", name) is not None
    return time.perf_counter() - began


# -- client rows -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "most", "shown"), [(30, 0, 30), (30, 60, 30), (90, 60, 60), (0, 60, 60), (0, 0, 0)]
)
def test_keepalive(kit: ModuleType, asked: int, most: int, shown: int) -> None:
    """The interval that the router holds the client to."""
    world = kit.MemoryRouter()
    world.add_vpn("blue", profile=ClientProfile("default", max_keepalive_timeout=most))
    client: Any = world.connect("c", keep_alive_s=asked)
    session = world.vpn().clients["c"]
    row = fill(ClientStatus, ClientLook("blue", session, client.connection, NOTHING, world.now_ns))
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


# -- session rows ----------------------------------------------------------------------------------


def test_a_session(kit: ModuleType) -> None:
    """What it was begun with, and its will while that may still be published."""
    world = kit.MemoryRouter()
    client = world.connect(
        "c",
        clean_start=False,
        properties=Properties(session_expiry_interval=60),
        will=Will(b"gone/c", b"x"),
    )
    client.subscribe("a")
    session = world.vpn().clients["c"]
    row = fill(MqttSessionStatus, SessionLook(session, EndpointBaselines()))
    assert (row.mqtt_session_client_id, row.client_name, row.owner) == ("c", "c", "#anonymous")
    assert (row.connected, row.clean, row.durable) == (True, False, False)
    assert (row.session_expiry_interval, row.subscription_count) == (60, 1)
    assert (row.will, row.will_topic) == (True, "gone/c")
    assert (row.queue_name, row.msg_count, row.spooled_msg_count) == ("", 0, 0)
    client.disconnect()
    row = fill(MqttSessionStatus, SessionLook(session, EndpointBaselines()))
    assert (row.connected, row.will, row.will_topic, row.owner) == (False, False, "", "#anonymous")


# -- profile rows ----------------------------------------------------------------------------------


WRITTEN = """
msg_vpns:
  red: {}
  blue:
    authentication: {basic: {enabled: false}}
    client_profiles:
      apps: {max_subscription_count: 7, allow_bridge_connections_enabled: true}
    acl_profiles:
      strict: {publish_topic: {default_action: disallow}, client_connect: {default_action: allow}}
    client_usernames:
      ann: {password: a, client_profile: apps, acl_profile: strict}
      bob: {password: b, client_profile: apps, enabled: false}
      default: {acl_profile: strict}
"""


@pytest.fixture
def router(configured: Any) -> Router:
    """A router whose message VPN blue has profiles; a client is connected as ann, two as somebody else."""
    router = build_router(configured(WRITTEN), 7, bytes(16))
    vpn = router.vpns["blue"]
    for name in ("ann", "carl", "carl"):
        vpn.occupy(name)
    vpn.endpoints_of["carl"] = 4
    return router


@pytest.fixture
def clients_in_profile_rows(router: Router) -> Profiles:
    """What management asks."""
    return Profiles(router)


def test_usernames(router: Router, clients_in_profile_rows: Profiles) -> None:
    """Those that are configured and those that came without; these have what `default` has."""
    assert clients_in_profile_rows.username_names("blue") == ["ann", "bob", "carl", "default"]
    assert clients_in_profile_rows.username_names("none") == ()
    rows = [
        clients_in_profile_rows.username("blue", name)
        for name in clients_in_profile_rows.username_names("blue")
    ]
    assert [
        (row.enabled, row.dynamic, row.client_profile_name, row.acl_profile_name)
        for row in rows
        if row is not None
    ] == [
        (True, False, "apps", "strict"),
        (False, False, "apps", "default"),
        (True, True, "default", "strict"),
        (True, False, "default", "strict"),
    ]
    assert [(row.connection_count, row.endpoint_count) for row in rows if row is not None] == [
        (1, 0),
        (0, 0),
        (2, 4),
        (0, 0),
    ]
    vpn: MessageVpn = router.vpns["blue"]
    vpn.release("carl")
    vpn.release("carl")
    assert clients_in_profile_rows.username("blue", "carl") is None
    assert clients_in_profile_rows.username("none", "ann") is None


def test_profiles(clients_in_profile_rows: Profiles) -> None:
    """What they allow, and how many client usernames and connections have them."""
    rows = {row.client_profile_name: row for row in clients_in_profile_rows.client_profiles("blue")}
    assert set(rows) == {"apps", "default"}
    apps = rows["apps"]
    assert (apps.max_subscription_count, apps.allow_bridge_connections_enabled) == (7, True)
    assert (apps.client_username_count, apps.connection_count) == (2, 1)
    assert (rows["default"].client_username_count, rows["default"].connection_count) == (1, 2)
    assert clients_in_profile_rows.client_profiles("none") == ()


def test_acl_profiles(clients_in_profile_rows: Profiles) -> None:
    """The same of ACL profiles; none where nobody is connected."""
    rows = {row.acl_profile_name: row for row in clients_in_profile_rows.acl_profiles("blue")}
    strict = rows["strict"]
    assert (strict.publish_topic_default_action, strict.client_connect_default_action) == (
        "disallow",
        "allow",
    )
    assert (strict.client_username_count, strict.connection_count) == (2, 3)
    assert rows["default"].connection_count == 0
    assert [row.connection_count for row in clients_in_profile_rows.acl_profiles("red")] == [0]
    assert clients_in_profile_rows.acl_profiles("none") == ()
