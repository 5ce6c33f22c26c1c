"""Routers with bridges, told by their message VPNs, and clients that say what they heard."""

from collections.abc import Callable
from typing import Any

import pytest
import yaml
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from vpnrouter.demo.clients import accepted

END = "end"
"""The last topic of a test; every bridge that `listener` asks about brings it."""

Document = dict[str, Any]


@pytest.fixture
def site(start: Any) -> Callable[..., Any]:
    """`site(NAME, VPN={BRIDGE: …}, …)`: a router with these message VPNs, their MQTT listeners in this order.

    `link` is where it listens for links and `more` is put over the document.
    """

    def run(name: str, link: str = "127.0.0.1:0", more: Document | None = None, **vpns: Any) -> Any:
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
        return start(yaml.safe_dump(document | (more or {})), name)

    return run


@pytest.fixture
def bridge() -> Callable[..., Document]:
    """`bridge(VPN, LOCATION, FILTER, …, KEY=VALUE)`: a bridge from that remote message VPN."""

    def written(vpn: str, location: Any, *topics: Any, router: str = "", **more: Any) -> Document:
        remote = {"name": vpn, "location": location}
        if not isinstance(location, str):
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
