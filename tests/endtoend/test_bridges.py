"""Bridges between router processes: what crosses, what does not, and what happens when one side goes."""

import signal
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml

import vpnrouter

REPOSITORY = Path(__file__).parents[2]

EDGE = """
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: link, bind: "127.0.0.1:LINK"}
msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    client_profiles: {bridging: {allow_bridge_connections_enabled: true}}
    client_usernames:
      core-bridge: {password: change-me, client_profile: bridging}
      app: {password: app}
"""

CORE = """
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: yellow}
msg_vpns:
  yellow:
    authentication: {basic: {enabled: false}}
    bridges:
      from-blue:
        remote_connection: {retry_delay: 0}
        remote_authentication: {basic: {client_username: USER, password: PASSWORD}}
        remote_msg_vpns: [{name: blue, router: edge, location: "LOCATION"}]
        remote_subscriptions: ["weather/>", {topic: "alerts/*", deliver_always_enabled: true}]
"""


def edge(port: int = 0) -> str:
    """The side where messages are published."""
    return EDGE.replace("LINK", str(port))


def core(port: int, user: str = "core-bridge", password: str = "change-me") -> str:
    """The side that has the bridge."""
    text = CORE.replace("LOCATION", f"127.0.0.1:{port}")
    return text.replace("USER", user).replace("PASSWORD", password)


def test_messages_cross_a_bridge(start: Any, paho: Any) -> None:
    """What the remote subscriptions attract arrives in the other VPN, in order; nothing else does."""
    one = start(edge(), "edge")
    other = start(core(one.port("link")), "core")
    other.bridges_up()
    publisher = paho(one.port("mqtt"), "p")
    subscriber = paho(other.port("mqtt"), "s")
    subscriber.subscribe("#")
    back = paho(one.port("mqtt"), "back")
    back.subscribe("#")
    paho(other.port("mqtt"), "p").publish("weather/yellow", b"stays in yellow")
    assert subscriber.next() == ("weather/yellow", b"stays in yellow")
    for number in range(200):
        publisher.publish(f"weather/{number}", bytes(number))
        publisher.publish(f"private/{number}", b"not asked for")
        publisher.publish(f"alerts/deep/{number}", b"not asked for")
    publisher.publish("alerts/end", b"")
    for number in range(200):
        assert subscriber.next() == (f"weather/{number}", bytes(number))
    assert subscriber.next() == ("alerts/end", b"")
    heard_at_home = [back.next()[0] for _ in range(601)]
    assert "weather/yellow" not in heard_at_home
    assert subscriber.arrived.empty()
    assert back.arrived.empty()
    assert other.stop() == 0
    assert one.stop() == 0
    for router in (one, other):
        assert "Traceback" not in "".join(router.err)


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


def test_a_remote_that_comes_back(start: Any, paho: Any) -> None:
    """A restarted remote has its bridge back, and the first message published after that arrives."""
    one = start(edge(), "edge")
    port = one.port("link")
    other = start(core(port), "core")
    other.bridges_up()
    subscriber = paho(other.port("mqtt"), "s")
    subscriber.subscribe("#")
    assert one.stop() == 0
    other.says("down: 503 Service Unavailable")
    other.err.clear()
    one = start(edge(port), "edge")
    other.bridges_up()
    paho(one.port("mqtt"), "p").publish("weather/1", b"first")
    assert subscriber.next() == ("weather/1", b"first")


def test_a_remote_that_is_killed(start: Any, paho: Any) -> None:
    """A remote that dies without a word is missed at once, and local traffic goes on."""
    one = start(edge(), "edge")
    other = start(core(one.port("link")), "core")
    other.bridges_up()
    one.kill()
    other.says("down: ")
    local = paho(other.port("mqtt"), "c")
    local.subscribe("#")
    local.publish("weather/local", b"x")
    assert local.next() == ("weather/local", b"x")
    assert other.stop() == 0


def test_a_local_router_that_is_killed(start: Any, paho: Any) -> None:
    """When the side with the bridge is killed and restarted, its bridge is let in again."""
    one = start(edge(), "edge")
    other = start(core(one.port("link")), "core")
    other.bridges_up()
    other.kill()
    again = start(core(one.port("link")), "core")
    again.bridges_up()
    subscriber = paho(again.port("mqtt"), "s")
    subscriber.subscribe("#")
    paho(one.port("mqtt"), "p").publish("weather/1", b"x")
    assert subscriber.next() == ("weather/1", b"x")


@pytest.mark.parametrize(
    ("user", "password", "reason"),
    [
        ("core-bridge", "guess", "403 Forbidden"),
        ("app", "app", "403 Bridge Connections Not Allowed"),
    ],
    ids=["wrong password", "no permission"],
)
def test_a_refused_bridge_says_why(
    start: Any, paho: Any, user: str, password: str, reason: str
) -> None:
    """The dialling side tells the reason on stderr and serves its own clients."""
    text = edge().replace("authentication: {basic: {enabled: false}}", "")
    one = start(text, "edge")
    other = start(core(one.port("link"), user, password), "core")
    other.says(f"rejected: {reason}")
    local = paho(other.port("mqtt"), "c")
    local.subscribe("#")
    local.publish("a", b"x")
    assert local.next() == ("a", b"x")
    assert password not in "".join(other.err).replace(reason, "")


def test_another_router_than_expected(start: Any) -> None:
    """A bridge that names its remote router does not enter another one at the same address."""
    one = start(edge(), "impostor")
    other = start(core(one.port("link")), "core")
    other.says("rejected: 404 Router Name Mismatch: this is impostor")


LOOPBACK = """
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: a}
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: b}
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: c}
  - {protocol: link, bind: "127.0.0.1:PORT"}
msg_vpns:
  a:
    authentication: &open {basic: {enabled: false}}
    client_profiles: &bridging {default: {allow_bridge_connections_enabled: true}}
  b:
    authentication: *open
    client_profiles: *bridging
    bridges:
      from-a:
        remote_authentication: {basic: {client_username: bridge}}
        remote_msg_vpns: [{name: a, location: "127.0.0.1:PORT"}]
        remote_subscriptions: [">"]
  c:
    authentication: *open
    client_profiles: *bridging
    bridges:
      from-b:
        remote_authentication: {basic: {client_username: bridge}}
        remote_msg_vpns: [{name: b, location: "127.0.0.1:PORT"}]
        remote_subscriptions: [">"]
"""


def test_a_chain_inside_one_router(start: Any, paho: Any, free_port: Any) -> None:
    """Three VPNs of one router, chained by bridges to itself: what enters a reaches b and c, once."""
    router = start(LOOPBACK.replace("PORT", str(free_port())), "ring")
    router.bridges_up(2)
    clients = [paho(router.port("mqtt", index), "c") for index in range(3)]
    for client in clients:
        client.subscribe("#")
    for number in range(50):
        clients[0].publish(f"t/{number}", b"x")
    clients[0].publish("end", b"")
    for client in clients:
        assert [client.next()[0] for _ in range(51)] == [f"t/{n}" for n in range(50)] + ["end"]
    clients[2].publish("only/c", b"x")
    assert clients[2].next() == ("only/c", b"x")
    clients[0].publish("last", b"")
    assert [client.next() for client in clients] == [("last", b"")] * 3
    assert all(client.arrived.empty() for client in clients)


BOTH = """
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: v}
  - {protocol: link, bind: "127.0.0.1:OWN"}
msg_vpns:
  v:
    authentication: {basic: {enabled: false}}
    client_profiles: {default: {allow_bridge_connections_enabled: true}}
    bridges:
      to-the-other:
        topic_syntax: mqtt
        remote_connection: {retry_delay: 0}
        remote_authentication: {basic: {client_username: bridge}}
        remote_msg_vpns: [{name: v, location: "127.0.0.1:OTHER"}]
        remote_subscriptions: ["#"]
"""


def test_everything_both_ways(start: Any, paho: Any, free_port: Any) -> None:
    """Two bridges with "#" against each other: a publish on either side arrives once on each."""
    ports = [free_port(), free_port()]
    routers = [
        start(BOTH.replace("OWN", str(own)).replace("OTHER", str(far)), name)
        for name, own, far in (("left", *ports), ("right", *reversed(ports)))
    ]
    for router in routers:
        router.bridges_up()
    clients = [paho(router.port("mqtt"), "c") for router in routers]
    for client in clients:
        client.subscribe("#")
    for turn in range(20):
        for client in clients:
            client.publish(f"t/{turn}", b"x")
            for receiver in clients:
                assert receiver.next() == (f"t/{turn}", b"x")
    for client in clients:
        client.publish("end", b"")
    for client in clients:
        assert [client.next(), client.next()] == [("end", b"")] * 2
        assert client.arrived.empty()


def test_a_dead_remote_slows_nothing(start: Any, paho: Any, free_port: Any) -> None:
    """A remote that never answers, one that refuses, and names of nobody hold up neither start nor traffic."""
    with socket.create_server(("127.0.0.1", 0), backlog=1) as silent:
        refusing = free_port()
        remotes = [
            f"127.0.0.1:{silent.getsockname()[1]}",
            f"127.0.0.1:{refusing}",
            "no-such-host.invalid:55555",
            "a" * 80 + ":55555",
            "v:elsewhere",
        ]
        text = CORE.replace("USER", "x").replace("PASSWORD", "x")
        head, _, bridge = text.partition("      from-blue:\n")
        rows = "".join(
            f"      b{number}:\n" + bridge.replace("LOCATION", remote)
            for number, remote in enumerate(remotes)
        )
        usual_s = start(head.partition("    bridges:")[0], "plain").ready_after_s
        router = start(head + rows, "core")
        # A remote that never answers is given up after ten seconds.
        assert router.ready_after_s < usual_s + 9
        client = paho(router.port("mqtt"), "c")
        client.subscribe("#")
        for number in range(100):
            client.publish("weather/x", bytes(number))
            assert client.next() == ("weather/x", bytes(number))
        assert router.process.poll() is None
        assert router.stop() == 0
        assert "Traceback" not in "".join(router.err)


@pytest.mark.slow
def test_a_stopped_remote_is_missed(start: Any, paho: Any) -> None:
    """A remote that is stopped in mid-air is given up after three heartbeats; when it goes on, the bridge is back."""
    one = start(edge(), "edge")
    other = start(core(one.port("link")), "core")
    other.bridges_up()
    one.process.send_signal(signal.SIGSTOP)
    local = paho(other.port("mqtt"), "c")
    local.subscribe("#")
    local.publish("weather/local", b"x")
    assert local.next() == ("weather/local", b"x")
    other.says("down: 408 Heartbeat Timeout")
    other.err.clear()
    one.process.send_signal(signal.SIGCONT)
    other.bridges_up()
    paho(one.port("mqtt"), "p").publish("weather/1", b"back")
    assert local.next() == ("weather/1", b"back")


def test_the_build_under_test_runs(start: Any) -> None:
    """The processes run the package that these tests import."""
    router = start(edge(), "edge")
    command = Path(f"/proc/{router.process.pid}/environ").read_bytes().split(b"\0")
    wanted = f"PYTHONPATH={Path(vpnrouter.__file__).parents[1]}"
    assert wanted.encode() in command
