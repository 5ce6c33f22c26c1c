"""Connectors, bridges and routers that lead back to where a message has been: it is delivered once at each place."""

import copy
import time
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
import yaml

from vpnrouter.testing.modules import load_module

pytestmark = pytest.mark.peers

OPEN: Final = {
    "authentication": {"basic": {"enabled": False}},
    "client_profiles": {"default": {"allow_bridge_connections_enabled": True}},
    "max_msg_spool_usage": 100,
}
BOTH: Final = {"in": {"source": {"address": "t/#"}}, "out": {"source": {"topic": "t/>"}}}

ONE_COPY: Final = {"two connectors": True, "two routers": True, "a bridge between them": False}
"""Ways that lead back, and whether a message reaches each place by one way only."""

CELLS: Final = [
    (way, version)
    for way in ONE_COPY
    for version in ("5", "3.1.1")
    if (way, version) != ("two connectors", "3.1.1")  # which is refused
]


@pytest.fixture(scope="session")
def providers() -> ModuleType:
    """The module providers.py."""
    return load_module("connector_providers", Path(__file__).parent / "providers.py")


def connector(port: int, quality: str, version: str) -> dict[str, Any]:
    """A connector to the broker, both ways."""
    return {
        "provider": {"url": f"mqtt://127.0.0.1:{port}", "mqtt_version": version},
        "links": {
            name: {**copy.deepcopy(link), "quality_of_service": quality}
            for name, link in BOTH.items()
        },
    }


def router(connectors: dict[str, Any], **more: Any) -> str:
    """A router without its name."""
    document = {
        "listeners": [
            {"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": "blue"},
            {"protocol": "http", "bind": "127.0.0.1:0"},
            {"protocol": "link", "bind": "127.0.0.1:0"},
        ],
        "msg_vpns": {"blue": {**OPEN, "connectors": connectors, **more}},
    }
    return yaml.safe_dump(document)


@pytest.mark.parametrize(("way", "version"), CELLS)
@pytest.mark.parametrize("quality", ["at-most-once", "duplicates-ok", "once-and-only-once"])
def test_nothing_goes_round(
    start: Any,
    paho: Any,
    providers: Any,
    patiently: Any,
    free_port: Any,
    tmp_path: Path,
    way: str,
    quality: str,
    version: str,
) -> None:
    """However it leads back, no message goes round; in MQTT 5, by one way only, each is delivered once everywhere."""
    if why := providers.missing("mosquitto"):
        pytest.skip(why)
    port = free_port()
    with providers.providing("mosquitto", port, tmp_path):
        here, *others = begin(start, way, port, quality, version)
        routers = [here, *others]
        for each in routers:
            patiently(
                lambda each=each: all(
                    link["state"] == "up"
                    for row in each.api().connectors("blue")
                    for link in row["links"]
                ),
                "links are up",
            )
            patiently(
                lambda each=each: all(
                    row["inboundState"] == "ready-in-sync"
                    for row in each.api().bridges("blue")
                    if row["bridgeName"] == "to-r1"
                ),
                "bridges are up",
            )
        readers = [
            paho(each.port("mqtt"), f"reader-{number}") for number, each in enumerate(routers)
        ]
        readers.append(paho(port, "reader"))
        for reader in readers:
            reader.subscribe("t/#", 1)
        sent = [b"from-%d" % number for number in range(len(readers))]
        for number, reader in enumerate(readers):
            reader.client.publish(f"t/{number}", sent[number], qos=1).wait_for_publish(20)
        counts = providers.settled(lambda: [reader.arrived.qsize() for reader in readers], 2.0)
        time.sleep(0.5)
        assert [reader.arrived.qsize() for reader in readers] == counts
        for reader in readers:
            got = Counter(payload for _, payload in list(reader.arrived.queue))
            assert set(got) == set(sent)
            if version == "5" and ONE_COPY[way]:
                assert set(got.values()) == {1}, got
            else:
                # By two ways, or where MQTT 3.1.1 does not tell: some come more than once, and not for ever.
                assert max(got.values()) <= 4, got


def begin(start: Any, way: str, port: int, quality: str, version: str) -> list[Any]:
    """Start the routers."""
    first = {"one": connector(port, quality, version)}
    if way == "two connectors":
        # One brings in what the other one takes out.
        second = connector(port, quality, version)
        del second["links"]["in"]
        del first["one"]["links"]["out"]
        return [start(router({**first, "two": second}), "r1")]
    if way == "two routers":
        return [start(router(first), name) for name in ("r1", "r2")]
    one = start(router(first), "r1")
    bridge = {
        "remote_msg_vpns": [{"name": "blue", "location": f"127.0.0.1:{one.port('link')}"}],
        "remote_authentication": {"basic": {"client_username": "bridge"}},
        "remote_subscriptions": ["t/>"],
    }
    return [one, start(router(first, bridges={"to-r1": bridge}), "r2")]
