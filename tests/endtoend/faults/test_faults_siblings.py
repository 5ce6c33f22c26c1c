"""Bridges side by side: what happens to one leaves the others, and the clients, alone."""

import statistics
import time
from typing import Any

import pytest
import yaml

Document = dict[str, Any]


def bridge(location: str, vpn: str, **more: Any) -> Document:
    """A bridge that takes out/#."""
    return {
        "topic_syntax": "mqtt",
        "remote_connection": {"retry_delay": 0, "heartbeat_interval": 150},
        "remote_authentication": {"basic": {"client_username": "bridge"}},
        "remote_msg_vpns": [{"name": vpn, "location": location}],
        "remote_subscriptions": ["out/#"],
    } | more


def open_vpn(**more: Any) -> Document:
    """A VPN that lets everybody in."""
    return {
        "authentication": {"basic": {"enabled": False}},
        "client_profiles": {"default": {"allow_bridge_connections_enabled": True}},
    } | more


def router(vpns: Document) -> str:
    """A router with an MQTT port for each VPN."""
    listeners = [{"protocol": "http"}, {"protocol": "link"}]
    listeners += [{"protocol": "mqtt", "msg_vpn": name} for name in vpns]
    return yaml.safe_dump(
        {
            "listeners": [each | {"bind": "127.0.0.1:0"} for each in listeners],
            "msg_vpns": vpns,
        },
        sort_keys=False,
    )


def round_trips(client: Any, count: int) -> list[float]:
    """Seconds that messages to oneself take, one after the other."""
    found = []
    for number in range(count):
        began = time.perf_counter()
        client.publish("here/x", str(number).encode())
        client.next()
        found.append(time.perf_counter() - began)
    return found


def test_dead_remotes_slow_no_client(start: Any, network: Any, paho: Any) -> None:
    """Remotes that refuse, hang or have no name leave the 99th percentile of local traffic as it was."""
    dead = network.link()
    frozen = network.link()
    frozen.freeze()
    refused = network.link()
    refused.unreachable()
    places = [dead.address, frozen.address, refused.address, "no-such-host.invalid:1"] * 5
    bridges = {f"b{number}": bridge(place, "v") for number, place in enumerate(places)}
    quiet = start(router({"v": open_vpn()}), "quiet")
    busy = start(router({"v": open_vpn(bridges=bridges)}), "busy")
    assert busy.ready_after_s < quiet.ready_after_s + 5
    figures = []
    for each in (quiet, busy):
        client = paho(each.port("mqtt"), "c")
        client.subscribe("here/#")
        client.publish("here/x", b"")
        client.next()
        figures.append(statistics.quantiles(round_trips(client, 200), n=100)[98])
    print("p99 in ms without and with dead remotes:", *(round(s * 1000, 2) for s in figures))
    assert figures[1] < figures[0] + 0.1
    assert all(row["health"] == "down" for row in busy.bridges())
    assert busy.stop() == 0
    assert not busy.told("Traceback")


def test_a_fault_stays_with_its_bridge(
    start: Any, network: Any, paho: Any, publishing: Any
) -> None:
    """Two bridges between the same two routers: one fails again and again, the other misses nothing."""
    bad, good = network.link(), network.link()
    edge = start(router({"blue": open_vpn(), "green": open_vpn()}), "edge")
    for link in (bad, good):
        link.target = ("127.0.0.1", edge.port("link"))
    core = start(
        router(
            {
                "yellow": open_vpn(bridges={"from-blue": bridge(bad.address, "blue")}),
                "red": open_vpn(bridges={"from-green": bridge(good.address, "green")}),
            }
        ),
        "core",
    )
    core.bridges_up(2)
    yellow, red = (paho(core.port("mqtt", index), "s") for index in range(2))
    for client in (yellow, red):
        client.subscribe("#")
    loads = [publishing(paho(edge.port("mqtt", index), "p"), "out/x") for index in range(2)]
    for fault in (bad.cut, bad.freeze, bad.unreachable, bad.orphan):
        loads[1].passes(50)
        fault()
        loads[1].passes(50)
        bad.heal()
    bad.cut()
    failures = core.bridge("from-blue", inboundState="ready-in-sync")["failureCount"]
    assert failures >= 2
    last = loads[1].stop() - 1
    red.until_number(last)
    assert red.numbers() == list(range(last + 1))
    assert core.bridge("from-green")["failureCount"] == 0
    # The same topic and the same numbers in both pairs of VPNs: what is yellow's came once, in order.
    loads[0].stop()
    found = yellow.numbers()
    assert found == sorted(set(found))


def test_vpns_stay_apart(start: Any, network: Any, paho: Any) -> None:
    """Between the VPNs of two routers messages cross where a bridge is, that way only, and nowhere else."""
    link = network.link()
    edge = start(router({"blue": open_vpn(), "green": open_vpn()}), "edge")
    link.target = ("127.0.0.1", edge.port("link"))
    core = start(
        router(
            {
                "yellow": open_vpn(bridges={"from-blue": bridge(link.address, "blue")}),
                "red": open_vpn(),
            }
        ),
        "core",
    )
    core.bridges_up()
    places = {
        "blue": edge.port("mqtt", 0),
        "green": edge.port("mqtt", 1),
        "yellow": core.port("mqtt", 0),
        "red": core.port("mqtt", 1),
    }
    heard = {name: paho(port, "s") for name, port in places.items()}
    for client in heard.values():
        client.subscribe("#")
    for turn in range(2):
        for name, client in heard.items():
            client.publish("out/x", name.encode())
            client.publish("private/x", name.encode())
            for _ in range(2):
                assert client.next()[1] == name.encode()
            if name == "blue":
                assert heard["yellow"].next() == ("out/x", b"blue")
        if turn == 0:
            link.cut()
            core.says("VPN_BRIDGING_LINK_DOWN")
            core.bridge("from-blue", inboundState="ready-in-sync")
    assert all(client.arrived.empty() for client in heard.values())


def test_two_ways_one_copy(start: Any, network: Any, paho: Any) -> None:
    """Over a pair of routers, each bridged to core and to its twin, each message comes once, also with one way cut."""
    links = {name: network.link() for name in ("one-two", "two-one", "one", "two")}
    names = ("one", "two")
    routers = {}
    for name, twin in (names, names[::-1]):
        text = router(
            {
                "blue": open_vpn(
                    bridges={f"from-{twin}": bridge(links[f"{name}-{twin}"].address, "blue")}
                )
            }
        )
        routers[name] = start(text, name)
    links["one-two"].target = ("127.0.0.1", routers["two"].port("link"))
    links["two-one"].target = ("127.0.0.1", routers["one"].port("link"))
    for name in names:
        links[name].target = ("127.0.0.1", routers[name].port("link"))
    bridges = {f"from-{name}": bridge(links[name].address, "blue") for name in names}
    core = start(router({"yellow": open_vpn(bridges=bridges)}), "core")
    for name, twin in (names, names[::-1]):
        routers[name].bridge(f"from-{twin}", inboundState="ready-in-sync")
        core.bridge(f"from-{name}", inboundState="ready-in-sync")
    far = paho(core.port("mqtt"), "far")
    far.subscribe("#")
    near = paho(routers["one"].port("mqtt"), "near")

    def all_come_once(phase: str) -> None:
        for number in range(100):
            near.publish(f"out/{phase}", str(number).encode())
        assert [far.next() for _ in range(100)] == [
            (f"out/{phase}", str(number).encode()) for number in range(100)
        ]

    all_come_once("whole")
    links["one"].unreachable()
    core.says("VPN_BRIDGING_LINK_DOWN")
    all_come_once("by way of two")
    links["one"].heal()
    core.bridge("from-one", inboundState="ready-in-sync")
    all_come_once("whole again")
    near.publish("out/end")
    assert far.next()[0] == "out/end"
    discarded = [row["discardedRx"] for row in core.bridges()]
    assert sum(each.get("duplicate", 0) for each in discarded) >= 100
    assert far.arrived.empty()


@pytest.mark.slow
def test_a_half_open_primary_spares_the_secondary(start: Any, network: Any, paho: Any) -> None:
    """While the better remote takes connections and says nothing, the other one serves; then it goes back."""
    primary, secondary = network.link(), network.link()
    routers = [start(router({"blue": open_vpn()}), name) for name in ("one", "two")]
    for link, each in zip((primary, secondary), routers, strict=True):
        link.target = ("127.0.0.1", each.port("link"))
    remotes = [
        {"name": "blue", "location": link.address, "connect_order": order}
        for order, link in ((1, primary), (2, secondary))
    ]
    made = bridge("", "blue", remote_msg_vpns=remotes)
    made["remote_connection"] |= {"failback_delay": 1}
    core = start(router({"yellow": open_vpn(bridges={"b": made})}), "core")
    core.bridge("b", inboundState="ready-in-sync", remoteRouterName="one")
    far = paho(core.port("mqtt"), "far")
    far.subscribe("#")
    primary.freeze()
    core.bridge("b", inboundState="ready-in-sync", remoteRouterName="two")
    core.err.clear()
    near = paho(routers[1].port("mqtt"), "near")
    ends = time.monotonic() + 2.5
    number = 0
    while time.monotonic() < ends:
        near.publish("out/x", str(number).encode())
        assert far.next() == ("out/x", str(number).encode())
        number += 1
        time.sleep(0.05)
    assert core.told("DOWN") == []
    primary.heal()
    primary.cut()
    core.bridge("b", inboundState="ready-in-sync", remoteRouterName="one")
    paho(routers[0].port("mqtt"), "near").publish("out/x", b"back")
    assert far.next() == ("out/x", b"back")
    assert core.told("DOWN") == []


@pytest.mark.parametrize("both", [False, True], ids=["one way", "both ways"])
def test_retained_messages_and_reconnects(
    start: Any, network: Any, paho: Any, retained: Any, both: bool
) -> None:
    """The flag crosses and so does the empty message that clears; a reconnect sends nothing anew."""
    there, back = network.link(), network.link()
    extra = {"bridges": {"from-yellow": bridge(back.address, "yellow")}} if both else {}
    edge = start(router({"blue": open_vpn(**extra)}), "edge")
    there.target = ("127.0.0.1", edge.port("link"))
    core = start(
        router({"yellow": open_vpn(bridges={"from-blue": bridge(there.address, "blue")})}), "core"
    )
    back.target = ("127.0.0.1", core.port("link"))
    core.bridge("from-blue", inboundState="ready-in-sync")
    if both:
        edge.bridge("from-yellow", inboundState="ready-in-sync")
    live = paho(core.port("mqtt"), "live")
    live.subscribe("out/#")
    home = paho(edge.port("mqtt"), "home")
    for topic in ("out/#", "private/#"):
        home.subscribe(topic)
    near = paho(edge.port("mqtt"), "near")
    for topic, payload in (("out/kept", b"1"), ("out/gone", b"2"), ("private/kept", b"3")):
        near.client.publish(topic, payload, retain=True).wait_for_publish(10)
    assert [live.next() for _ in range(2)] == [("out/kept", b"1"), ("out/gone", b"2")]
    assert [home.next()[1] for _ in range(3)] == [b"1", b"2", b"3"]
    assert retained(core.port("mqtt")) == {"out/kept": b"1", "out/gone": b"2"}
    for link in (there, back):
        link.cut()
    core.says("VPN_BRIDGING_LINK_DOWN")
    core.bridge("from-blue", inboundState="ready-in-sync")
    near.client.publish("out/gone", b"", retain=True).wait_for_publish(10)
    # Neither what is retained there nor here was sent again: the next message is the new one.
    assert live.next() == ("out/gone", b"")
    assert home.next() == ("out/gone", b"")
    assert retained(core.port("mqtt")) == {"out/kept": b"1"}
    assert retained(edge.port("mqtt")) == {"out/kept": b"1", "private/kept": b"3"}
    if both:
        edge.bridge("from-yellow", inboundState="ready-in-sync")
        paho(core.port("mqtt"), "far").client.publish("out/back", b"4", retain=True)
        assert home.next() == ("out/back", b"4")
        assert retained(edge.port("mqtt"))["out/back"] == b"4"
        assert live.next() == ("out/back", b"4")
    near.publish("out/end")
    assert live.next()[0] == "out/end"
    assert home.next()[0] == "out/end"
    assert live.arrived.empty()
    assert home.arrived.empty()
