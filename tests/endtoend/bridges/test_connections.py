"""Which bridges share a connection, and how a remote is found."""

import socket
from pathlib import Path
from typing import Any

import pytest
import yaml

REPOSITORY = Path(__file__).parents[3]
IN_SYNC = "ready-in-sync"


@pytest.mark.parametrize("named", [True, False], ids=["named", "unnamed"])
def test_both_dial_and_one_connection_stays(
    site: Any,
    bridge: Any,
    listener: Any,
    heard: Any,
    free_port: Any,
    connections: Any,
    named: bool,
) -> None:
    """Two bridges that lead both ways end up on one TCP connection, whether or not routers are named.

    Each message arrives once on each side, also where both bridges attract everything.
    """
    ports = {name: free_port() for name in ("edge", "core")}

    def half(name: str, far: str, vpn: str) -> Any:
        location = f"127.0.0.1:{ports[far]}"
        bridges = {
            f"from-{vpn}": bridge(vpn, location, ">", router=far if named else ""),
        }
        own = "yellow" if vpn == "blue" else "blue"
        return site(name, f"127.0.0.1:{ports[name]}", **{own: bridges})

    edge = half("edge", "core", "yellow")
    core = half("core", "edge", "blue")
    shown = edge.bridge("from-yellow", inboundState=IN_SYNC, outboundBridgeName="from-blue")
    other = core.bridge("from-blue", inboundState=IN_SYNC, outboundBridgeName="from-yellow")
    assert shown["outboundState"] == other["outboundState"] == "ready"
    assert {shown["establisher"], other["establisher"]} == {"local", "remote"}
    connections(1, edge, core)
    blue, yellow = listener(edge), listener(core)
    for number in range(20):
        blue.publish(f"from-blue/{number}")
        yellow.publish(f"from-yellow/{number}")
    for client in (blue, yellow):
        found = [client.next()[0] for _ in range(40)]
        for side in ("blue", "yellow"):
            mine = [topic for topic in found if topic.startswith(f"from-{side}/")]
            assert mine == [f"from-{side}/{number}" for number in range(20)]
    blue.publish("end")
    assert [heard(client) for client in (blue, yellow)] == [[], []]
    for router, name in ((edge, "from-yellow"), (core, "from-blue")):
        status = router.bridge(name)
        assert (status["rxImbalance"], status["txImbalance"]) == (0, 0)


def test_several_bridges_of_one_vpn(
    site: Any, bridge: Any, listener: Any, paho: Any, heard: Any, connections: Any
) -> None:
    """A VPN with two bridges gets what both attract, and hands nothing from one remote to the other."""
    edge = site("edge", red={}, blue={})
    core = site(
        "core", hub={"from-red": bridge("red", edge, ">"), "from-blue": bridge("blue", edge, ">")}
    )
    core.bridges_up(2)
    connections(2, edge)
    hub, red, blue = listener(core), listener(edge, 0), listener(edge, 1)
    red.publish("a/red")
    assert hub.next() == ("a/red", b"")
    blue.publish("a/blue")
    assert hub.next() == ("a/blue", b"")
    hub.publish("a/hub")
    assert hub.next() == ("a/hub", b"")
    for client, name in ((red, "red"), (blue, "blue")):
        client.publish("end")
        assert heard(client) == [(f"a/{name}", b"")]


def test_two_vpns_of_one_router(
    site: Any, bridge: Any, listener: Any, heard: Any, connections: Any
) -> None:
    """`v:OWNROUTER` joins two VPNs of one router both ways; each message is in each VPN once."""
    router = site(
        "solo",
        left={"from-right": bridge("right", "v:solo", ">")},
        right={"from-left": bridge("left", "v:solo", ">")},
    )
    router.bridge("from-left", inboundState=IN_SYNC, outboundBridgeName="from-right")
    router.bridge("from-right", inboundState=IN_SYNC, outboundBridgeName="from-left")
    connections(1, router)
    left, right = listener(router, 0), listener(router, 1)
    for number in range(10):
        left.publish(f"l/{number}")
        right.publish(f"r/{number}")
    for client in (left, right):
        found = sorted(client.next()[0] for _ in range(20))
        assert found == sorted(f"{side}/{n}" for side in "lr" for n in range(10))
    right.publish("end")
    assert [heard(client) for client in (left, right)] == [[], []]


def test_a_router_found_by_name(
    site: Any, bridge: Any, listener: Any, heard: Any, connections: Any
) -> None:
    """`v:ROUTER` leads, both ways, to where a router that a link of the message VPN goes to says it listens."""
    edge = site("edge", blue={"from-white": bridge("white", "v:core", "b/>", "end")}, green={})
    core = site(
        "core",
        yellow={
            "from-blue": bridge("blue", edge, "x"),
            "from-green": bridge("green", "v:edge", "a/>", "end"),
        },
        white={},
    )
    found = core.bridge("from-green", inboundState=IN_SYNC)
    assert found["remoteAddress"] == f"127.0.0.1:{edge.port('link')}"
    found = edge.bridge("from-white", inboundState=IN_SYNC)
    assert found["remoteAddress"] == f"127.0.0.1:{core.port('link')}"
    connections(3, edge, core)
    blue, green = listener(edge, 0), listener(edge, 1)
    yellow, white = listener(core, 0), listener(core, 1)
    green.publish("a/1")
    white.publish("b/1")
    for client in (green, white):
        client.publish("end")
    assert heard(yellow) == [("a/1", b"")]
    assert heard(blue) == [("b/1", b"")]


def test_ipv6(site: Any, bridge: Any, listener: Any, heard: Any) -> None:
    """A bridge dials `[::1]:PORT`; where the system has no IPv6, an IPv4 address in brackets' stead."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        host = "[::1]"
    except OSError:
        host = "127.0.0.1"
    edge = site("edge", f"{host}:0", blue={})
    location = f"{host}:{edge.port('link')}"
    core = site("core", yellow={"from-blue": bridge("blue", location, ">")})
    core.bridges_up()
    assert core.bridge("from-blue")["remoteAddress"] == location
    here, there = listener(core), listener(edge)
    there.publish("a", b"x")
    there.publish("end")
    assert heard(here) == [("a", b"x")]


def moved(name: str, changes: dict[str, str], directory: Path) -> str:
    """A configuration of the repository with its addresses changed, without its `router` block."""
    text = (REPOSITORY / "configs" / name).read_text(encoding="utf-8")
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    document = yaml.safe_load(text)
    del document["router"]
    document["trace"]["directory"] = str(directory / "traces")
    return yaml.safe_dump(document)


def test_the_configurations_of_the_repository(start: Any, paho: Any, tmp_path: Path) -> None:
    """configs/edge.yaml and configs/core.yaml, on other ports, give a bridge that carries messages."""
    ports = {"127.0.0.1:1883": "127.0.0.1:0", "127.0.0.1:55555": "127.0.0.1:0"}
    one = start(moved("edge.yaml", ports, tmp_path), "edge")
    ports = {
        "127.0.0.1:1884": "127.0.0.1:0",
        "127.0.0.1:55556": "127.0.0.1:0",
        "127.0.0.1:55555": f"127.0.0.1:{one.port('link')}",
    }
    other = start(moved("core.yaml", ports, tmp_path), "core")
    other.bridges_up()
    subscriber = paho(other.port("mqtt"), "s")
    subscriber.subscribe("#")
    paho(one.port("mqtt"), "p").publish("weather/be/brussels", b"rain")
    assert subscriber.next() == ("weather/be/brussels", b"rain")
    assert (one.stop(), other.stop()) == (0, 0)
    for router in ("edge", "core"):
        assert list((tmp_path / "traces").glob(f"date=*/router={router}/part-*.parquet"))
