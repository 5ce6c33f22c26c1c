import importlib.util
from pathlib import Path
from typing import Any

from vpnrouter.core.discard_reasons import TOPIC_PARSE_ERROR
from vpnrouter.core.vpn import VpnLimits

SPEC = importlib.util.spec_from_file_location("flow_pair", Path(__file__).parent / "flow_pair.py")
assert SPEC is not None
assert SPEC.loader is not None
flow_pair: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(flow_pair)


def parked(count: int) -> Any:
    """A bridge with messages in its lot."""
    pair = flow_pair.FlowPair(on_reject=1)
    pair.core.open("in", False)
    pair.connect()
    for _ in range(count):
        pair.publish(retain=True)
    pair.settle()
    return pair


def test_the_lot_holds_what_is_parked_in_order() -> None:
    """All of it is known, and nothing leaves before it can."""
    pair = parked(3)
    lot = pair.taker.lot
    assert lot.ready
    assert [lot.unacked[n].payload for n in lot.ids.values()] == [b"1", b"2", b"3"]
    first = next(iter(lot.ids))
    assert not lot.leave(first)
    assert not lot.leave(12345)


def test_leaving_is_one_commit() -> None:
    """The message is in the lot or in its queue, whatever breaks, and it is what it was."""
    pair = parked(1)
    pair.core.open("in", True)
    pair.taker.retry()
    pair.core.seal()
    pair.kill(pair.core, synced=False)
    pair.core.sync()
    assert (pair.received("lot"), pair.received("in")) == ([1], [])
    pair.core.sync()
    pair.core.open("in", True)
    pair.taker.retry()
    pair.core.seal()
    pair.kill(pair.core, synced=True)
    pair.core.sync()
    assert (pair.received("lot"), pair.received("in")) == ([], [1])


def test_what_an_operator_took_away_holds_nothing_up() -> None:
    """A number whose message is gone leaves at once."""
    pair = parked(2)
    lot = pair.taker.lot
    first = next(iter(lot.ids.values()))
    del lot.unacked[first]
    pair.core.open("in", True)
    pair.taker.retry()
    pair.settle()
    assert pair.received("in") == [2]
    assert not pair.taker.lanes.waiting


def test_what_is_too_long_by_now_holds_nothing_up() -> None:
    """A parked message whose topic has too many levels since a bound was lowered leaves the lot, counted."""
    pair = parked(2)
    vpn = pair.taker.vpn
    vpn.take_bounds(VpnLimits(max_topic_levels=1))
    pair.core.open("in", True)
    pair.taker.retry()
    pair.settle()
    assert (pair.received("lot"), pair.received("in")) == ([], [])
    assert not pair.taker.lanes.waiting
    assert vpn.discards.counts[TOPIC_PARSE_ERROR] == 2
