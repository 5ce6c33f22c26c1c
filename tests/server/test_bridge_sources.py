"""Bridges of two routers as their operators see them: backlog, cleared counts, a connection that is dropped."""

import json
import time
from functools import partial
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from vpnrouter.bridges.look import backlog_of, oldest_age_ms
from vpnrouter.core.discard_reasons import TTL_EXCEEDED
from vpnrouter.core.guaranteed.endpoint_settings import ALWAYS
from vpnrouter.management.api_context import ApiContext
from vpnrouter.management.metrics.source import BRIDGES
from vpnrouter.management.server_hooks import ServerHooks
from vpnrouter.server.net.dial import transport_of
from vpnrouter.server.net.reactor import flush_ready
from vpnrouter.wire.mqtt.packets import Publish

EDGE = """
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: link, bind: "127.0.0.1:0"}
  - {protocol: http, bind: "127.0.0.1:0"}
msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    client_profiles: {default: {allow_bridge_connections_enabled: true}}
    queues: {to-core: {subscriptions: [orders/>]}}
"""
CORE = """
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: yellow}
  - {protocol: http, bind: "127.0.0.1:0"}
msg_vpns:
  yellow:
    authentication: {basic: {enabled: false}}
    queues: {orders: {subscriptions: [orders/>]}}
    bridges:
      from-blue:
        guaranteed_retry_interval: 50
        remote_connection: {retry_delay: 0}
        remote_authentication: {basic: {client_username: core}}
        remote_msg_vpns:
          - {name: blue, router: edge, location: "127.0.0.1:LINK", queue_binding: to-core}
        remote_subscriptions: [weather/>]
"""
PEER = "#bridge/core/yellow/from-blue"


class Seen:
    """A router as management sees it."""

    def __init__(self, node: Any) -> None:
        self.node = node
        edge = ServerHooks(
            bridges=node.bridges,
            flush=partial(flush_ready, node.router.context),
            transport=transport_of,
        )
        self.context = ApiContext(book=node.book, edge=edge)
        self.bridges, self.clients = self.context.bridges, self.context.clients

    def bridge(self, msg_vpn: str, name: str) -> Any:
        """One bridge as it stands; it is in balance."""
        status = self.bridges[msg_vpn, name].status(time.monotonic_ns())
        assert (status.rx_imbalance, status.tx_imbalance) == (0, 0)
        return status

    def figures(self, msg_vpn: str, name: str) -> Any:
        """What metrics have of a bridge."""
        look = self.bridges[msg_vpn, name].look(time.monotonic_ns(), whole=True)
        return SimpleNamespace(**dict(zip(BRIDGES.names, BRIDGES.row(look), strict=True)))


async def test_a_bridge(running: Any, client_of: Any, port: Any, until: Any) -> None:
    """Both ends, from the first message to the connection that comes back."""
    async with running(EDGE, "edge") as edge_node:
        text = CORE.replace("LINK", str(port(edge_node, "link")))
        async with running(text, "core") as core_node:
            edge, core = Seen(edge_node), Seen(core_node)
            await until(lambda: core.bridge("yellow", "from-blue").bound_to_queue)
            publisher, subscriber = await client_of(edge_node), await client_of(core_node)
            await publisher.connect("p")
            await subscriber.connect("s")
            await subscriber.subscribe("weather/#")
            for number in range(5):
                await publisher.publish(f"weather/{number}", b"x")
                assert await subscriber.payload() == b"x"
            _counts(edge, core)
            await _clients(edge, core)
            _cleared(edge, core)
            await _backlog(edge, core, publisher, until)
            await _dropped(edge, core, until)
            await _by_http(port(core_node, "http"))


def _counts(edge: Seen, core: Seen) -> None:
    near, far = core.bridge("yellow", "from-blue"), edge.bridge("blue", PEER)
    assert near.delivered_rx_msg_count == far.data_tx_msg_count == 5
    assert (far.local_queue_name, far.local_queue_msg_count) == ("to-core", 0)
    assert (far.local_queue_oldest_msg_age_ms, far.backlog_msg_count) == (-1, 0)
    assert near.remote_address.startswith("127.0.0.1:")


async def _clients(edge: Seen, core: Seen) -> None:
    """A link is a client at both ends; what it attracts is its subscriptions, and a topic leads to it."""
    there = edge.clients.client("blue", PEER)
    here = core.clients.client("yellow", "#bridge/from-blue")
    assert there is not None
    assert here is not None
    assert (there.platform, there.client_username) == ("vpnrouter link", "core")
    assert (there.tx_msg_count, here.rx_msg_count, there.bind_count) == (5, 5, 1)
    assert there.client_address.startswith("127.0.0.1:")
    assert edge.clients.session("blue", PEER) is None
    (row,) = await edge.clients.matches("blue", "weather/1", 9)
    assert (row.holder, row.name, row.syntax) == ("bridge", PEER, "smf")
    assert edge.clients.holders("blue") == [("bridge", PEER), ("queue", "to-core")]
    assert edge.clients.held("blue", "bridge", PEER) == [row]
    username = edge.context.profiles.username("blue", "core")
    assert username is not None
    assert (username.connection_count, username.dynamic) == (1, True)


def _cleared(edge: Seen, core: Seen) -> None:
    """Each end clears its own; the balance stays, and metrics count from the start of the router."""
    core.bridges["yellow", "from-blue"].clear_stats()
    edge.bridges["blue", PEER].clear_stats()
    near, far = core.bridge("yellow", "from-blue"), edge.bridge("blue", PEER)
    assert (near.delivered_rx_msg_count, near.data_rx_msg_count, near.failure_count) == (0, 0, 0)
    assert (far.data_tx_msg_count, far.offered_tx_msg_count, far.tx_byte_count) == (0, 0, 0)
    assert core.figures("yellow", "from-blue").data_rx_msg_count[0] == 5
    record = core.node.bridges[0].record
    record.counters.data_rx(1, 9, 1)
    record.counters.discard_rx(TTL_EXCEEDED)
    assert core.bridge("yellow", "from-blue").ttl_exceeded_event_raised
    core.bridges["yellow", "from-blue"].clear_event("ttl-exceeded")
    near = core.bridge("yellow", "from-blue")
    assert not near.ttl_exceeded_event_raised
    assert near.discarded_rx == {TTL_EXCEEDED: 1}
    for name in ("none", PEER):
        assert ("yellow", name) not in core.bridges


async def _backlog(edge: Seen, core: Seen, publisher: Any, until: Any) -> None:
    """What the other end does not take waits here, and is seen to."""
    orders = core.node.router.vpns["yellow"].endpoints[0, "orders"]
    terms = orders.settings.copy()
    terms.ingress_enabled, terms.reject_behavior = False, ALWAYS
    orders.take_settings(terms)
    for number in range(3):
        await publisher.send(Publish(b"orders/1", b"x", qos=1, packet_id=number + 1))
        await publisher.packet()
    await until(lambda: core.bridge("yellow", "from-blue").guaranteed_refused_msg_count > 0)
    await until(lambda: core.bridge("yellow", "from-blue").rx_in_flight_msg_count == 3)
    await until(lambda: edge.bridge("blue", PEER).tx_unacked_msg_count == 3)
    far = edge.bridge("blue", PEER)
    assert far.local_queue_msg_count == far.backlog_msg_count == far.tx_unacked_msg_count == 3
    assert far.backlog_oldest_msg_age_ms == far.local_queue_oldest_msg_age_ms >= 0
    near = core.bridge("yellow", "from-blue")
    assert near.backlog_msg_count == near.rx_in_flight_msg_count == 3
    core.bridges["yellow", "from-blue"].clear_stats()
    edge.bridges["blue", PEER].clear_stats()
    near = core.bridge("yellow", "from-blue")
    assert (near.data_rx_msg_count, near.guaranteed_rx_msg_count) == (3, 0)
    terms = terms.copy()
    terms.ingress_enabled = True
    orders.take_settings(terms)
    await until(lambda: orders.spooled_count == 3)
    await until(lambda: edge.bridge("blue", PEER).backlog_msg_count == 0)
    assert core.bridge("yellow", "from-blue").guaranteed_taken_msg_count == 3
    assert edge.bridge("blue", PEER).backlog_oldest_msg_age_ms == -1
    assert oldest_age_ms([orders]) >= 0
    assert backlog_of(None).names == ""


async def _dropped(edge: Seen, core: Seen, until: Any) -> None:
    """From either end, by its name as a bridge or as a client: it comes back, and keeps its counts."""
    counted = core.bridge("yellow", "from-blue").data_rx_msg_count
    assert counted == 3
    for drop in (
        core.bridges["yellow", "from-blue"].disconnect,
        edge.bridges["blue", PEER].disconnect,
        lambda: core.clients.disconnect("yellow", "#bridge/from-blue"),
        lambda: edge.clients.disconnect("blue", PEER),
    ):
        failures = core.bridge("yellow", "from-blue").failure_count
        assert drop()
        await until(lambda f=failures: core.bridge("yellow", "from-blue").failure_count > f)
        await until(lambda: core.bridge("yellow", "from-blue").bound_to_queue)
        await until(lambda: edge.clients.client("blue", PEER) is not None)
    assert core.bridge("yellow", "from-blue").data_rx_msg_count == counted


async def _by_http(port: int) -> None:
    """The same over the router's own listener: who is there, and who is put out."""
    base = f"http://127.0.0.1:{port}"
    async with httpx.AsyncClient(base_url=base, trust_env=False) as client:
        names = (await client.get("/vpnrouter/v1/clients?select=clientName,clientAddress")).json()
        answer = await client.put("/SEMP/v2/action/msgVpns/yellow/clients/s/disconnect")
        again = await client.put("/SEMP/v2/action/msgVpns/yellow/clients/s/disconnect")
        vpn = (await client.get("/SEMP/v2/monitor/msgVpns/yellow")).json()["data"]
    assert [row["clientName"] for row in names["data"]] == ["#bridge/from-blue", "s"]
    assert all(row["clientAddress"].startswith("127.0.0.1:") for row in names["data"])
    assert (answer.status_code, again.status_code) == (200, 400)
    assert json.loads(again.text)["meta"]["error"]["status"] == "NOT_FOUND"
    assert vpn["msgVpnConnections"] == 1
    assert vpn["rxMsgCount"] >= 5


async def test_a_bridge_that_is_down(running: Any) -> None:
    """There is nothing to drop, and its counts can be cleared all the same."""
    async with running(CORE.replace("LINK", "1"), "core") as node:
        seen = Seen(node)
        assert not seen.bridges["yellow", "from-blue"].disconnect()
        seen.bridges["yellow", "from-blue"].clear_stats()
        assert seen.bridge("yellow", "from-blue").failure_count == 0


WANTING = """
listeners:
  - {protocol: http, bind: "127.0.0.1:0"}
msg_vpns:
  yellow:
    enabled: ENABLED
    authentication: {basic: {enabled: false}}
    bridges:
      from-blue:
        remote_connection: {retry_delay: 0}
        remote_authentication: {basic: {client_username: core}}
        remote_msg_vpns:
          - {name: blue, location: "localhost:LINK", queue_binding: missing}
          - {name: blue, location: "192.0.2.1:1", connect_order: 1, enabled: false}
        remote_subscriptions: [weather/>, {topic: private/>, deliver_always_enabled: true}]
"""
PRIVATE = ", {topic: private/>, deliver_always_enabled: true}"
GUARDED = EDGE.replace(
    "    queues:",
    "    acl_profiles: {default: {client_connect: {default_action: allow},"
    " subscribe_topic: {default_action: allow, exceptions: [private/>]}}}\n    queues:",
)


async def test_what_a_bridge_lacks(running: Any, port: Any, configured: Any, until: Any) -> None:
    """A refused subscription, a queue that is not there, a disabled remote: each is told; so is where the peer is."""
    async with running(GUARDED, "edge") as edge_node:
        link = port(edge_node, "link")
        text = WANTING.replace("LINK", str(link)).replace("ENABLED", "true")
        async with running(text, "core") as core_node:
            edge, core = Seen(edge_node), Seen(core_node)
            await until(lambda: core.bridge("yellow", "from-blue").health == "unbound")
            row = core.bridge("yellow", "from-blue")
            assert row.inbound_state == "ready-in-sync"
            assert row.inbound_failure_reason == "not bound to its queue: 403 Permission Denied"
            assert (row.remote_tx_flow_id, row.remote_subscription_refused_count) == (0, 1)
            assert row.remote_address in {f"127.0.0.1:{link}", f"[::1]:{link}"}
            assert row.local_interface in {"127.0.0.1", "::1"}
            assert [(one.enabled, one.up) for one in row.remotes] == [(True, True), (False, False)]
            asked = core.bridges["yellow", "from-blue"].remote_subscriptions()
            assert [
                (one.remote_subscription_topic, one.up, one.refused_reason) for one in asked
            ] == [
                ("weather/>", True, ""),
                ("private/>", False, "403 Subscription ACL Denied: private/>"),
            ]
            (granted,) = edge.bridges["blue", PEER].local_subscriptions()
            assert (granted.local_subscription_topic, granted.dto_priority) == ("weather/>", "p1")
            await _children(port(core_node, "http"))
            one = core.figures("yellow", "from-blue")
            assert (one.up, one.health, one.remotes) == (1, "unbound", 2)

            vpn = edge_node.router.vpns["blue"]
            bound = text.replace("missing", "to-core")
            core_node.reload(configured(bound, "core"))
            await until(lambda: core.bridge("yellow", "from-blue").bound_to_queue)
            row = core.bridge("yellow", "from-blue")
            assert (row.health, row.enabled) == ("incomplete", True)
            refusal = "remote subscription refused: 403 Subscription ACL Denied: private/>"
            assert row.inbound_failure_reason == refusal
            assert row.remote_tx_flow_id == next(iter(vpn.endpoints[0, "to-core"].flows)).flow_id
            core_node.reload(configured(bound.replace(PRIVATE, ""), "core"))
            await until(lambda: core.bridge("yellow", "from-blue").health == "up")
            assert core.bridge("yellow", "from-blue").inbound_failure_reason == ""


async def _children(port: int) -> None:
    """The subscriptions stand below the bridge in the API, with links that lead to them."""
    base = f"http://127.0.0.1:{port}"
    async with httpx.AsyncClient(base_url=base, trust_env=False) as client:
        (row,) = (await client.get("/SEMP/v2/monitor/msgVpns/yellow/bridges")).json()["links"]
        remote = (await client.get(row["remoteSubscriptionsUri"])).json()
        local = (await client.get(row["localSubscriptionsUri"])).json()
    topics = [(each["remoteSubscriptionTopic"], each["up"]) for each in remote["data"]]
    assert topics == [("private/>", False), ("weather/>", True)]
    assert local["data"] == []


@pytest.mark.parametrize("enabled", ["true", "false"])
async def test_a_disabled_message_vpn(running: Any, enabled: str) -> None:
    """A bridge stays enabled in a message VPN that is not, which has a word of its own."""
    text = WANTING.replace("LINK", "1").replace("ENABLED", enabled)
    async with running(text, "core") as node:
        row = Seen(node).bridge("yellow", "from-blue")
        assert row.enabled
        assert row.health == ("down" if enabled == "true" else "msg-vpn-disabled")
        category = "no-failure" if enabled == "true" else "local-operational-state-problem"
        assert row.rx_connection_failure_category == category


@pytest.mark.parametrize("window", [1, 255])
async def test_what_limits_a_bridge(
    running: Any, client_of: Any, port: Any, until: Any, window: int
) -> None:
    """The remote tells how often a message has waited for the window; with a wide one none has."""
    narrow = CORE.replace("to-core}", f"to-core, egress_flow_window_size: {window}}}")
    async with running(EDGE, "edge") as edge_node:
        text = narrow.replace("LINK", str(port(edge_node, "link")))
        async with running(text, "core") as node:
            core = Seen(node)
            await until(lambda: core.bridge("yellow", "from-blue").bound_to_queue)
            publisher = await client_of(edge_node)
            await publisher.connect("p")
            for number in range(20):
                await publisher.send(Publish(b"orders/1", b"x", qos=1, packet_id=number + 1))
            for _ in range(20):
                await publisher.packet()
            await until(lambda: core.figures("yellow", "from-blue").guaranteed_rx_msg_count == 20)
            if window == 1:
                await until(
                    lambda: core.bridge("yellow", "from-blue").remote_queue_window_closed_count > 0
                )
                assert core.figures("yellow", "from-blue").remote_queue_window_closed_count > 0
            else:
                await until(lambda: core.bridge("yellow", "from-blue").remote_queue_msg_count == 0)
                assert core.bridge("yellow", "from-blue").remote_queue_window_closed_count == 0


async def test_a_bridge_that_stands_by(running: Any, client_of: Any, port: Any, until: Any) -> None:
    """Of two bridges at one exclusive queue the second stands by until the first goes; both see how much waits."""
    second = CORE.replace("      from-blue:", "      second:").partition("    bridges:\n")[2]
    closed = CORE.replace(
        "orders: {sub",
        "orders: {ingress_enabled: false, reject_msg_to_sender_on_discard_behavior: always, sub",
    )
    async with running(EDGE, "edge") as edge_node:
        text = (closed + second).replace("LINK", str(port(edge_node, "link")))
        async with running(text, "core") as node:
            core = Seen(node)
            both = [core.node.bridges[number].record.facts.name for number in (0, 1)]
            await until(lambda: all(core.bridge("yellow", one).bound_to_queue for one in both))
            await until(
                lambda: (
                    sorted(core.bridge("yellow", one).remote_queue_standby for one in both)
                    == [False, True]
                )
            )
            (first,) = [one for one in both if not core.bridge("yellow", one).remote_queue_standby]
            (other,) = set(both) - {first}
            row = core.bridge("yellow", other)
            assert (row.health, row.remote_queue_msg_count) == ("up", 0)
            assert [one.stands_by for one in row.remotes] == [True]
            assert core.figures("yellow", other).remote_queue_standby == 1
            publisher = await client_of(edge_node)
            await publisher.connect("p")
            for number in range(3):
                await publisher.send(Publish(b"orders/1", b"x", qos=1, packet_id=number + 1))
                await publisher.packet()
            # It is told with the next heartbeat.
            for one in both:
                await until(lambda one=one: core.bridge("yellow", one).remote_queue_msg_count == 3)
            assert core.figures("yellow", first).remote_queue_msg_count == 3
            assert core.bridges["yellow", first].disconnect()
            await until(lambda: not core.bridge("yellow", other).remote_queue_standby)
            assert core.bridge("yellow", other).bound_to_queue


async def test_a_bridge_of_a_router_without_a_spool(running: Any, port: Any, until: Any) -> None:
    """A bridge without a spool that should take from a queue says that it cannot, while Direct messages cross."""
    async with running(EDGE, "edge") as edge_node:
        text = CORE.replace("LINK", str(port(edge_node, "link")))
        text = text.replace("    queues: {orders: {subscriptions: [orders/>]}}\n", "")
        async with running(f"guaranteed_msging: {{enabled: false}}\n{text}", "core") as node:
            core = Seen(node)
            await until(lambda: core.bridge("yellow", "from-blue").health == "unbound")
            why = core.bridge("yellow", "from-blue").inbound_failure_reason
            assert why == "not bound to its queue: this router keeps no guaranteed messages"
