"""Which router a remote means, and bridges and bound queues that do not fit what is there."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from vpnrouter.config.mesh.remotes import Routers, listener_at, remotes

KIT = runpy.run_path(str(Path(__file__).with_name("mesh_kit.py")))
bridge = KIT["bridge"]
vpn = KIT["vpn"]
router = KIT["router"]
load_all = KIT["load_all"]


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


told = KIT["told"]


def test_message_vpns_that_differ_by_case() -> None:
    """One name in two spellings is a warning, at the second one; one spelling is the usual case."""
    data = [
        router("a", {"Blue": vpn()}),
        router("b", {"Blue": vpn()}),
        router("c", {"blue": vpn()}),
    ]
    (only,) = told(load_all(data))
    assert only.startswith("c.yaml:")
    assert ": warning: msg_vpns.blue: differs only by case from message VPN Blue at a.yaml:" in only
    assert told(load_all(data[:2])) == []


def test_routers_of_one_name() -> None:
    """Two routers of one name are an error at the second one."""
    (only,) = told(load_all([router("a", {}), router("a", {}, listeners=[])]), about="name")
    assert "router.name: another router has the name a at a.yaml:" in only
    assert "warning" not in only


@pytest.mark.parametrize(
    ("binds", "directories", "warned"),
    [
        (("127.0.0.1:1", "127.0.0.1:2"), ("./data", "./data"), True),
        (("127.0.0.1:1", "127.0.0.1:2"), ("./data", "data/"), True),
        (("127.0.0.1:1", "127.0.0.1:2"), ("./data", "./data2"), False),
        (("127.0.0.1:1", "127.0.0.1:1"), ("./data", "./data"), False),
        (("0.0.0.0:1", "127.0.0.1:1"), ("./data", "./data"), False),
        (("0.0.0.0:1", "0.0.0.0:2"), ("./data", "./data"), True),
        (("127.0.0.1:0", "127.0.0.1:0"), ("./data", "./data"), True),
        (("192.0.2.1:1", "192.0.2.2:2"), ("./data", "./data"), False),
    ],
)
def test_one_data_directory(
    binds: tuple[str, str], directories: tuple[str, str], warned: bool
) -> None:
    """Two routers with one directory are a warning, unless they cannot run on one machine anyway."""
    data = [
        router(
            name,
            {},
            router={"name": name, "data_dir": directory},
            listeners=[{"protocol": "link", "bind": bind}],
        )
        for name, bind, directory in zip("ab", binds, directories, strict=True)
    ]
    lines = told(load_all(data))
    assert len(lines) == warned
    if warned:
        assert lines[0].startswith("b.yaml:")
        assert (
            ": warning: router.data_dir: router a has the directory data too (a.yaml:" in lines[0]
        )


mesh = KIT["mesh"]

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


FED = {"subscriptions": ["w"]}
TAKEN = {"queues": {"here": FED}}


def bound(queue: dict[str, Any] | None, **there: Any) -> list[str]:
    """B takes from queue q of A, which is as given."""
    queues = {} if queue is None else {"q": {**FED, **queue}}
    here = vpn({"in": bridge("a/v", queue="q")}, **TAKEN)
    vpns = {"a/v": vpn(queues=queues, **there), "b/v": here}
    found: list[str] = told(mesh(vpns))
    return found


@pytest.mark.parametrize(
    ("queue", "said"),
    [
        (None, "message VPN v of router a has no queue q (a.yaml:"),
        ({"access_type": "non-exclusive"}, "queue q of message VPN v of router a is not exclusive"),
        ({"permission": "read-only"}, "does not let the bridge consume (a.yaml:"),
        ({"max_bind_count": 0}, "takes no consumer: its max_bind_count is 0 (a.yaml:"),
        ({"egress_enabled": False}, "delivers nothing: egress_enabled is false (a.yaml:"),
    ],
)
def test_queues_that_cannot_be_bound(queue: dict[str, Any] | None, said: str) -> None:
    """Each is told once, at the half that binds."""
    (only,) = bound(queue)
    assert only.startswith("b.yaml:")
    assert "remote_msg_vpns[0].queue_binding: " in only
    assert said in only


@pytest.mark.parametrize("queue", [{}, {"permission": "no-access", "owner": "bridge"}])
def test_queues_that_can(queue: dict[str, Any]) -> None:
    """A queue as it is by default, and one that belongs to the bridge's client username."""
    assert bound(queue) == []


def test_profile_without_guaranteed_messages() -> None:
    """The bridge's client username must be allowed to receive guaranteed messages."""
    profile = {"allow_bridge_connections_enabled": True}
    profile["allow_guaranteed_msg_receive_enabled"] = False
    (only,) = bound({}, client_profiles={"bridging": profile})
    assert "may not receive guaranteed messages: client profile bridging lacks" in only


def test_router_without_guaranteed_messaging() -> None:
    """Nothing is to be had from a router that spools nothing."""
    data = [
        router("a", {"v": vpn(queues={"q": FED})}, guaranteed_msging={"enabled": False}),
        router("b", {"v": vpn({"in": bridge("a/v", queue="q")})}),
    ]
    (only,) = told(load_all(data))
    assert "router a has no guaranteed messaging (a.yaml:" in only


def test_one_queue_for_two_bridges() -> None:
    """The second bridge of an exclusive queue is told; remotes of one bridge are alternatives."""
    first, second = bridge("a/v", queue="q"), bridge("a/v", queue="q")
    (only,) = told(
        mesh(
            {
                "a/v": vpn(queues={"q": FED}),
                "b/v": vpn({"x": first}, **TAKEN),
                "c/v": vpn({"y": second}, **TAKEN),
            }
        )
    )
    assert only.startswith("c.yaml:")
    assert (
        "warning: msg_vpns.v.bridges.y.remote_msg_vpns[0].queue_binding: bridge x into b/v" in only
    )
    assert "is bound to queue q of a/v too (b.yaml:" in only
    twice = bridge("a/v", "a/v", queue="q")
    twice["remote_msg_vpns"][1]["location"] = "v:a"
    assert told(mesh({"a/v": vpn(queues={"q": FED}), "b/v": vpn({"x": twice}, **TAKEN)})) == []


def acknowledged(name: str, **more: Any) -> list[str]:
    """B's bridge x takes from queue q of A, whose publishers wait for the bridge `name`."""
    profiles = {"waits": {"end_to_end_bridge": name}}
    profiles["bridging"] = {"allow_bridge_connections_enabled": True}  # type: ignore[dict-item]
    a = vpn(queues={"q": FED}, client_profiles=profiles, **more)
    found: list[str] = told(
        mesh(
            {
                "a/v": a,
                "b/v": vpn({"x": bridge("a/v", queue="q"), "d": bridge("a/v", filters=["u"])}),
            }
        ),
        about="end_to_end_bridge",
    )
    return found


def test_end_to_end() -> None:
    """The bridge must take from this message VPN by a queue."""
    assert acknowledged("x") == []
    (only,) = acknowledged("nope")
    assert "warning: msg_vpns.v.client_profiles.waits.end_to_end_bridge: no given file" in only
    (only,) = acknowledged("d")
    assert "warning" not in only
    assert "bridge d has no queue_binding for a/v" in only


def test_end_to_end_over_a_bridge_of_the_same_message_vpn() -> None:
    """A bridge that stands in the publisher's own message VPN leads the other way."""
    (only,) = acknowledged("mine", bridges={"mine": bridge("b/v", filters=["z"])})
    assert "the one in this message VPN brings messages here" in only


NEVER = {"reject_msg_to_sender_on_discard_behavior": "never"}


@pytest.mark.parametrize(
    ("queues", "topic"),
    [
        ({"keep": {"subscriptions": ["w"]}}, ""),
        ({"audit": {"subscriptions": [">"], **NEVER}}, "w"),
        ({"audit": {"subscriptions": ["other"], **NEVER}}, ""),
        ({"audit": {"subscriptions": [">"], **NEVER}, "keep": {"subscriptions": [">"]}}, ""),
        ({"audit": {"subscriptions": [">"], **NEVER}, "keep": {"subscriptions": ["v"]}}, "w"),
    ],
)
def test_queues_that_lose_what_comes(queues: dict[str, Any], topic: str) -> None:
    """A queue that is `never`, where none that rejects takes the same topics, is told with a topic."""
    vpns = {
        "a/v": vpn(queues={"q": FED}),
        "b/v": vpn({"in": bridge("a/v", queue="q")}, queues=queues),
    }
    lines: list[str] = told(mesh(vpns), about="loses them while it is full")
    assert len(lines) == bool(topic)
    if topic:
        assert lines[0].startswith("b.yaml:")
        assert ": warning: msg_vpns.v.queues.audit." in lines[0]
        assert f"bridge in brings guaranteed messages such as {topic} (b.yaml:" in lines[0]


@pytest.mark.parametrize(
    ("here", "more", "told_topic"),
    [
        ({}, {}, "w"),
        ({"queues": {"k": {"subscriptions": ["w"]}}}, {}, ""),
        ({"queues": {"k": {"subscriptions": [">", "!w"]}}}, {}, "w"),
        ({"queues": {"k": {"subscriptions": ["v"]}}}, {}, "w"),
        ({"topic_endpoints": {"t": {}}}, {}, ""),
        ({}, {"c/v": vpn({"on": bridge("b/v", filters=["w"])})}, ""),
        ({}, {"c/v": vpn({"on": bridge("b/v", filters=["v"])})}, "w"),
        ({"connectors": {"x": {"links": {"l": {"source": {"topic": "w"}}}}}}, {}, ""),
        ({"connectors": {"x": {"links": {"l": {"source": {"topic": "v"}}}}}}, {}, "w"),
        ({"connectors": {"x": {"links": {"l": {"source": {"address": "w"}}}}}}, {}, "w"),
        (
            {"connectors": {"x": {"enabled": False, "links": {"l": {"source": {"topic": "w"}}}}}},
            {},
            "w",
        ),
    ],
)
def test_guaranteed_messages_that_nothing_takes(
    here: dict[str, Any], more: dict[str, Any], told_topic: str
) -> None:
    """A bridge that takes from a queue what nothing configured takes here is told, with a topic."""
    vpns = {
        "a/v": vpn(queues={"q": FED}),
        "b/v": vpn({"in": bridge("a/v", queue="q")}, **here),
        **more,
    }
    lines: list[str] = told(mesh(vpns), about="no queue, bridge or connector takes them")
    assert len(lines) == bool(told_topic)
    if told_topic:
        assert lines[0].startswith("b.yaml:")
        assert f"brings guaranteed messages such as {told_topic}, " in lines[0]
        assert "from b/v: " in lines[0]
