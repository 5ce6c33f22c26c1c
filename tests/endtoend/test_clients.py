"""Clients of a real router and a bridge as an operator sees them: counts, who gets what, and who is put out."""

import random
from typing import Any

import httpx
import pytest

EDGE = """
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: link, bind: "127.0.0.1:0"}
  - {protocol: http, bind: "127.0.0.1:0"}
msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    client_profiles: {default: {allow_bridge_connections_enabled: true}}
    queues: {orders: {subscriptions: [a/>]}}
"""
CORE = """
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: yellow}
  - {protocol: http, bind: "127.0.0.1:0"}
msg_vpns:
  yellow:
    authentication: {basic: {enabled: false}}
    bridges:
      from-blue:
        remote_connection: {retry_delay: 0}
        remote_authentication: {basic: {client_username: core}}
        remote_msg_vpns: [{name: blue, router: edge, location: "127.0.0.1:LINK"}]
        remote_subscriptions: [a/>, b/c]
"""
FILTERS = ["a", "a/b", "a/+", "#", "b/#", "+/c", "c"]
TOPICS = ["a", "a/b", "b/c", "c", "d/e/f", "a/b/c"]
ADMINISTRATIVE_ACTION = 0x98
PEER = "#bridge/core/yellow/from-blue"


@pytest.fixture
def asked() -> Any:
    """`asked(router)` is a client of its management API."""
    made = []

    def run(router: Any) -> httpx.Client:
        base = f"http://127.0.0.1:{router.port('http')}"
        made.append(httpx.Client(base_url=base, trust_env=False, timeout=60))
        return made[-1]

    yield run
    for client in made:
        client.close()


def test_clients(start: Any, paho: Any, asked: Any, patiently: Any) -> None:
    """What matches says is what happens, counts are what was sent, and who is disconnected knows why."""
    edge = start(EDGE, "edge")
    core = start(CORE.replace("LINK", str(edge.port("link"))), "core")
    core.bridges_up()
    api = asked(edge)
    seed = random.randrange(1 << 32)
    draw = random.Random(seed)
    clients = {
        f"c/{number}": paho(edge.port("mqtt"), f"c/{number}", level=4 + number % 2)
        for number in range(4)
    }
    far = paho(core.port("mqtt"), "far")
    far.subscribe("#")
    for client in clients.values():
        for text in draw.sample(FILTERS, 2):
            client.subscribe(text)
    publisher = paho(edge.port("mqtt"), "publisher")
    wanted: dict[str, list[str]] = {name: [] for name in (*clients, PEER)}
    queued = 0
    for topic in draw.choices(TOPICS, k=12):
        rows = api.get("/vpnrouter/v1/msgVpns/blue/matches", params={"topic": topic}).json()["data"]
        for name in {row["name"] for row in rows if row["holder"] in {"client", "bridge"}}:
            wanted[name].append(topic)
        queued += any(row["name"] == "orders" for row in rows)
        publisher.publish(topic, b"x")
    for client in clients.values():
        client.subscribe("end")
    publisher.publish("end")
    for name, client in clients.items():
        arrived = [client.next()[0] for _ in range(len(wanted[name]) + 1)]
        assert arrived == [*wanted[name], "end"], f"seed {seed}: {name}"
    assert [far.next()[0] for _ in wanted[PEER]] == wanted[PEER], f"seed {seed}"
    base = "/SEMP/v2/monitor/msgVpns/blue"
    one = api.get(f"{base}/clients/c%2F1").json()["data"]
    assert one["txMsgCount"] == len(wanted["c/1"]) + 1
    assert one["subscriptionCount"] == 3
    assert api.get(f"{base}/clients/publisher").json()["data"]["rxMsgCount"] == 13
    link = api.get(f"{base}/clients/%23bridge%2Fcore%2Fyellow%2Ffrom-blue").json()["data"]
    assert (link["platform"], link["txMsgCount"]) == ("vpnrouter link", len(wanted[PEER]))
    assert api.get(f"{base}/queues/orders").json()["data"]["msgCount"] == queued
    _put_out(api, clients, patiently)
    _rates(api, publisher, patiently)


def _put_out(api: httpx.Client, clients: Any, patiently: Any) -> None:
    action = "/SEMP/v2/action/msgVpns/blue"
    five, four = clients["c/1"], clients["c/0"]
    for name in ("c%2F1", "c%2F0"):
        assert api.put(f"{action}/clients/{name}/disconnect").status_code == 200
        assert api.put(f"{action}/clients/{name}/disconnect").status_code == 400
    assert five.disconnected.get(timeout=60) == ADMINISTRATIVE_ACTION
    assert four.disconnected.get(timeout=60) != 0
    names = api.get("/vpnrouter/v1/clients?select=clientName&count=100").json()["data"]
    assert [row["clientName"] for row in names] == [PEER, "c/2", "c/3", "publisher"]
    bridge = f"{action}/bridges/%23bridge%2Fcore%2Fyellow%2Ffrom-blue,auto"
    assert api.put(f"{bridge}/clearStats").status_code == 200
    assert api.put(f"{bridge}/disconnect").status_code == 200

    def back() -> bool:
        (row,) = api.get("/vpnrouter/v1/bridges").json()["data"]
        assert row["txImbalance"] == 0
        return bool(row["outboundState"] == "ready" and row["uptime"] >= 0 and row["remoteAddress"])

    patiently(back, "the bridge connects again")


def _rates(api: httpx.Client, publisher: Any, patiently: Any) -> None:
    def fast() -> bool:
        for _ in range(20):
            publisher.publish("a/b", b"x")
        row = api.get("/SEMP/v2/monitor/msgVpns/blue").json()["data"]
        return bool(row["rxMsgRate"] > 0 and row["averageTxByteRate"] > 0)

    patiently(fast, "rates of a message VPN through which messages go")
