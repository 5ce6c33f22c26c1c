"""Which router a remote means."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from vpnrouter.config.mesh.remotes import Routers, listener_at, remotes

KIT = runpy.run_path(str(Path(__file__).with_name("mesh_kit.py")))
bridge, vpn, router, load_all = (KIT[name] for name in ("bridge", "vpn", "router", "load_all"))


def two(
    bind: str = "b.example:55555", other: str = "c.example:55555", **remote: Any
) -> tuple[Any, Any]:
    """A's one remote, and the routers A, B and C; B and C listen as told."""
    from_b = bridge("b/v", filters=["w"])
    from_b["remote_msg_vpns"] = [{"name": "v", **remote}]
    listen = [[{"protocol": "link", "bind": each}] for each in (bind, other)]
    loaded = load_all(
        [
            router("a", {"v": vpn({"from-b": from_b})}),
            router("b", {"v": vpn()}, listeners=listen[0]),
            router("c", {"v": vpn()}, listeners=listen[1]),
        ]
    )
    (place,) = remotes(loaded[0])
    return place, Routers(loaded)


@pytest.mark.parametrize(
    ("remote", "expected"),
    [
        ({"router": "b", "location": "nowhere.example"}, "b"),
        ({"location": "v:c"}, "c"),
        ({"location": "b.example"}, "b"),
        ({"location": "b.example:55555"}, "b"),
        ({"location": "c.example"}, "c"),
    ],
)
def test_meant(remote: dict[str, Any], expected: str) -> None:
    """A name counts before an address, an address is compared with the listeners' letter by letter."""
    place, routers = two(**remote)
    assert routers.resolve(place).peer.config.router.name == expected


@pytest.mark.parametrize(
    ("remote", "expected"),
    [
        ({"router": "z", "location": "b.example"}, "no given file describes router z"),
        ({"location": "v:z"}, "no given file describes router z"),
        ({"location": "b.example:1"}, "a link listener at b.example:1"),
        ({"location": "B.example"}, "a link listener at B.example:55555"),
    ],
)
def test_unknown(remote: dict[str, Any], expected: str) -> None:
    """What no file describes is unknown, and it is said why."""
    place, routers = two(**remote)
    target = routers.resolve(place)
    assert target.peer is None
    assert expected in target.unknown


def test_one_address_of_two_routers() -> None:
    """An address that two routers listen at does not tell them apart."""
    place, routers = two("127.0.0.1:55555", "127.0.0.1:55555", location="127.0.0.1")
    target = routers.resolve(place)
    assert target.peer is None
    assert "routers b, c all listen at 127.0.0.1:55555" in target.unknown


def test_port_zero_is_no_address() -> None:
    """Where the system chooses the port, no remote can mean the listener."""
    place, routers = two("b.example:0", location="b.example:1")
    assert routers.resolve(place).peer is None
    assert all(address.port for address in routers.by_address)


@pytest.mark.parametrize(
    ("bind", "other", "remote", "expected"),
    [
        ("b.example:1", "c.example:1", {"router": "b", "location": "c.example:1"}, "c"),
        ("b.example:1", "c.example:1", {"router": "b", "location": "b.example:1"}, None),
        ("0.0.0.0:1", "c.example:1", {"router": "b", "location": "c.example:1"}, None),
        ("127.0.0.1:2", "127.0.0.1:1", {"router": "b", "location": "127.0.0.1:1"}, "c"),
        ("127.0.0.1:2", "127.0.0.1:1", {"router": "z", "location": "127.0.0.1:1"}, None),
        ("b.example:1", "c.example:1", {"router": "z", "location": "c.example:1"}, "c"),
        ("b.example:1", "c.example:1", {"location": "c.example:1"}, None),
    ],
)
def test_listening_instead(
    bind: str, other: str, remote: dict[str, Any], expected: str | None
) -> None:
    """Another router than the one named listens there; of loopback addresses only a described one."""
    place, routers = two(bind, other, **remote)
    found = routers.listening_instead(place)
    assert (found.config.router.name if found else None) == expected


def test_listener_bound_to_all_addresses() -> None:
    """A listener bound to all addresses answers at each, one bound to the very address goes first."""
    place, routers = two("0.0.0.0:55555", location="b.example")
    config = routers.by_name["b"].config
    assert listener_at(config, place.remote.address) is config.listeners[0]
    assert listener_at(config, None) is None


def test_disabled_is_left_out() -> None:
    """Disabled remotes, bridges and message VPNs have no place in a mesh."""
    for path in ("remote", "bridge", "vpn"):
        each = bridge("b/v", filters=["w"])
        data = vpn({"from-b": each})
        {"remote": each["remote_msg_vpns"][0], "bridge": each, "vpn": data}[path]["enabled"] = False
        (loaded,) = load_all([router("a", {"v": data})])
        assert remotes(loaded) == []
