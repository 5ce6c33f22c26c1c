"""What is kept of a router between two looks: rates, and the other end of a bridge."""

from typing import Any

import pytest

from vpnrouter.limits import TUI_HISTORY
from vpnrouter.tui.router_state import Meter, Meters, RouterState, once, other_end


def test_rate_is_growth_by_time() -> None:
    """300 more in two seconds is 150 a second; the first look gives none."""
    meter = Meter()
    assert meter.measure(10.0, 1_000) == 0.0
    assert meter.measure(12.0, 1_300) == 150.0
    assert list(meter.history) == [150.0]


def test_looks_in_quick_succession_are_one() -> None:
    """Counters that routers bring up to date once a second do not flicker between none and twice as much."""
    meter = Meter()
    meter.measure(10.0, 0)
    rates = [meter.measure(10.0 + half / 2, 100 * (half // 2)) for half in range(1, 9)]
    assert rates[1:] == [100.0] * 7
    assert len(meter.history) == 4


def test_counter_that_began_anew() -> None:
    """After a restart of the router what is counted has come since; no rate is negative."""
    meter = Meter()
    meter.measure(0.0, 5_000)
    assert meter.measure(1.0, 40) == 40.0


def test_pause_is_no_burst() -> None:
    """What grew while nobody looked is no rate of this moment."""
    meter = Meter()
    meter.measure(0.0, 0)
    meter.measure(1.0, 10)
    meter.pause()
    assert meter.rate == 0.0
    assert meter.measure(60.0, 100_000) == 0.0
    assert meter.measure(61.0, 100_007) == 7.0


def test_told_rates_are_kept_once_a_second() -> None:
    """A rate that the router measured is shown at once and enters the history by the second."""
    meter = Meter()
    for half in range(8):
        meter.set_rate(half / 2, float(half))
    assert meter.rate == 7.0
    assert list(meter.history) == [0.0, 2.0, 4.0, 6.0]


def test_histories_are_bounded() -> None:
    """The oldest rates go."""
    meter = Meter()
    for second in range(1_000):
        meter.measure(float(second), second)
    assert len(meter.history) == TUI_HISTORY


def test_meters_are_bounded_and_forget_the_least_seen() -> None:
    """What is looked at stays."""
    meters = Meters(most=3)
    for key in "abc":
        meters.measure(key, 0.0, 0)
    meters.measure("a", 1.0, 5)
    meters.measure("d", 1.0, 0)
    assert len(meters) == 3
    assert meters.rate("a") == 5.0
    assert meters.history("b") == ()
    assert meters.measure("b", 2.0, 100) == 0.0, "it was forgotten and begins anew"


@pytest.fixture
def queue() -> dict[str, object]:
    """A row of a queue."""
    return {
        "msgVpnName": "v", "queueName": "q", "spooledMsgCount": 10, "ackedMsgCount": 4,
        "movedMsgCount": 0, "deletedMsgCount": 0, "discarded": {}, "refused": {},
    }  # fmt: skip


def test_queue_rates(queue: dict[str, object]) -> None:
    """What comes, what goes by any way, and what is lost."""
    store = RouterState()
    store.note_queue(0.0, queue)
    later = queue | {"spooledMsgCount": 30, "ackedMsgCount": 9, "movedMsgCount": 1,
                     "discarded": {"ttl": 2}, "refused": {"full": 3}}  # fmt: skip
    store.note_queue(1.0, later)
    ways = ("in", "out", "discarded", "refused")
    rates = [store.meters.rate(("queue", "v", "q", what)) for what in ways]
    assert rates == [20.0, 8.0, 2.0, 3.0]


def test_only_a_router_that_said_no_is_not_asked() -> None:
    """While the role is unknown actions are worth a try."""
    store = RouterState()
    assert store.may_change()
    store.note_router({"routerName": "edge", "role": "read-only", "user": "ann"})
    assert (store.name, store.user, store.may_change()) == ("edge", "ann", False)


def end(vpn: str, name: str, remote: tuple[str, str], outbound: str = "") -> dict[str, Any]:
    """A bridge's row, as far as its ends are concerned."""
    return {
        "msgVpnName": vpn,
        "bridgeName": name,
        "remoteRouterName": remote[0],
        "remoteMsgVpnName": remote[1],
        "outboundBridgeName": outbound,
    }


def test_one_way_bridge_is_a_client_there() -> None:
    """Under the name of its client; it is listed once, by the router that has it configured."""
    ours = end("blue", "b", ("core", "yellow"))
    shown = end("yellow", "#bridge/edge/blue/b", ("edge", "blue"))
    assert other_end(ours, "edge", {"edge": [ours], "core": [shown]}) is shown
    assert once([("core", shown), ("edge", ours)]) == [("edge", ours, shown)]


@pytest.mark.parametrize(
    "change",
    [{"remoteMsgVpnName": ""}, {"remoteRouterName": "other"}, {"remoteMsgVpnName": "red"}],
)
def test_no_other_end(change: dict[str, str]) -> None:
    """While it is not connected, or its remote is not among the routers looked at."""
    ours = end("blue", "b", ("core", "yellow"), "c") | change
    theirs = end("yellow", "c", ("edge", "blue"), "b")
    assert other_end(ours, "edge", {"core": [theirs]}) is None
    assert len(once([("edge", ours), ("core", theirs)])) == 2


def test_namesakes_are_told_apart() -> None:
    """A bridge of the same name that leads elsewhere is not the other end."""
    ours = end("blue", "b", ("core", "yellow"), "c")
    elsewhere = end("yellow", "c", ("third", "blue"), "b")
    assert other_end(ours, "edge", {"core": [elsewhere]}) is None
