"""The two routers, by configuration and running."""

import socket
from pathlib import Path

import pytest
import yaml

from vpnrouter.config.load import load
from vpnrouter.demo import scene
from vpnrouter.demo.clients import accepted
from vpnrouter.demo.routers import (
    Routers,
    core_config,
    edge_config,
    parse_ready,
    running_routers,
)
from vpnrouter.errors import OperationError


def test_configurations_load(tmp_path: Path) -> None:
    """Both generated configurations are accepted and trace every message."""
    texts = {
        "edge": edge_config(tmp_path, "secret"),
        "core": core_config(tmp_path, "secret", "127.0.0.1:5555", scene.REMOTE_SUBSCRIPTIONS),
    }
    for name, config in texts.items():
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump(config, sort_keys=False))
        loaded = load(str(path)).config
        assert loaded.router.name == name
        assert loaded.trace is not None
        assert loaded.trace.sample == 1.0
        assert [f"{name}/{vpn}" for vpn in loaded.msg_vpns] == [
            place for place in scene.PLACES if scene.router_of(place) == name
        ]
        if name == "core":
            bridge = loaded.msg_vpns["yellow"].bridges[scene.BRIDGE]
            topics = [one.topic for one in bridge.remote_subscriptions]
            assert topics == [*scene.REMOTE_SUBSCRIPTIONS, scene.ALERTS]
        else:
            (remote,) = loaded.msg_vpns["blue"].bridges[scene.BRIDGE_BACK].remote_msg_vpns
            assert remote.location == "v:core"


def test_ready_line() -> None:
    """A ready line's values are listed by key, in order."""
    line = "ready router=edge mqtt=127.0.0.1:1 mqtt=[::1]:2 link=127.0.0.1:3"
    assert parse_ready(line) == {
        "router": ["edge"],
        "mqtt": ["127.0.0.1:1", "[::1]:2"],
        "link": ["127.0.0.1:3"],
    }


def test_running(routers: Routers) -> None:
    """Each message VPN has an address of its own that answers; one connection has both bridges."""
    assert list(routers.addresses) == list(scene.PLACES)
    assert len(set(routers.addresses.values())) == len(scene.PLACES)
    for address in routers.addresses.values():
        socket.create_connection(address, timeout=5).close()
    assert len(routers.link_ports) == 2
    assert accepted(routers.link_ports) in {1, None}


def test_refused_configuration(folder: Path) -> None:
    """A router that refuses its configuration is an error with its last words, and leaves nobody."""
    with (
        pytest.raises(OperationError, match=r"router core ended early: .*core\.yaml:\d+:\d+"),
        running_routers(folder, ["flights/UA\0"]),
    ):
        pass
