import random
from types import SimpleNamespace
from typing import Any

import pytest

from vpnrouter import limits
from vpnrouter.bridges.bridge import Bridge, BridgeFacts, Inbound, Input, Peer
from vpnrouter.bridges.look import BridgeLook, remotes_of
from vpnrouter.bridges.remote_order import Remote
from vpnrouter.bridges.status import (
    LEAST_GAP_NS,
    BridgeRates,
    BridgeStatus,
    Rate,
    RateMeter,
    RemoteStatus,
)
from vpnrouter.core.discard_reasons import LOOP_DETECTED, TRANSMIT_CONGESTION
from vpnrouter.settings.shown import fill

SECOND = 1_000_000_000
UP = [Input.ENABLE, Input.DIAL, Input.RESOLVED, Input.CONNECTED, Input.WELCOMED, Input.SUBSCRIBED]


def made(*inputs: Input) -> Bridge:
    """A bridge that was given `inputs`, one a second from 1 s on."""
    bridge = Bridge(BridgeFacts("core", "yellow", "from-edge", max_ttl=3), 0)
    for second, given in enumerate(inputs, 1):
        bridge.handle(given, second * SECOND, "why")
    return bridge


def status_of(bridge: Bridge, now_ns: int, **more: Any) -> BridgeStatus:
    """What is shown of a bridge."""
    return fill(BridgeStatus, BridgeLook(bridge, now_ns, **more))


def lacking(
    unbound: str = "",
    *refused: str,
    in_flight: int = 0,
    msg_vpn_enabled: bool = True,
    **more: Any,
) -> dict[str, Any]:
    """The surroundings of a bridge that lacks these things."""
    half = SimpleNamespace(
        flow=SimpleNamespace(reason=unbound, bound_since_ns=-1),
        refused=dict(enumerate(refused)),
        in_flight=in_flight,
    )
    remotes = SimpleNamespace(current=None, written=list)
    driver = SimpleNamespace(
        half=half,
        taker=None,
        links=SimpleNamespace(vpn=SimpleNamespace(enabled=msg_vpn_enabled)),
        machine=SimpleNamespace(remotes=remotes, failures={}, reconnecting=False, stopped=""),
    )
    link = SimpleNamespace(client=None, peer_half=None, features=0)
    return {"driver": driver, "link": link, **more}


def test_a_bridge_in_sync() -> None:
    """Names, states and times are the record's."""
    bridge = made(*UP)
    bridge.remote = Remote("blue", "h:1")
    bridge.remote_router_name = "edge"
    status = status_of(bridge, 15 * SECOND)
    assert (status.msg_vpn_name, status.bridge_name) == ("yellow", "from-edge")
    assert (status.remote_msg_vpn_name, status.remote_router_name) == ("blue", "edge")
    assert (status.inbound_state, status.outbound_state) == ("ready-in-sync", "not-applicable")
    assert (status.health, status.enabled, status.max_ttl) == ("up", True, 3)
    assert (status.uptime, status.state_age_ms) == (10, 9_000)
    assert (status.failure_count, status.last_failure_age_ms) == (0, -1)
    assert (status.last_rx_age_ms, status.last_tx_age_ms) == (-1, -1)
    assert type(status.inbound_state) is str


def test_counters_and_balance() -> None:
    """Counts are the counters', discards are by reason, and what is missing shows as imbalance."""
    bridge = made(*UP)
    counters = bridge.counters
    counters.data_rx(10, 1_000, 6 * SECOND)
    counters.delivered_rx_msg_count = 6
    counters.discard_rx(LOOP_DETECTED, 3)
    counters.offered_tx_msg_count = 9
    counters.data_tx(4, 400, 7 * SECOND)
    counters.discard_tx(TRANSMIT_CONGESTION, 2)
    counters.control_rx(10, login=True)
    status = status_of(
        bridge, 8 * SECOND, **lacking(in_flight=1, sender=SimpleNamespace(tx_in_flight=2))
    )
    assert (status.rx_imbalance, status.tx_imbalance) == (0, 1)
    assert (status.discarded_rx, status.discarded_tx) == (
        {LOOP_DETECTED: 3},
        {TRANSMIT_CONGESTION: 2},
    )
    assert (status.discarded_rx_msg_count, status.discarded_tx_msg_count) == (3, 2)
    assert (status.rx_msg_count, status.rx_byte_count, status.login_rx_msg_count) == (11, 1_010, 1)
    assert (status.last_rx_age_ms, status.last_tx_age_ms) == (2_000, 1_000)
    counters.discard_rx(LOOP_DETECTED)
    assert status.discarded_rx == {LOOP_DETECTED: 3}, "a status does not change afterwards"


def test_rates() -> None:
    """Each rate stands under its name."""
    rates = BridgeRates(Rate(1, 2), Rate(3, 4), Rate(5, 6), Rate(7, 8))
    status = status_of(made(), 0, rates=rates.attributes())
    assert (status.rx_msg_rate, status.average_rx_msg_rate) == (1, 2)
    assert (status.rx_byte_rate, status.average_rx_byte_rate) == (3, 4)
    assert (status.tx_msg_rate, status.average_tx_msg_rate) == (5, 6)
    assert (status.tx_byte_rate, status.average_tx_byte_rate) == (7, 8)


def test_reasons_of_both_halves_go_when_they_recover() -> None:
    """The reason of each half is told while it holds, and not any longer."""
    bridge = made(*UP)
    bridge.handle(Input.LOST, 8 * SECOND, "reset by peer")
    bridge.handle_peer(Peer.LOGGED_IN)
    bridge.handle_peer(Peer.LOGGED_OUT, "Bridge Shutdown")
    status = status_of(bridge, 9 * SECOND)
    assert (status.inbound_failure_reason, status.health) == ("reset by peer", "down")
    assert (status.failure_count, status.last_failure_age_ms) == (1, 1_000)
    assert status.outbound_failure_reason == "Bridge Shutdown"
    bridge.handle_peer(Peer.LOGGED_IN)
    for given in (Input.CLEANED, Input.NEXT_REMOTE, *UP[1:]):
        bridge.handle(given, 10 * SECOND)
    status = status_of(bridge, 11 * SECOND)
    assert (status.inbound_failure_reason, status.outbound_failure_reason) == ("", "")


@pytest.mark.parametrize("inbound", list(Inbound))
def test_health(inbound: Inbound) -> None:
    """Up is a bridge over which everything flows that is to; what else it lacks has a word each."""
    flows = {"ready-subscribing", "ready-in-sync", "not-applicable"}
    words = {"disabled": "disabled", "stalled": "stalled", "paused": "paused"}
    expected = words.get(inbound, "up" if inbound in flows else "down")
    bridge = made()
    bridge.inbound_state = inbound

    def health(**around: Any) -> str:
        return BridgeLook(bridge, 0, **around).health

    assert health() == expected
    wants = lacking("no such queue", "403: a")
    assert health(**wants) == ("unbound" if expected == "up" else expected)
    part = lacking("", "403: a")
    assert health(**part) == ("incomplete" if expected == "up" else expected)
    assert health(**lacking(msg_vpn_enabled=False)) == "msg-vpn-disabled"
    assert health(enabled=False) == "disabled"


def test_what_a_bridge_lacks_is_its_reason() -> None:
    """While it is up the reason tells of the queue that it has not, or of what was refused; enabled is as written."""
    bridge = made(*UP)
    status = status_of(bridge, 0, **lacking("503 Unknown Queue", "403: a"))
    assert status.inbound_failure_reason == "not bound to its queue: 503 Unknown Queue"
    status = status_of(bridge, 0, **lacking("", "403: a", "403: b", "403: c"))
    assert status.inbound_failure_reason == "remote subscription refused: 403: a, and 2 more"
    assert status.remote_subscription_refused_count == 3
    bridge.handle(Input.STALL, 9 * SECOND, "503 Spool Over Quota")
    status = status_of(bridge, 0, **lacking("", "403: a", msg_vpn_enabled=False))
    assert status.inbound_failure_reason == "503 Spool Over Quota"
    assert status.enabled
    assert not status_of(bridge, 0, enabled=False).enabled


def test_remotes() -> None:
    """The remote in use is up, whatever its preference; the others tell why they are not."""
    bridge = made(*UP)
    bridge.remote = Remote("blue", "two:1", 4)
    remotes = [
        Remote("blue", "one:1", 1),
        Remote("blue", "two:1", 2),
        Remote("red", "x:1", 3, False),
    ]
    failures = {("blue", "one:1"): "refused"}
    shown = [fill(RemoteStatus, one) for one in remotes_of(bridge, remotes, failures, {})]
    assert [(one.up, one.enabled, one.last_connection_failure_reason) for one in shown] == [
        (False, True, "refused"),
        (True, True, ""),
        (False, False, ""),
    ]
    bridge.handle(Input.LOST, 9 * SECOND)
    assert not any(one.up for one in remotes_of(bridge, remotes, failures, {}))


# -- rates -----------------------------------------------------------------------------------------


def test_before_the_second_sample() -> None:
    """Nothing can be said of one sample, so all rates are 0."""
    meter = RateMeter()
    assert meter.rates() == ()
    assert meter.bridge_rates() == BridgeRates()
    meter.sample(5 * SECOND, 1_000, 7)
    assert meter.rates() == (Rate(0, 0), Rate(0, 0))


def test_current_and_average() -> None:
    """The current rate is of the last interval, the average of all there is, each count by itself."""
    meter = RateMeter()
    for second, counts in enumerate([(0, 0), (10, 1), (40, 2)]):
        meter.sample(second * SECOND, *counts)
    assert meter.rates() == (Rate(30, 20), Rate(1, 1))


def test_the_average_is_of_the_last_minute() -> None:
    """What happened more than a minute ago is not in it."""
    meter = RateMeter()
    meter.sample(0, 0)
    meter.sample(SECOND, 1_000_000)
    for second in range(2, 61):
        meter.sample(second * SECOND, 1_000_000 + 60 * second)
    assert meter.rates() == (Rate(60, 16_727),), "the leap is a minute old, and still in it"
    meter.sample(61 * SECOND, 1_000_000 + 60 * 61)
    meter.sample(62 * SECOND, 1_000_000 + 60 * 62)
    assert meter.rates() == (Rate(60, 60),)


def test_fast_samples_do_not_shorten_the_average() -> None:
    """Sampled ten times as fast, the average still covers a minute."""
    meter = RateMeter()
    meter.sample(0, 0)
    for tenth in range(1, 590):
        meter.sample(tenth * SECOND // 10, 60_000)
    (rate,) = meter.rates()
    assert rate.current == 0
    assert 1_000 <= rate.average <= 1_050


@pytest.mark.parametrize("idle_s", [3, 59, 60, 61, 3_600])
def test_counts_that_stay_the_same_take_no_room(idle_s: int) -> None:
    """An hour without a message is two samples; what comes behind it is averaged over a minute at most."""
    meter = RateMeter()
    meter.sample(0, 0)
    for second in range(1, idle_s + 1):
        meter.sample(second * SECOND, 500)
        assert len(meter._samples) <= 3
    assert meter.rates()[0].current == (500 if idle_s == 1 else 0)
    meter.sample((idle_s + 1) * SECOND, 560)
    (rate,) = meter.rates()
    assert rate.current == 60
    if idle_s >= 60:
        assert rate.average == 1
    else:
        assert rate.average == round(560 / (idle_s + 1))


def test_a_count_that_fell_starts_anew() -> None:
    """Counts that begin again give no negative rate."""
    meter = RateMeter()
    meter.sample(0, 100)
    meter.sample(SECOND, 200)
    meter.sample(2 * SECOND, 5)
    assert meter.rates() == (Rate(0, 0),)
    meter.sample(3 * SECOND, 8)
    assert meter.rates() == (Rate(3, 3),)


@pytest.mark.parametrize("gap_ns", [1, SECOND // 100, LEAST_GAP_NS, SECOND, 7 * SECOND])
def test_memory_is_bounded_and_reaches_back(gap_ns: int) -> None:
    """However fast samples come, few are kept, and a steady growth keeps its average."""
    meter = RateMeter()
    now_ns = 0
    for _ in range(10 * limits.RATE_SAMPLES):
        meter.sample(now_ns, now_ns * 1_000 // SECOND)
        now_ns += gap_ns
        assert len(meter._samples) <= limits.RATE_SAMPLES
    if now_ns > 2 * LEAST_GAP_NS:
        (rate,) = meter.rates()
        assert rate.average == rate.current == 1_000
    held_ns = meter._samples[-1][0] - meter._samples[0][0]
    assert held_ns <= 60 * SECOND + gap_ns


def test_jitter_of_the_sampling_is_no_jitter_of_the_rate() -> None:
    """The rate is of the time that passed, not of the seconds that should have."""
    drawn = random.Random(7)
    meter = RateMeter()
    now_ns = 0
    for _ in range(50):
        meter.sample(now_ns, now_ns // 1_000_000)
        now_ns += SECOND + drawn.randrange(SECOND)
    (rate,) = meter.rates()
    assert rate == Rate(1_000, 1_000)
