"""Halves that do not fit; test_mesh.py has those of the example routers."""

import runpy
from pathlib import Path
from typing import Any

import pytest

KIT = runpy.run_path(str(Path(__file__).with_name("mesh_kit.py")))
bridge, vpn, router, load_all, told, mesh = (
    KIT[name] for name in ("bridge", "vpn", "router", "load_all", "told", "mesh")
)
TLS = {"certificate": "./a.pem", "key": "./a.key"}


def pair(there: dict[str, Any], back: dict[str, Any]) -> list[str]:
    """A and B with a bridge each way; the remotes have these keys."""
    listeners = {
        name: [
            {"protocol": "link", "bind": f"{name}.example:55555"},
            {"protocol": "links", "bind": f"{name}.example:55443", "tls": TLS},
        ]
        for name in "ab"
    }
    ways = {}
    for name, peer, more in (("a", "b", there), ("b", "a", back)):
        way = bridge(f"{peer}/v", filters=["w"])
        way["remote_msg_vpns"][0] |= more
        ways[name] = router(name, {"v": vpn({"back": way})}, listeners=listeners[name])
    found: list[str] = told(load_all([ways["a"], ways["b"]]))
    return found


def test_tls_on_one_side_only() -> None:
    """Two bridges between the same message VPNs that cannot share a connection are an error."""
    (only,) = pair({"tls_enabled": True}, {})
    assert only.startswith("a.yaml:")
    assert "note: " not in only
    assert "msg_vpns.v.bridges.back: cannot share one connection with the bridge back" in only
    assert "(b.yaml:" in only
    assert "TLS is configured on one side only" in only


@pytest.mark.parametrize("tls", [True, False])
def test_compatible(tls: bool) -> None:
    """With TLS on both sides or on none they share one."""
    assert pair({"tls_enabled": tls}, {"tls_enabled": tls}) == []


def test_wrong_router() -> None:
    """A remote that names one router and leads to another one is an error with both places."""
    lines = pair({"location": "a2.example"}, {})
    assert lines == []
    data = [
        router("a", {"v": vpn({"in": bridge("b/v", filters=["w"])})}),
        router("b", {"v": vpn()}),
        router("c", {"v": vpn()}),
    ]
    remote = data[0]["msg_vpns"]["v"]["bridges"]["in"]["remote_msg_vpns"][0]
    remote["location"] = "c.example"
    (only,) = told(load_all(data))
    assert "names router b, but router c listens at c.example:55555 (c.yaml:" in only
    remote["router"] = "d"
    (only,) = told(load_all(data))
    assert "names router d, but router c listens at c.example:55555 (c.yaml:" in only


def certified(enabled: bool, **tls: Any) -> list[str]:
    """A bridge that logs in by certificate; `tls` are keys of the listener it leads to."""
    way = bridge("b/v", filters=["w"], remote_tls_enabled=True)
    way["remote_authentication"] = {
        "scheme": "client-certificate",
        "client_cert": {"certificate": "./c.pem", "key": "./c.key"},
    }
    there = vpn(authentication={"client_cert": {"enabled": enabled}})
    listeners = [{"protocol": "links", "bind": "b.example:55443", "tls": {**TLS, **tls}}]
    data = [router("a", {"v": vpn({"in": way})}), router("b", {"v": there}, listeners=listeners)]
    found: list[str] = told(load_all(data))
    return found


def test_client_certificates() -> None:
    """A bridge with a certificate needs a message VPN and a listener that take one."""
    assert certified(True, client_ca="./ca.pem") == []
    (only,) = certified(False, client_ca="./ca.pem")
    assert "message VPN v of router b takes no client certificates (b.yaml:" in only
    (only,) = certified(True)
    assert "asks for no client certificate there, it has no tls.client_ca (b.yaml:" in only


def test_tls_to_a_plain_listener_on_all_addresses() -> None:
    """A listener bound to all addresses answers at the remote's, with its own protocol."""
    way = bridge("b/v", filters=["w"], remote_tls_enabled=True, remote_location="b.example:1")
    listeners = [{"protocol": "link", "bind": "0.0.0.0:1"}]
    data = [
        router("a", {"v": vpn({"in": way})}),
        router("b", {"v": vpn()}, listeners=listeners),
    ]
    (only,) = told(load_all(data))
    assert "location: router b speaks no TLS there (b.yaml:" in only


def test_name_that_differs_by_case() -> None:
    """A remote message VPN that exists in another spelling is named."""
    (only,) = told(mesh({"a/v": vpn({"in": bridge("b/Blue", filters=["w"])}), "b/blue": vpn()}))
    assert "router b has no message VPN Blue, but blue (b.yaml:" in only


def test_half_that_does_not_fit_carries_nothing() -> None:
    """A bridge that cannot come up is no way for a topic."""
    data = {
        "a/v": vpn(),
        "b/v": vpn({"one": bridge("a/v", filters=["w"]), "two": bridge("a/v", filters=["w"])}),
    }
    assert len(told(mesh(data), about="twice")) == 1
    wrong = {"client_username": "bridge", "password": "wrong"}
    data["b/v"]["bridges"]["two"]["remote_msg_vpns"][0] |= wrong
    (only,) = told(mesh(data))
    assert "the password is not that of client username bridge" in only
