"""Bridges that are refused: each side says why, and bridges beside them carry messages."""

import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from vpnrouter.core.login_throttle import TOO_MANY_FAILURES

EDGE = """
listeners:
  - {protocol: http, bind: "127.0.0.1:0"}
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: link, bind: "127.0.0.1:0"}
msg_vpns:
  shut: {enabled: false, client_usernames: {good: {password: good}}}
  blue:
    client_profiles: {bridging: {allow_bridge_connections_enabled: true}}
    acl_profiles:
      default: {}
      elsewhere: {client_connect: {default_action: allow, exceptions: ["127.0.0.0/8"]}}
      some:
        client_connect: {default_action: allow}
        subscribe_topic: {default_action: allow, exceptions: ["secret/>"]}
    client_usernames:
      good: {password: good, client_profile: bridging}
      app: {password: app}
      closed: {password: closed, client_profile: bridging, enabled: false}
      far: {password: far, client_profile: bridging, acl_profile: elsewhere}
      some: {password: some, client_profile: bridging, acl_profile: some}
"""

REFUSED = {
    "wrong-password": ("good", "guess", "blue", "403 Forbidden"),
    "no-password": ("good", "", "blue", "403 Forbidden"),
    "unknown-username": ("nobody", "nobody", "blue", "403 Forbidden"),
    "no-permission": ("app", "app", "blue", "403 Bridge Connections Not Allowed"),
    "username-shut-down": ("closed", "closed", "blue", "403 Client Username Is Shutdown"),
    "address-not-allowed": ("far", "far", "blue", "403 Forbidden"),
    "unknown-vpn": ("good", "good", "brown", "403 Forbidden"),
    "vpn-disabled": ("good", "good", "shut", "503 Message VPN Unavailable"),
    "another-router": ("good", "good", "blue", "404 Router Name Mismatch: this is edge"),
}
"""Client username, password and remote VPN of each bridge, and why it is refused."""


def written(location: str, name: str, user: str, password: str, vpn: str) -> dict[str, Any]:
    """One bridge of core."""
    router = {"router": "elsewhere"} if name == "another-router" else {}
    basic = {"client_username": user} | ({"password": password} if password else {})
    return {
        "topic_syntax": "mqtt",
        "remote_authentication": {"basic": basic},
        "remote_msg_vpns": [{"name": vpn, "location": location, **router}],
        "remote_subscriptions": ["out/#"],
    }


def core(location: str) -> str:
    """All refused bridges in one VPN each, two that are let in, and one that gets not all it wants."""
    vpns: dict[str, Any] = {}
    rows = {"good": ("good", "good", "blue", ""), "some": ("some", "some", "blue", "")}
    for name, (user, password, vpn, _) in (REFUSED | rows).items():
        vpns[name] = {
            "authentication": {"basic": {"enabled": False}},
            "bridges": {name: written(location, name, user, password, vpn)},
        }
    vpns["some"]["bridges"]["some"]["remote_subscriptions"] = ["out/#", "secret/#"]
    listeners = [{"protocol": "http", "bind": "127.0.0.1:0"}] + [
        {"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": vpn} for vpn in vpns
    ]
    return yaml.safe_dump({"listeners": listeners, "msg_vpns": vpns}, sort_keys=False)


@pytest.fixture(scope="module")
def routers(router_process: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Edge and core, started once for all tests here."""
    folder: Path = tmp_path_factory.mktemp("login")
    (folder / "edge.yaml").write_text(
        "router: {name: edge, data_dir: data-edge}\n" + EDGE, encoding="utf-8"
    )
    edge = router_process(folder / "edge.yaml")
    text = "router: {name: core, data_dir: data-core}\n" + core(f"127.0.0.1:{edge.port('link')}")
    (folder / "core.yaml").write_text(text, encoding="utf-8")
    far = router_process(folder / "core.yaml")
    yield edge, far
    far.kill()
    edge.kill()


def reason_in(line: str) -> str:
    """The reason at the end of a line about a refused bridge."""
    return line.rpartition("rejected: ")[2].rstrip("\n")


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal(routers: Any, name: str) -> None:
    """Dialler and acceptor name the bridge and the reason on stderr, and the API tells it.

    That there is no such message VPN, the acceptor alone tells.
    """
    edge, far = routers
    _, password, vpn, reason = REFUSED[name]
    mine = f"VPN {name} bridge {name} from"
    far.says(mine)
    lines = far.told("VPN_BRIDGING_LINK_REJECTED", mine)
    assert lines[0].endswith(f"rejected: {reason}\n"), lines
    # Later ones may come from an address that has failed too often by then.
    assert {reason_in(line) for line in lines} <= {reason, TOO_MANY_FAILURES}
    theirs = f"VPN {vpn} remote bridge {name} of VPN {name} on core at 127.0.0.1"
    edge.says(theirs)
    lines = edge.told("VPN_BRIDGING_LINK_REJECTED", theirs)
    why = "403 Message VPN Not Allowed" if name == "unknown-vpn" else reason
    assert why in (told := {reason_in(line) for line in lines})
    assert told <= {why, TOO_MANY_FAILURES}
    row = far.bridge(name, inboundFailureReason=reason)
    assert row["health"] == "down"
    assert row["remotes"][0]["lastConnectionFailureReason"] == reason
    if password and password not in {"good", "app", "closed", "far", "nobody"}:
        assert password not in "".join(edge.err + far.err)


def test_others_are_let_in_and_work(routers: Any, paho: Any) -> None:
    """Beside the refused bridges others are up and carry; a refused subscription leaves the others."""
    edge, far = routers
    far.says("VPN some bridge some from edge")
    (line,) = far.told("remote subscription refused")
    assert "VPN some bridge some " in line
    assert "secret/>" in line
    assert "403 Subscription ACL Denied" in line
    for name, health in (("good", "up"), ("some", "incomplete")):
        assert far.bridge(name, inboundState="ready-in-sync")["health"] == health
    publisher = paho(edge.port("mqtt"), "p", login=("app", "app"))
    names = [*REFUSED, "good", "some"]
    heard = {name: paho(far.port("mqtt", index), "s") for index, name in enumerate(names)}
    for client in heard.values():
        client.subscribe("#")
    for topic in ("secret/x", "other/x", "out/1", "out/2"):
        publisher.publish(topic, b"x")
    for name in ("good", "some"):
        assert [heard[name].next()[0] for _ in range(2)] == ["out/1", "out/2"]
    for name, client in heard.items():
        with pytest.raises(queue.Empty):
            client.arrived.get_nowait()
        assert name
    for router in routers:
        assert not router.told("Traceback")
