"""Bound queues seen from both sides; test_mesh.py has missing, shared and forbidden ones."""

import runpy
from pathlib import Path
from typing import Any

import pytest

KIT = runpy.run_path(str(Path(__file__).with_name("mesh_kit.py")))
bridge, vpn, router, load_all, told, mesh = (
    KIT[name] for name in ("bridge", "vpn", "router", "load_all", "told", "mesh")
)
FED = {"subscriptions": ["w"]}


def bound(queue: dict[str, Any] | None, **there: Any) -> list[str]:
    """B takes from queue q of A, which is as given."""
    queues = {} if queue is None else {"q": {**FED, **queue}}
    vpns = {"a/v": vpn(queues=queues, **there), "b/v": vpn({"in": bridge("a/v", queue="q")})}
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
        mesh({"a/v": vpn(queues={"q": FED}), "b/v": vpn({"x": first}), "c/v": vpn({"y": second})})
    )
    assert only.startswith("c.yaml:")
    assert (
        "warning: msg_vpns.v.bridges.y.remote_msg_vpns[0].queue_binding: bridge x into b/v" in only
    )
    assert "is bound to queue q of a/v too (b.yaml:" in only
    twice = bridge("a/v", "a/v", queue="q")
    twice["remote_msg_vpns"][1]["location"] = "v:a"
    assert told(mesh({"a/v": vpn(queues={"q": FED}), "b/v": vpn({"x": twice})})) == []


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
