"""One mesh file for two routers that run: planned, applied, drifted from, and taken back."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

LISTENERS = """listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0"}
  - {protocol: http, bind: "127.0.0.1:0"}
  - {protocol: link, bind: "127.0.0.1:%d"}
"""
OPEN = "authentication: {basic: {enabled: false}}"

MESH = """
routers:
  edge:
    url: http://127.0.0.1:%(edge)d
    config:
      msg_vpns:
        blue:
          %(open)s
          client_profiles: {bridging: {allow_bridge_connections_enabled: true}}
          client_usernames: {core: {password: pw, client_profile: bridging}}
          queues: {to-core: {subscriptions: ["orders/>"]}}
  core:
    url: http://127.0.0.1:%(core)d
    config:
      msg_vpns:
        yellow:
          %(open)s
          queues: {orders: {subscriptions: ["orders/>"]}}
          bridges:
            from-blue:
              remote_authentication: {basic: {client_username: core, password: pw}}
              remote_msg_vpns:
                - {name: %(remote)s, location: "127.0.0.1:%(link)d", queue_binding: to-core}
              remote_subscriptions: [weather/>]
"""

Tool = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def tool(vpnrouter_command: list[str]) -> Tool:
    """`tool("plan", path)` runs a command to its end."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*vpnrouter_command, *words], capture_output=True, text=True, timeout=60, check=False
        )

    return run


@pytest.fixture
def routers(start: Any, free_port: Callable[[], int]) -> dict[str, Any]:
    """Two routers with an empty message VPN each."""
    edge = start(LISTENERS % free_port() + f"msg_vpns: {{blue: {{{OPEN}}}}}\n", "edge")
    core = start(LISTENERS % free_port() + f"msg_vpns: {{yellow: {{{OPEN}}}}}\n", "core")
    return {"edge": edge, "core": core}


def write(path: Path, routers: dict[str, Any], remote: str = "blue") -> str:
    """The mesh file; returns its path."""
    places = {
        "edge": routers["edge"].port("http"),
        "core": routers["core"].port("http"),
        "link": routers["edge"].port("link"),
    }
    path.write_text(MESH % {**places, "open": OPEN, "remote": remote}, encoding="utf-8")
    return str(path)


def test_a_mesh_is_made_of_two_routers(
    routers: dict[str, Any], tool: Tool, paho: Any, tmp_path: Path
) -> None:
    """Both ends come into force together, messages cross, and it outlives a restart of either."""
    mesh = write(tmp_path / "mesh.yaml", routers)
    planned = tool("plan", mesh)
    assert planned.returncode == 0, planned.stderr
    assert "  + msg_vpns.yellow.bridges.from-blue: added" in planned.stdout.splitlines()
    assert tool("drift", mesh).returncode == 1
    applied = tool("apply", mesh, "--yes")
    assert applied.returncode == 0, applied.stderr
    assert "pw" not in applied.stderr + planned.stdout
    drifted = tool("drift", mesh)
    assert drifted.returncode == 0, drifted.stdout

    routers["core"].bridge("from-blue", inboundState="ready-in-sync", boundToQueue=True)
    hears = paho(routers["core"].port("mqtt"), "hears", login=("c@yellow", ""))
    hears.subscribe("weather/#")
    says = paho(routers["edge"].port("mqtt"), "says", login=("c@blue", ""))
    says.publish("weather/oslo", b"sunny")
    assert hears.next() == ("weather/oslo", b"sunny")
    assert routers["core"].stop() == 0


def test_what_does_not_come_up_is_taken_back(
    routers: dict[str, Any], tool: Tool, tmp_path: Path
) -> None:
    """A bridge whose remote message VPN does not exist: both routers are as they were, and it is said why."""
    mesh = write(tmp_path / "mesh.yaml", routers)
    before = tool("plan", mesh, "--json")
    # The files alone do not show it: without their listeners nobody knows that it is this remote.
    wrong = write(tmp_path / "wrong.yaml", routers, remote="blu")
    applied = tool("apply", wrong, "--yes", "--settle", "3", "--json")
    assert applied.returncode == 1
    outcome = json.loads(applied.stdout)
    assert outcome["applied"] is False
    assert "from-blue" in outcome["failure"]
    assert sorted(outcome["returned"]) == ["core", "edge"]
    assert outcome["stuck"] == {}
    assert json.loads(tool("plan", mesh, "--json").stdout) == json.loads(before.stdout)
    assert routers["core"].bridges() == []
    assert tool("apply", mesh, "--yes").returncode == 0


def test_what_somebody_changed_meanwhile_is_found(
    routers: dict[str, Any], tool: Tool, tmp_path: Path
) -> None:
    """Drift names the object, and applying again puts it right without touching the bridge."""
    mesh = write(tmp_path / "mesh.yaml", routers)
    assert tool("apply", mesh, "--yes").returncode == 0
    core = routers["core"]
    up = core.bridge("from-blue", inboundState="ready-in-sync")
    url = f"http://127.0.0.1:{core.port('http')}"
    done = tool("bridge", "disable", "from-blue", "--msg-vpn", "yellow", "--url", url)
    assert done.returncode == 0, done.stderr
    drifted = tool("drift", mesh, "--json")
    assert drifted.returncode == 1
    (change,) = json.loads(drifted.stdout)[1]["changes"]
    assert change["text"].startswith("msg_vpns.yellow.bridges.from-blue.enabled: false -> true")
    assert tool("apply", mesh, "--yes").returncode == 0
    assert tool("drift", mesh).returncode == 0
    assert core.bridge("from-blue", inboundState="ready-in-sync")["health"] == up["health"]
