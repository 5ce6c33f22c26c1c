"""Clients of a real router and a bridge as an operator sees them: counts, who gets what, and who is put out."""

import random
from typing import Any

import httpx

FILTERS = ["a", "a/b", "a/+", "#", "b/#", "+/c", "c"]
TOPICS = ["a", "a/b", "b/c", "c", "d/e/f", "a/b/c"]
ADMINISTRATIVE_ACTION = 0x98
PEER = "#bridge/core/yellow/from-blue"


def test_clients(site: Any, bridge: Any, paho: Any, patiently: Any) -> None:
    """What matches says is what happens, counts are what was sent, and who is disconnected knows why."""
    edge = site("edge", vpn={"queues": {"orders": {"subscriptions": ["a/>"]}}}, blue={})
    from_blue = bridge("blue", edge, "a/>", "b/c", router="edge")
    core = site("core", yellow={"from-blue": from_blue})
    core.bridges_up()
    base_url = f"http://127.0.0.1:{edge.port('http')}"
    with httpx.Client(base_url=base_url, trust_env=False, timeout=60) as api:
        _as_an_operator_sees_them(edge, core, paho, api, patiently)


def _as_an_operator_sees_them(
    edge: Any, core: Any, paho: Any, api: httpx.Client, patiently: Any
) -> None:
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
