"""Bridges over TLS, with and without certificates of their own, and compressed ones."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

NAMES = ("edge", "other")
CLIENT = "core-bridge"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `vpnrouter certs` makes: an authority, a router's and a bridge's certificate; and another one."""
    folder = tmp_path_factory.mktemp("certs")
    for name in NAMES:
        program = "from vpnrouter.cli.app import main; main()"
        arguments = ["certs", "--output", str(folder / name), "--name", name, "--client", CLIENT]
        subprocess.run([sys.executable, "-c", program, *arguments], check=True, capture_output=True)
    return folder


def shown(folder: Path, name: str) -> dict[str, str]:
    """A certificate and its key, as a configuration names them."""
    return {"certificate": str(folder / f"{name}.pem"), "key": str(folder / f"{name}.key")}


def secured(folder: Path, **more: str) -> dict[str, Any]:
    """Router edge with VPN blue, whose link listener speaks TLS."""
    return {
        "listeners": [
            {"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": "blue"},
            {"protocol": "http", "bind": "127.0.0.1:0"},
            {
                "protocol": "links",
                "bind": "127.0.0.1:0",
                "tls": shown(folder / "edge", "edge") | more,
            },
        ]
    }


def trusting(bridges: dict[str, Any], authority: Path) -> dict[str, Any]:
    """VPN yellow that trusts this authority."""
    yellow = {
        "authentication": {"basic": {"enabled": False}},
        "bridging": {"tls_server_cert": {"ca": str(authority)}},
        "bridges": bridges,
    }
    return {"msg_vpns": {"yellow": yellow}}


def over_tls(bridge: Any, edge: Any, **more: Any) -> dict[str, Any]:
    """A bridge that dials edge with TLS."""
    found: dict[str, Any] = bridge("blue", f"localhost:{edge.port('links')}", ">", **more)
    found["remote_msg_vpns"][0]["tls_enabled"] = True
    return found


def test_tls(site: Any, bridge: Any, listener: Any, heard: Any, certificates: Path) -> None:
    """Over TLS messages cross, both sides show the bridge as encrypted, and a stranger is not trusted."""
    edge = site("edge", more=secured(certificates), blue={})
    bridges = {"from-blue": over_tls(bridge, edge)}
    core = site("core", more=trusting(bridges, certificates / "edge/ca.pem"), yellow={})
    core.bridges_up()
    assert core.bridge("from-blue")["encrypted"] is True
    assert edge.bridge("#bridge/core/yellow/from-blue")["encrypted"] is True
    here, there = listener(core), listener(edge)
    for number in range(100):
        there.publish(f"t/{number}", bytes(1_000))
    there.publish("end")
    assert heard(here) == [(f"t/{number}", bytes(1_000)) for number in range(100)]
    wary = site("wary", more=trusting(bridges, certificates / "other/ca.pem"), yellow={})
    wary.says("certificate verify failed: untrusted issuer")
    assert wary.bridge("from-blue")["health"] == "down"


MUTUAL = {
    "blue": {
        "authentication": {"basic": {"enabled": False}, "client_cert": {"enabled": True}},
        "client_profiles": {"bridging": {"allow_bridge_connections_enabled": True}},
        "client_usernames": {CLIENT: {"client_profile": "bridging"}},
    }
}


def test_mutual_tls(site: Any, bridge: Any, certificates: Path) -> None:
    """A bridge logs in by its certificate alone; without one, or with a stranger's, it is refused."""
    listeners = secured(certificates, client_ca=str(certificates / "edge/ca.pem"))
    edge = site("edge", more=listeners | {"msg_vpns": MUTUAL}, blue={})

    def login(authority: str) -> dict[str, Any]:
        own = shown(certificates / authority, CLIENT)
        return {"scheme": "client-certificate", "client_cert": own}

    bridges = {
        "known": over_tls(bridge, edge, remote_authentication=login("edge")),
        "stranger": over_tls(bridge, edge, remote_authentication=login("other")),
        "nobody": over_tls(bridge, edge),
    }
    core = site("core", more=trusting(bridges, certificates / "edge/ca.pem"), yellow={})
    core.bridge("known", inboundState="ready-in-sync", encrypted=True)
    (taken,) = [row for row in edge.bridges() if row["bridgeName"].endswith("/known")]
    assert taken["health"] == "up"
    core.says("bridge nobody from ? at localhost")
    core.says("rejected: 403 Forbidden")
    edge.says("rejected: 403 Basic Authentication is Shutdown")
    core.says("bridge stranger from ? at localhost")
    assert core.bridge("stranger")["health"] == core.bridge("nobody")["health"] == "down"
    edge.says("certificate verify failed: untrusted issuer")


def test_the_certificate_of_the_router(site: Any, bridge: Any, certificates: Path) -> None:
    """A bridge by certificate that has none configured shows that of its router's first links listener."""
    listeners = secured(certificates, client_ca=str(certificates / "edge/ca.pem"))
    edge = site("edge", more=listeners | {"msg_vpns": MUTUAL}, blue={})
    own = {"protocol": "links", "bind": "127.0.0.1:0", "tls": shown(certificates / "edge", CLIENT)}
    login = {"scheme": "client-certificate"}
    bridges = {"in": over_tls(bridge, edge, remote_authentication=login)}
    more = trusting(bridges, certificates / "edge/ca.pem")
    core = site(
        "core",
        more=more | {"listeners": [own, {"protocol": "http", "bind": "127.0.0.1:0"}]},
        yellow={},
    )
    core.bridge("in", inboundState="ready-in-sync", encrypted=True)


def test_compression(site: Any, bridge: Any, listener: Any, heard: Any) -> None:
    """Where both sides compress, messages arrive unchanged and in order, and both sides show it."""
    edge = site("edge", blue={})
    written = bridge("blue", edge, ">")
    written["remote_msg_vpns"][0]["compressed_data_enabled"] = True
    core = site("core", yellow={"from-blue": written})
    core.bridges_up()
    assert core.bridge("from-blue")["compressed"] is True
    here, there = listener(core), listener(edge)
    payloads = [
        f'{{"order": {number}, "text": "{"again " * 100}"}}'.encode() for number in range(200)
    ]
    for number, payload in enumerate(payloads):
        there.publish(f"orders/{number}", payload)
    there.publish("end")
    assert heard(here) == [(f"orders/{number}", each) for number, each in enumerate(payloads)]
    assert core.bridge("from-blue")["rxImbalance"] == 0
