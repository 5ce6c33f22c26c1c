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

    `link` is where it listens for links; `more` is put over the document, `vpn` over each of its message VPNs. With
    wait=False it may not be ready.
    """

    def run(
        name: str,
        link: str = "127.0.0.1:0",
        more: Document | None = None,
        vpn: Document | None = None,
        wait: bool = True,
        **vpns: Any,
    ) -> Any:
        mqtt = [{"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": each} for each in vpns]
        document = {
            "listeners": [
                *mqtt,
                {"protocol": "http", "bind": "127.0.0.1:0"},
                {"protocol": "link", "bind": link},
            ],
            "msg_vpns": {
                each: {
                    "authentication": {"basic": {"enabled": False}},
                    "client_profiles": {"default": {"allow_bridge_connections_enabled": True}},
                    "client_usernames": {"bridge": {"password": "word"}},
                    "bridges": bridges,
                    **(vpn or {}),
                }
                for each, bridges in vpns.items()
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
def connections(patiently: Any) -> Callable[..., None]:
    """`connections(COUNT, ROUTER, …)`: wait until their link listeners have so many TCP connections."""

    def until(count: int, *routers: Any) -> None:
        ports = {router.port("link") for router in routers}
        assert accepted(ports) is not None, "this system does not list its connections in /proc/net"
        patiently(lambda: accepted(ports) == count, f"{count} TCP connections")

    return until


HEARTBEAT_MS = 300


class Bridged:
    """Router core with a bridge from router edge, over `link`. Messages go from edge to core."""

    def __init__(self, site: Any, link: FaultyLink, from_blue: Document, vpn: Document) -> None:
        self._site = site
        self.link = link
        self.edge = site("edge", wait=False, blue={})
        self.core = site("core", vpn=vpn, wait=False, yellow={"from-blue": from_blue})
        self.edge.await_ready()
        self.core.await_ready()
        link.target = ("127.0.0.1", self.edge.port("link"))
        self.core.bridges_up()
        self.edge.says("from-blue")

    def edge_again(self, msg_vpn: str = "blue", **vpn: Any) -> None:
        """Start edge again, with another configuration of its message VPN."""
        self.edge = self._site("edge", vpn=vpn, **{msg_vpn: {}})
        self.link.target = ("127.0.0.1", self.edge.port("link"))

    def forget_lines(self) -> None:
        """What stderr told so far is seen."""
        self.edge.err.clear()
        self.core.err.clear()


@pytest.fixture
def bridged(site: Any, bridge: Any, network: FaultyNetwork) -> Callable[..., Bridged]:
    """`bridged(HEARTBEAT, vpn={…}, KEY=VALUE)`: both routers, the bridge up; `vpn` is put over core's message VPN."""

    def make(
        heartbeat: int = HEARTBEAT_MS,
        vpn: Document | None = None,
        compressed: bool = False,
        **more: Any,
    ) -> Bridged:
        link = network.link()
        connection = {"retry_delay": 0, "heartbeat_interval": heartbeat}
        made = bridge("blue", link, "out/>", router="edge", remote_connection=connection, **more)
        made["remote_msg_vpns"][0]["compressed_data_enabled"] = compressed
        return Bridged(site, link, made, vpn or {})

    return make
