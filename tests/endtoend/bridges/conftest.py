"""Routers with bridges, told by their message VPNs, clients that say what they heard, and a bridge that may fail."""

from collections.abc import Callable
from typing import Any

import pytest
import yaml
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from vpnrouter.demo.clients import accepted
from vpnrouter.testing.network import FaultyLink, FaultyNetwork

END = "end"
"""The last topic of a test; every bridge that `listener` asks about brings it."""

Document = dict[str, Any]


@pytest.fixture
def site(start: Any) -> Callable[..., Any]:
    """`site(NAME, VPN={BRIDGE: …}, …)`: a router with these message VPNs, their MQTT listeners in this order.

    `link` is where it listens for links and `more` is put over the document; with wait=False it may not be ready.
    """

    def run(
        name: str,
        link: str = "127.0.0.1:0",
        more: Document | None = None,
        wait: bool = True,
        **vpns: Any,
    ) -> Any:
        mqtt = [{"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": vpn} for vpn in vpns]
        document = {
            "listeners": [
                *mqtt,
                {"protocol": "http", "bind": "127.0.0.1:0"},
                {"protocol": "link", "bind": link},
            ],
            "msg_vpns": {
                vpn: {
                    "authentication": {"basic": {"enabled": False}},
                    "client_profiles": {"default": {"allow_bridge_connections_enabled": True}},
                    "client_usernames": {"bridge": {"password": "word"}},
                    "bridges": bridges,
                }
                for vpn, bridges in vpns.items()
            },
        }
        return start(yaml.safe_dump(document | (more or {})), name, wait)

    return run


@pytest.fixture
def bridge() -> Callable[..., Document]:
    """`bridge(VPN, LOCATION, FILTER, …, KEY=VALUE)`: a bridge from that remote message VPN."""

    def written(vpn: str, location: Any, *topics: Any, router: str = "", **more: Any) -> Document:
        remote = {"name": vpn, "location": location}
        if isinstance(location, FaultyLink):
            remote["location"] = location.address
        elif not isinstance(location, str):
            remote["location"] = f"127.0.0.1:{location.port('link')}"
        if router:
            remote["router"] = router
        return {
            "remote_connection": {"retry_delay": 0},
            "remote_authentication": {"basic": {"client_username": "bridge", "password": "word"}},
            "remote_msg_vpns": [remote],
            "remote_subscriptions": list(topics),
        } | more

    return written


@pytest.fixture
def listener(paho: Any) -> Callable[..., Any]:
    """`listener(ROUTER, INDEX)`: a client of the router's message VPN INDEX, subscribed to everything."""

    def connect(router: Any, index: int = 0) -> Any:
        client = paho(router.port("mqtt", index), "listener")
        client.subscribe("#")
        return client

    return connect


@pytest.fixture
def heard() -> Callable[[Any], list[tuple[str, bytes]]]:
    """What a client heard before the message END, which must come."""

    def collect(client: Any) -> list[tuple[str, bytes]]:
        found: list[tuple[str, bytes]] = []
        while (message := client.next())[0] != END:
            found.append(message)
        return found

    return collect


@pytest.fixture
def say() -> Callable[..., None]:
    """`say(CLIENT, TOPIC, PAYLOAD, NAME=VALUE)`: publish with user properties; `_` stands for `-`."""

    def publish(client: Any, topic: str, payload: bytes = b"", **properties: str) -> None:
        found = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
        if properties:
            found.UserProperty = [
                (name.replace("_", "-"), value) for name, value in properties.items()
            ]
        client.client.publish(topic, payload, properties=found).wait_for_publish(20)

    return publish


@pytest.fixture
def connections() -> Callable[..., int]:
    """`connections(ROUTER, …)`: how many TCP connections their link listeners have."""

    def count(*routers: Any) -> int:
        found = accepted({router.port("link") for router in routers})
        assert found is not None, "this system does not list its connections in /proc/net"
        return found

    return count


EDGE: dict[str, Any] = {
    "listeners": [
        {"protocol": "http", "bind": "127.0.0.1:0"},
        {"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": "blue"},
        {"protocol": "link", "bind": "127.0.0.1:0"},
    ],
    "msg_vpns": {
        "blue": {
            "authentication": {"basic": {"enabled": False}},
            "client_profiles": {"default": {"allow_bridge_connections_enabled": True}},
        }
    },
}

HEARTBEAT_MS = 300


def with_bridge(location: str) -> dict[str, Any]:
    """The configuration of core: VPN yellow with a bridge from VPN blue of edge."""
    return {
        "listeners": [
            {"protocol": "http", "bind": "127.0.0.1:0"},
            {"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": "yellow"},
        ],
        "msg_vpns": {
            "yellow": {
                "authentication": {"basic": {"enabled": False}},
                "bridges": {
                    "from-blue": {
                        "topic_syntax": "mqtt",
                        "remote_connection": {
                            "retry_delay": 0,
                            "heartbeat_interval": HEARTBEAT_MS,
                        },
                        "remote_authentication": {"basic": {"client_username": "core"}},
                        "remote_msg_vpns": [
                            {"name": "blue", "router": "edge", "location": location}
                        ],
                        "remote_subscriptions": ["out/#"],
                    }
                },
            }
        },
    }


class Bridged:
    """Router core with a bridge from router edge, over `link`. Messages go from edge to core.

    `documents` are the configurations by router; a change of them counts from the next start.
    """

    def __init__(self, start: Any, link: FaultyLink) -> None:
        self._start = start
        self.link = link
        self.documents = {"edge": EDGE, "core": with_bridge(link.address)}
        self.edge: Any
        self.core: Any

    def begin(self) -> None:
        """Start both, and wait until the bridge is up."""
        started = [
            self._start(yaml.safe_dump(self.documents[name]), name, False)
            for name in ("edge", "core")
        ]
        self.edge, self.core = started
        for router in started:
            router.await_ready()
        self.link.target = ("127.0.0.1", self.edge.port("link"))
        self.core.bridges_up()
        self.edge.says("from-blue")

    def edge_again(self, document: dict[str, Any] | None = None) -> None:
        """Start edge again, on the ports that it had."""
        again = yaml.safe_load(yaml.safe_dump(document or self.documents["edge"]))
        seen: dict[str, int] = {}
        for listener in again["listeners"]:
            protocol = listener["protocol"]
            index = seen.get(protocol, 0)
            seen[protocol] = index + 1
            listener["bind"] = f"127.0.0.1:{self.edge.port(protocol, index)}"
        self.edge = self._start(yaml.safe_dump(again), "edge")

    def forget_lines(self) -> None:
        """What stderr told so far is seen."""
        self.edge.err.clear()
        self.core.err.clear()


@pytest.fixture
def bridged(start: Any, network: FaultyNetwork) -> Callable[..., Bridged]:
    """`bridged(edge=…, core=…)`: both routers with the bridge up; the functions change a configuration."""

    def make(
        edge: Callable[[dict[str, Any]], None] | None = None,
        core: Callable[[dict[str, Any]], None] | None = None,
    ) -> Bridged:
        made = Bridged(start, network.link())
        made.documents = yaml.safe_load(yaml.safe_dump(made.documents))
        for name, change in (("edge", edge), ("core", core)):
            if change is not None:
                change(made.documents[name])
        made.begin()
        return made

    return make
