"""A bridge whose remote router dies, stands still, or comes back as another one."""

import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

HEARTBEAT_MS = 300
"""As the bridge of conftest.py has it."""

Document = dict[str, Any]


def assert_serves(router: Any, paho: Any) -> None:
    """Clients of one router reach each other."""
    client = paho(router.port("mqtt"), "here")
    client.subscribe("here/#")
    client.publish("here/x", b"x")
    assert client.next() == ("here/x", b"x")


def test_killed_and_started_again(bridged: Any, paho: Any, publishing: Any) -> None:
    """A remote killed under load is missed at once; started again, its first message arrives, none twice."""
    two = bridged()
    far = paho(two.core.port("mqtt"), "far")
    far.subscribe("out/#")
    out = publishing(paho(two.edge.port("mqtt"), "out"), "out/x")
    far.until_number(out.passes(50))
    two.forget_lines()
    two.edge.kill()
    out.stop()
    two.core.says("VPN_BRIDGING_LINK_DOWN")
    two.link.unreachable()
    assert_serves(two.core, paho)
    before = far.numbers()
    assert before == list(range(len(before)))
    (down,) = two.core.told("VPN_BRIDGING_LINK_DOWN")
    assert "down: " in down
    two.core.says("Connection refused")
    two.core.err.clear()
    two.edge_again()
    # While nobody listened there was one reason, told once.
    assert not two.core.told("not connected")
    two.link.heal()
    began = time.monotonic()
    two.core.says("VPN_BRIDGING_LINK_UP")
    print(f"back {(time.monotonic() - began) * 1000:.0f} ms after it could be reached")
    two.edge.says("VPN_BRIDGING_LINK_UP")
    paho(two.edge.port("mqtt"), "out").publish("out/x", b"999999")
    far.until_number(999_999)
    assert far.numbers()[len(before) :] == [999_999]


@pytest.mark.parametrize("stopped", ["edge", "core"])
def test_a_router_that_stands_still(bridged: Any, paho: Any, publishing: Any, stopped: str) -> None:
    """SIGSTOP is found by the heartbeat within three intervals; after SIGCONT the bridge is back."""
    two = bridged()
    far = paho(two.core.port("mqtt"), "far")
    far.subscribe("out/#")
    out = publishing(paho(two.edge.port("mqtt"), "out"), "out/x")
    far.until_number(out.passes(50))
    two.forget_lines()
    still, other = (two.edge, two.core) if stopped == "edge" else (two.core, two.edge)
    began = time.monotonic()
    still.process.send_signal(signal.SIGSTOP)
    try:
        other.says("VPN_BRIDGING_LINK_DOWN")
        took_s = time.monotonic() - began
        print(f"{stopped} missed after {took_s * 1000:.0f} ms")
        # Timers run in steps of a tenth of a second; the rest is for a busy machine, and well below what
        # the heartbeat is by itself (15 s).
        assert 2 * HEARTBEAT_MS / 1000 < took_s < 3 * HEARTBEAT_MS / 1000 + 10
        (down,) = other.told("VPN_BRIDGING_LINK_DOWN")
        assert "408 Heartbeat Timeout" in down
        assert_serves(other, paho)
    finally:
        still.process.send_signal(signal.SIGCONT)
    two.core.says("VPN_BRIDGING_LINK_UP")
    two.edge.says("VPN_BRIDGING_LINK_UP")
    out.passes(50)
    last = out.stop()
    if stopped == "edge":
        # What was published while edge stood still waits in its socket, and is published after that.
        paho(two.edge.port("mqtt"), "last").publish("out/x", str(last).encode())
    else:
        last -= 1
    far.until_number(last)
    found = far.numbers()
    assert found == sorted(set(found))


def other_acl(edge: Document) -> None:
    """Bridges may no more subscribe to what is below out."""
    edge["msg_vpns"]["blue"]["acl_profiles"] = {
        "default": {"subscribe_topic": {"default_action": "allow", "exceptions": ["out/>"]}}
    }


def other_vpn(edge: Document) -> None:
    """There is no VPN blue any more."""
    edge["msg_vpns"]["green"] = edge["msg_vpns"].pop("blue")
    edge["listeners"][1]["msg_vpn"] = "green"


def no_permission(edge: Document) -> None:
    """Bridges may not log in."""
    edge["msg_vpns"]["blue"]["client_profiles"] = {}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (other_vpn, "403 Forbidden"),
        (no_permission, "403 Bridge Connections Not Allowed"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_back_with_another_configuration(
    bridged: Any, paho: Any, change: Callable[[Document], None], reason: str
) -> None:
    """A remote that comes back and lets the bridge in no more says why, and so does the bridge's side."""
    two = bridged()
    two.edge.stop()
    two.core.says("VPN_BRIDGING_LINK_DOWN")
    two.forget_lines()
    changed = two.documents["edge"]
    change(changed)
    two.edge_again(changed)
    two.core.says("VPN_BRIDGING_LINK_REJECTED")
    two.edge.says("VPN_BRIDGING_LINK_REJECTED")
    theirs = "403 Message VPN Not Allowed" if change is other_vpn else reason
    for router, why in ((two.core, reason), (two.edge, theirs)):
        assert all(
            f"rejected: {why}" in line for line in router.told("VPN_BRIDGING_LINK_REJECTED")
        ), router.err
    row = two.core.bridge("from-blue", inboundFailureReason=reason)
    assert row["health"] == "down"
    assert_serves(two.core, paho)


def test_back_with_fewer_permissions(bridged: Any, paho: Any) -> None:
    """A remote that comes back and refuses the subscription: the bridge is up, and says what it lacks."""
    two = bridged()
    two.edge.stop()
    two.core.says("VPN_BRIDGING_LINK_DOWN")
    two.forget_lines()
    changed = two.documents["edge"]
    other_acl(changed)
    two.edge_again(changed)
    two.core.says("VPN_BRIDGING_LINK_UP")
    (line,) = two.core.told("remote subscription refused")
    assert "403 Subscription ACL Denied" in line
    assert "out/>" in line
    assert_serves(two.core, paho)
