"""What is attracted and never comes."""

import runpy
from pathlib import Path
from typing import Any

KIT = runpy.run_path(str(Path(__file__).with_name("mesh_kit.py")))
bridge, vpn, mesh, told = (KIT[name] for name in ("bridge", "vpn", "mesh", "told"))
DISALLOW = {"default_action": "disallow", "exceptions": ["open/>"]}


def closed(**more: Any) -> dict[str, Any]:
    """A message VPN in which clients may publish below open/ alone."""
    data = vpn(acl_profiles={"default": {"publish_topic": DISALLOW}}, **more)
    assert isinstance(data, dict)
    return data


def test_nobody_publishes() -> None:
    """A filter whose topics nobody may publish there is a black hole, told with an example."""
    data = {"a/v": closed(), "b/v": vpn({"from-a": bridge("a/v", filters=["w/>", "*/x"])})}
    (only,) = told(mesh(data))
    assert ": warning: msg_vpns.v.bridges.from-a.remote_subscriptions: black hole:" in only
    assert "nobody may publish topics such as w/x in a/v (a.yaml:" in only


def test_somebody_publishes() -> None:
    """One client username that may log in and publish is enough."""
    data = {"a/v": closed(), "b/v": vpn({"from-a": bridge("a/v", filters=["w/>"])})}
    data["a/v"]["acl_profiles"]["free"] = {"publish_topic": {"default_action": "allow"}}
    account: dict[str, Any] = {"acl_profile": "free", "password": "p"}
    data["a/v"]["client_usernames"]["alice"] = account
    assert told(mesh(data)) == []
    account["enabled"] = False
    assert len(told(mesh(data))) == 1


def test_a_bridge_brings_it() -> None:
    """What a bridge brings need not be published there, wherever the bridge leads."""
    data = {"a/v": closed(bridges={}), "b/v": vpn({"from-a": bridge("a/v", filters=["w/>"])})}
    data["a/v"]["bridges"]["from-far"] = bridge("far/v", filters=["w/y"])
    assert told(mesh(data), about="black hole") == []
    data["a/v"]["bridges"]["from-far"] = bridge("far/v", filters=["v"])
    assert len(told(mesh(data), about="black hole")) == 1
    data["a/v"]["bridges"]["from-far"] = bridge("far/v", queue="unknown")
    assert told(mesh(data), about="black hole") == []


def test_the_router_itself_publishes() -> None:
    """Nothing is said of topics that the router may publish itself."""
    data = {"a/v": closed(), "b/v": vpn({"from-a": bridge("a/v", filters=["$SYS/>"])})}
    assert told(mesh(data)) == []


def hub(inward: str, onward: str) -> dict[str, Any]:
    """B brings from A, C takes from B."""
    return {
        "a/v": vpn(),
        "b/v": vpn({"from-a": bridge("a/v", filters=[inward])}),
        "c/v": vpn({"from-b": bridge("b/v", filters=[onward])}),
    }


def test_chain_that_ends() -> None:
    """A chain whose second bridge takes nothing on of what the first one brings is noted."""
    (only,) = told(mesh(hub("w/>", "v/>")))
    assert only.startswith("c.yaml:")
    assert "nothing that bridges bring from a/v into b/v goes on to c/v" in only
    assert "topic w/x goes a/v -> b/v and no further" in only
    assert ": note: " in only


def test_chain_that_goes_on() -> None:
    """One topic that goes on is enough, and so is a bridge that leads past the hub."""
    assert told(mesh(hub("w/>", "*/x"))) == []
    data = hub("w/>", "v/>")
    data["c/v"]["bridges"]["from-a"] = bridge("a/v", filters=["z"])
    assert told(mesh(data)) == []


def test_unknown_router_behind_the_hub() -> None:
    """What a router brings that no file describes may go on."""
    data = hub("w/>", "v/>")
    data["b/v"]["bridges"]["from-far"] = bridge("far/v", filters=["v/>"])
    assert told(mesh(data), about="chain ends") == []


def test_hub_is_told_once() -> None:
    """All bridges that lead out of one message VPN share one note."""
    data = hub("w/>", "v/>")
    data["d/v"] = vpn({"from-b": bridge("b/v", filters=["u"])})
    (only,) = told(mesh(data))
    assert "goes on to c/v, d/v" in only


def test_pair_with_other_topics_each_way() -> None:
    """A bi-directional bridge with other topics each way is no chain that ends."""
    data = {
        "a/v": vpn({"from-b": bridge("b/v", filters=["w/>"])}),
        "b/v": vpn({"from-a": bridge("a/v", filters=["v/>"])}),
    }
    assert told(mesh(data)) == []
