"""One mesh file for two routers that run: planned, applied, drifted from, and taken back."""

import json
import socket
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
    routers: dict[str, Any], tool: Any, paho: Any, tmp_path: Path
) -> None:
    """Both ends come into force together, messages cross, and it outlives a restart of either."""
    mesh = write(tmp_path / "mesh.yaml", routers)
    planned = tool("plan", mesh)
    assert "  + msg_vpns.yellow.bridges.from-blue: added" in planned.stdout.splitlines()
    tool("drift", mesh, code=1)
    applied = tool("apply", mesh, "--yes")
    assert "pw" not in applied.stderr + planned.stdout
    tool("drift", mesh)

    routers["core"].bridge("from-blue", inboundState="ready-in-sync", boundToQueue=True)
    hears = paho(routers["core"].port("mqtt"), "hears", login=("c@yellow", ""))
    hears.subscribe("weather/#")
    says = paho(routers["edge"].port("mqtt"), "says", login=("c@blue", ""))
    says.publish("weather/oslo", b"sunny")
    assert hears.next() == ("weather/oslo", b"sunny")
    assert routers["core"].stop() == 0


def test_what_does_not_come_up_is_taken_back(
    routers: dict[str, Any], tool: Any, tmp_path: Path
) -> None:
    """A bridge whose remote message VPN does not exist: both routers are as they were, and it is said why."""
    mesh = write(tmp_path / "mesh.yaml", routers)
    before = tool("plan", mesh, "--json")
    # The files alone do not show it: without their listeners nobody knows that it is this remote.
    wrong = write(tmp_path / "wrong.yaml", routers, remote="blu")
    applied = tool("apply", wrong, "--yes", "--settle", "3", "--json", code=1)
    outcome = json.loads(applied.stdout)
    assert outcome["applied"] is False
    assert "from-blue" in outcome["failure"]
    assert sorted(outcome["returned"]) == ["core", "edge"]
    assert outcome["stuck"] == {}
    assert json.loads(tool("plan", mesh, "--json").stdout) == json.loads(before.stdout)
    assert routers["core"].bridges() == []
    tool("apply", mesh, "--yes")


def test_what_somebody_changed_meanwhile_is_found(
    routers: dict[str, Any], tool: Any, tmp_path: Path
) -> None:
    """Drift names the object, and applying again puts it right without touching the bridge."""
    mesh = write(tmp_path / "mesh.yaml", routers)
    tool("apply", mesh, "--yes")
    core = routers["core"]
    up = core.bridge("from-blue", inboundState="ready-in-sync")
    url = f"http://127.0.0.1:{core.port('http')}"
    tool("bridge", "disable", "from-blue", "--msg-vpn", "yellow", "--url", url)
    drifted = tool("drift", mesh, "--json", code=1)
    (change,) = json.loads(drifted.stdout)[1]["changes"]
    assert change["text"].startswith("msg_vpns.yellow.bridges.from-blue.enabled: false -> true")
    tool("apply", mesh, "--yes")
    tool("drift", mesh)
    assert core.bridge("from-blue", inboundState="ready-in-sync")["health"] == up["health"]


def stalled(routers: dict[str, Any], tool: Any, paho: Any, mesh: str) -> dict[str, Any]:
    """Let the mesh stand, and its bridge stall: the queue at core has room for one message, and two come."""
    path = Path(mesh)
    text = path.read_text(encoding="utf-8")
    small = '{orders: {subscriptions: ["orders/>"], max_spooled_msg_count: 1}}'
    path.write_text(text.replace('{orders: {subscriptions: ["orders/>"]}}', small), "utf-8")
    tool("apply", mesh, "--yes")
    core = routers["core"]
    core.bridge("from-blue", inboundState="ready-in-sync", boundToQueue=True)
    says = paho(routers["edge"].port("mqtt"), "says", login=("c@blue", ""))
    for number in range(2):
        says.client.publish(f"orders/{number}", b"x", 1).wait_for_publish(60)
    found: dict[str, Any] = core.bridge("from-blue", inboundState="stalled")
    return found


def test_a_stalled_bridge_is_protected(
    routers: dict[str, Any], tool: Any, paho: Any, tmp_path: Path
) -> None:
    """Plan names it among what flaps; a change to an address where nobody answers is caught and taken back."""
    mesh = write(tmp_path / "mesh.yaml", routers)
    stalled(routers, tool, paho, mesh)
    with socket.create_server(("127.0.0.1", 0)) as unused:
        dead = unused.getsockname()[1]
    text = Path(mesh).read_text(encoding="utf-8")
    port = routers["edge"].port("link")
    moved = tmp_path / "moved.yaml"
    moved.write_text(text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{dead}"), encoding="utf-8")
    planned = tool("plan", str(moved))
    assert "! flaps" in planned.stdout
    assert "bridge yellow/from-blue reconnects" in planned.stdout
    applied = tool("apply", str(moved), "--yes", "--settle", "3", "--json", code=1)
    outcome = json.loads(applied.stdout)
    assert outcome["applied"] is False
    assert "yellow/from-blue" in outcome["failure"]
    assert outcome["stuck"] == {}
    routers["core"].bridge("from-blue", inboundState="stalled", health="stalled")
    # What leaves it alone does not have to wait until it stalls no more.
    more = tmp_path / "more.yaml"
    more.write_text(text.replace("[weather/>]", "[weather/>, news/>]"), encoding="utf-8")
    tool("apply", str(more), "--yes")


def test_explain_of_a_stalled_bridge(
    routers: dict[str, Any], tool: Any, paho: Any, tmp_path: Path
) -> None:
    """Direct messages cross it, in the answer as in fact; a guaranteed one waits in its queue, and it says why."""
    why = stalled(routers, tool, paho, write(tmp_path / "mesh.yaml", routers))
    assert why["inboundFailureReason"]
    urls = [f"http://127.0.0.1:{one.port('http')}" for one in routers.values()]
    asked = ["explain", "--at", "edge/blue", *(word for url in urls for word in ("--url", url))]
    asked.append("--json")
    hears = paho(routers["core"].port("mqtt"), "hears", login=("c@yellow", ""))
    hears.subscribe("#")

    def told(topic: str, mode: str) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        done = tool(*asked, "--topic", topic, "--mode", mode)
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        return answer, sorted((one["router"], one["name"]) for one in answer["arrivals"])

    answer, arrivals = told("weather/oslo", "direct")
    assert arrivals == [("core", "hears")]
    assert [one["up"] for one in answer["bridges"]] == [True]
    said = f"bridge from-blue into core/yellow is stalled now: {why['inboundFailureReason']}"
    assert any(note.startswith(said) for note in answer["notes"])
    answer, arrivals = told("orders/9", "persistent")
    assert arrivals == [("edge", "to-core")]
    assert "it waits in its queue to-core: the bridge is stalled now" in json.dumps(answer)

    says = paho(routers["edge"].port("mqtt"), "also", login=("c@blue", ""))
    says.client.publish("orders/9", b"x", 1).wait_for_publish(60)
    says.publish("weather/oslo", b"sunny")
    assert hears.next() == ("weather/oslo", b"sunny")
