import pytest

from vpnrouter.bridges.bridge import Bridge, BridgeFacts, Inbound, Input, Outbound, Peer

SECOND = 1_000_000_000
DIALLING = [Input.ENABLE, Input.DIAL, Input.RESOLVED, Input.CONNECTED]


def made(*inputs: Input) -> Bridge:
    """A bridge that was given `inputs`, one a second."""
    bridge = Bridge(BridgeFacts("core", "yellow", "from-edge"), 0)
    for second, given in enumerate(inputs, 1):
        bridge.handle(given, second * SECOND)
    return bridge


def test_the_way_up() -> None:
    """From enable to in sync, uptime counts from the login on."""
    bridge = made(*DIALLING)
    step = bridge.handle(Input.WELCOMED, 5 * SECOND)
    assert step.went_up
    step = bridge.handle(Input.SUBSCRIBED, 6 * SECOND)
    assert not step.went_up
    assert bridge.is_up
    assert bridge.inbound_state is Inbound.READY_IN_SYNC
    assert bridge.state_since_ns == 6 * SECOND
    assert bridge.uptime_s(15 * SECOND + 1) == 10


def test_a_failure_is_told_until_the_bridge_recovers() -> None:
    """The reason stays through the waiting and the next attempt, and is gone after the login."""
    bridge = made(*DIALLING)
    bridge.handle(Input.REFUSED, 5 * SECOND, "403 Message VPN Not Allowed")
    for given in (Input.CLEANED, Input.NEXT_REMOTE, Input.DIAL, Input.RESOLVED, Input.CONNECTED):
        bridge.handle(given, 6 * SECOND)
        assert bridge.inbound_failure_reason == "403 Message VPN Not Allowed"
    bridge.handle(Input.WELCOMED, 7 * SECOND)
    assert bridge.inbound_failure_reason == ""
    assert (bridge.failures, bridge.last_failure_ns) == (1, 5 * SECOND)


def test_a_lost_link_goes_down() -> None:
    """The loss is a transition out of up, with its reason, and the uptime is 0 again."""
    bridge = made(*DIALLING, Input.WELCOMED, Input.SUBSCRIBED)
    step = bridge.handle(Input.LOST, 9 * SECOND, "connection reset by peer")
    assert step.went_down
    assert (step.before, step.after) == (Inbound.READY_IN_SYNC, Inbound.NOT_READY_WAIT_CLEANUP)
    assert step.reason == bridge.inbound_failure_reason == "connection reset by peer"
    assert bridge.uptime_s(10 * SECOND) == 0


def test_stalled_is_still_up() -> None:
    """A refused guaranteed message names its reason and does not end the uptime."""
    bridge = made(*DIALLING, Input.WELCOMED, Input.SUBSCRIBED)
    bridge.handle(Input.STALL, 8 * SECOND, "503 Spool Over Quota")
    assert bridge.inbound_state is Inbound.STALLED
    assert bridge.is_up
    assert bridge.inbound_failure_reason == "503 Spool Over Quota"
    bridge.handle(Input.RELEASE, 9 * SECOND)
    assert bridge.inbound_failure_reason == ""
    assert bridge.uptime_s(10 * SECOND) == 5


def test_disable_clears_the_reason_and_late_news_does_not_bring_it_back() -> None:
    """A bridge that is switched off has no failure, also when its connection ends later."""
    bridge = made(*DIALLING, Input.WELCOMED)
    bridge.handle(Input.DISABLE, 6 * SECOND)
    bridge.handle(Input.LOST, 7 * SECOND, "closed")
    bridge.handle(Input.CLEANED, 7 * SECOND)
    assert bridge.inbound_state is Inbound.DISABLED
    assert (bridge.inbound_failure_reason, bridge.failures) == ("", 0)


def test_an_input_that_does_not_fit_changes_nothing() -> None:
    """A fault of the caller raises LookupError and leaves state, reason and times as they were."""
    bridge = made(*DIALLING)
    with pytest.raises(LookupError):
        bridge.handle(Input.SUBSCRIBED, 9 * SECOND, "nonsense")
    assert bridge.inbound_state is Inbound.NOT_READY_HANDSHAKING
    assert (bridge.inbound_failure_reason, bridge.state_since_ns) == ("", 4 * SECOND)


def test_the_outbound_half_follows_the_peer() -> None:
    """It is ready while the peer's bridge is logged in, whatever the inbound half does."""
    bridge = made(Input.ATTACH)
    assert bridge.inbound_state is Inbound.NOT_APPLICABLE
    assert bridge.handle_peer(Peer.LOGGED_IN) is Outbound.READY
    assert bridge.handle_peer(Peer.LOGGED_OUT, "Bridge Shutdown") is Outbound.NOT_APPLICABLE
    assert bridge.outbound_failure_reason == "Bridge Shutdown"
    with pytest.raises(LookupError):
        bridge.handle_peer(Peer.LOGGED_OUT)
