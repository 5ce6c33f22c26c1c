"""The event log of router processes: lines, API and topics tell the same, and nobody waits for its reader."""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

import vpnrouter

EDGE = """
logging: {format: json, level: info, rate_limit: 0}
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: http, bind: "127.0.0.1:0"}
  - {protocol: link, bind: "127.0.0.1:LINK"}
msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    event: {publish: {client_enabled: true, msg_vpn_enabled: true}}
    client_profiles: {bridging: {allow_bridge_connections_enabled: true}}
    client_usernames: {core-bridge: {password: change-me, client_profile: bridging}}
"""

CORE = """
logging: {format: json}
listeners: [{protocol: http, bind: "127.0.0.1:0"}]
msg_vpns:
  yellow:
    bridges:
      from-blue:
        remote_connection: {retry_delay: 0}
        remote_authentication: {basic: {client_username: core-bridge, password: change-me}}
        remote_msg_vpns: [{name: blue, router: edge, location: "127.0.0.1:LINK"}]
        remote_subscriptions: ["weather/>"]
"""

KEYS = {"time", "level", "event", "scope", "area", "router", "msgVpn", "name", "text"}


def parsed(router: Any) -> list[dict[str, str]]:
    """Every line of stderr as an event."""
    found = [json.loads(line) for line in list(router.err)]
    for event in found:
        assert set(event) == KEYS
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z", event["time"])
    return found


def named(router: Any, *names: str) -> list[str]:
    """Those of these names, in order."""
    return [event["event"] for event in parsed(router) if event["event"] in names]


def test_pairs_complete_in_order(
    start: Any, paho: Any, free_port: Callable[[], int], patiently: Any
) -> None:
    """Clients come and go, a bridge goes down and up: on stderr, by the API and on the topics alike."""
    port = str(free_port())
    edge = start(EDGE.replace("LINK", port), "edge")
    watcher = paho(edge.port("mqtt"), "watcher")
    watcher.subscribe("$SYS/LOG/#")
    for number in range(3):
        paho(edge.port("mqtt"), f"c{number}\n").client.disconnect()
    patiently(
        lambda: named(edge, "CLIENT_CLIENT_DISCONNECT").count("CLIENT_CLIENT_DISCONNECT") == 3,
        "three disconnects",
    )
    core = start(CORE.replace("LINK", port), "core")
    core.says('"VPN_BRIDGING_LINK_UP"')
    edge.says('"VPN_BRIDGING_LINK_UP"')
    by_client: dict[str, list[str]] = {}
    for event in parsed(edge):
        if event["scope"] == "CLIENT":
            by_client.setdefault(event["name"], []).append(event["event"])
    assert by_client.pop("watcher") == ["CLIENT_CLIENT_CONNECT"]
    assert by_client == {
        f"c{number}\\n": ["CLIENT_CLIENT_CONNECT", "CLIENT_CLIENT_DISCONNECT"]
        for number in range(3)
    }
    rows = httpx.get(f"http://127.0.0.1:{edge.port('http')}/vpnrouter/v1/events").json()["data"]
    lines = [event["event"] for event in parsed(edge)]
    assert [row["event"] for row in rows] == lines
    scopes = ("CLIENT", "VPN")
    own = [line for line in lines if line.startswith(scopes)][1:]

    def told() -> list[str]:
        # Its own arrival may be published before or after its subscription.
        topics = [topic for topic, _ in list(watcher.arrived.queue)]
        return [topic.split("/")[5] for topic in topics if not topic.endswith("/watcher")]

    patiently(lambda: len(told()) == len(own), f"{own} on topics")
    assert told() == own
    edge.stop()
    core.says('"VPN_BRIDGING_LINK_DOWN"')
    edge = start(EDGE.replace("LINK", port), "edge")
    edge.says('"VPN_BRIDGING_LINK_UP"')
    patiently(lambda: len(named(core, "VPN_BRIDGING_LINK_UP")) == 2, "the bridge is up again")
    core.stop()
    edge.says('"VPN_BRIDGING_LINK_DOWN"')
    pair = ("VPN_BRIDGING_LINK_UP", "VPN_BRIDGING_LINK_DOWN")
    assert named(core, *pair)[:3] == [pair[0], pair[1], pair[0]]
    assert named(edge, *pair)[:2] == list(pair)
    assert parsed(core)[-1]["event"] in {"SYSTEM_SYSTEM_SHUTDOWN", "VPN_BRIDGING_LINK_DOWN"}


def test_nobody_reads_stderr(
    tmp_path: Path, vpnrouter_command: list[str], paho: Any, patiently: Any
) -> None:
    """A full pipe stalls nobody, and who reads it in the end learns how much is missing."""
    path = tmp_path / "edge.yaml"
    path.write_text(
        "router: {name: edge, data_dir: data}\n"
        "logging: {format: json, level: info, rate_limit: 0}\n"
        'listeners: [{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}]\n'
        "msg_vpns: {blue: {authentication: {basic: {enabled: false}}}}\n"
    )
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [*vpnrouter_command, "run", str(path)],
        stdout=subprocess.PIPE,
        stderr=writing,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(vpnrouter.__file__).parents[1])},
    )
    os.close(writing)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline().rpartition(":")[2])
        for number in range(150):
            one = paho(port, f"{number:03}" + "x" * 250)
            assert one.code == 0
            one.client.disconnect()
        taker = paho(port, "taker")
        taker.subscribe("t")
        taker.publish("t", b"alive")
        assert taker.next() == ("t", b"alive")
        found = b""
        while b'"name": "taker"' not in found:
            found += os.read(reading, 1 << 16)
        lines = [json.loads(line) for line in found.decode().splitlines()[:-1]]
        connects = [
            one
            for one in lines
            if one["event"] == "CLIENT_CLIENT_CONNECT" and one["name"] != "taker"
        ]
        assert [int(one["name"][:3]) for one in connects] == list(range(150))
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
        os.close(reading)
