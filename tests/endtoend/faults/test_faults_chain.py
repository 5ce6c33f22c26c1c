"""A chain of three routers: any of them may be restarted, and traces tell the way of a message."""

from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from pyarrow import parquet

NAMES: Final = ("first", "middle", "last")


def document(before: str, location: str, traces: Path) -> dict[str, Any]:
    """A router of the chain, with a bridge from `before` unless it is the first."""
    vpn: dict[str, Any] = {
        "authentication": {"basic": {"enabled": False}},
        "client_profiles": {"default": {"allow_bridge_connections_enabled": True}},
    }
    if before:
        vpn["bridges"] = {
            f"from-{before}": {
                "topic_syntax": "mqtt",
                "remote_connection": {"retry_delay": 0, "heartbeat_interval": 200},
                "remote_authentication": {"basic": {"client_username": "bridge"}},
                "remote_msg_vpns": [{"name": f"v-{before}", "location": location}],
                "remote_subscriptions": ["#"],
            }
        }
    return {
        "listeners": [
            {"protocol": "mqtt", "bind": "127.0.0.1:0"},
            {"protocol": "link", "bind": "127.0.0.1:0"},
        ],
        "trace": {"directory": str(traces), "sample": 1.0},
        "msg_vpns": {"v": vpn},
    }


class Chain:
    """The routers by name, and links towards them."""

    def __init__(self, start: Any, network: Any, traces: Path) -> None:
        self._start = start
        self.links = {name: network.link() for name in NAMES}
        self.texts = {}
        for before, name in zip(("", *NAMES[:-1]), NAMES, strict=True):
            location = self.links[before].address if before else ""
            made = document(before, location, traces)
            made["msg_vpns"] = {f"v-{name}": made["msg_vpns"]["v"]}
            made["listeners"][0]["msg_vpn"] = f"v-{name}"
            self.texts[name] = yaml.safe_dump(made)
        self.routers: dict[str, Any] = {}
        for name in NAMES:
            self.routers[name] = start(self.texts[name], name, False)
        for name in NAMES:
            self._ready(name)

    def _ready(self, name: str) -> None:
        router = self.routers[name]
        router.await_ready()
        self.links[name].target = ("127.0.0.1", router.port("link"))

    def restart(self, name: str) -> None:
        """Kill a router and start it again."""
        self.routers[name].kill()
        for router in self.routers.values():
            router.err.clear()
        self.routers[name] = self._start(self.texts[name], name)
        self._ready(name)

    def up(self, *names: str) -> None:
        """Wait until the bridges of these routers are up."""
        for name in names:
            self.routers[name].says("VPN_BRIDGING_LINK_UP: VPN v-" + name + " bridge")

    def port(self, name: str) -> int:
        """The MQTT port of a router."""
        return int(self.routers[name].port("mqtt"))


@pytest.fixture
def chain(start: Any, network: Any, tmp_path: Path) -> Chain:
    """The chain, its bridges up."""
    made = Chain(start, network, tmp_path / "traces")
    made.up("middle", "last")
    return made


def test_any_hop_may_restart(chain: Chain, paho: Any) -> None:
    """Whichever router is killed and restarted, the first message after the bridges are up arrives."""
    affected = {"first": ["middle"], "middle": ["middle", "last"], "last": ["last"]}
    for name, bridges in affected.items():
        chain.restart(name)
        chain.up(*bridges)
        far = paho(chain.port("last"), "far")
        far.subscribe("#")
        paho(chain.port("first"), "near").publish(f"after/{name}", b"first")
        assert far.next() == (f"after/{name}", b"first")
        far.stop()


def test_traces_tell_the_way(chain: Chain, paho: Any, tmp_path: Path) -> None:
    """The traces of all three routers, put together, name each hop of a message once, in order."""
    far = paho(chain.port("last"), "far")
    far.subscribe("#")
    paho(chain.port("first"), "near").publish("the/way", b"x")
    assert far.next() == ("the/way", b"x")
    for name in NAMES:
        assert chain.routers[name].stop() == 0
    rows = [
        row | {"router": path.parent.name.removeprefix("router=")}
        for path in (tmp_path / "traces").rglob("*.parquet")
        for row in parquet.ParquetFile(path).read().to_pylist()
        if row["topic"] == "the/way"
    ]
    assert len({row["trace_id"] for row in rows}) == 1
    sent = sorted(
        (row["hops"], row["router"], row["peer_router"])
        for row in rows
        if row["event"] == "bridge_send"
    )
    assert sent == [(1, "first", "middle"), (2, "middle", "last")]
    taken = sorted(
        (row["hops"], row["router"], row["path"])
        for row in rows
        if row["event"] == "bridge_receive"
    )
    assert taken == [
        (1, "middle", "first/v-first"),
        (2, "last", "first/v-first>middle/v-middle"),
    ]
