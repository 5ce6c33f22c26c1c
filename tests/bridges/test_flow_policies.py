"""Park and skip: what becomes of guaranteed messages that the receiver's VPN refuses, and of those behind them."""

import importlib.util
from pathlib import Path
from typing import Any

from vpnrouter.wire.link import frames

SPEC = importlib.util.spec_from_file_location("flow_pair", Path(__file__).parent / "flow_pair.py")
assert SPEC is not None
assert SPEC.loader is not None
flow_pair: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(flow_pair)

PARK, SKIP = 1, 2


def linked(**more: Any) -> Any:
    """A pair whose flow stands."""
    pair = flow_pair.FlowPair(**more)
    pair.connect()
    pair.settle()
    return pair


def test_park_sets_a_lane_aside_and_lets_the_others_pass() -> None:
    """In the lot's spool, acknowledged as parked; from there, in order, when the lane is free again."""
    pair = linked(on_reject=PARK, queues={"in": "t/a", "other": "t/b"}, window=2)
    pair.core.open("in", False)
    for topic in ("t/a", "t/b", "t/a", "t/b", "t/a"):
        pair.publish(topic)
    pair.settle()
    assert pair.received("other") == [2, 4]
    assert pair.received("lot") == [1, 3, 5]
    assert pair.edge.contents("out") == []
    assert pair.flow.outcomes == {frames.PARKED: 3}
    assert ("stalled", "503 Queue Shutdown") not in pair.here.told
    pair.kill(pair.core, synced=True)
    pair.core.open("in", True)
    pair.connect()
    pair.publish("t/a")
    for _ in range(3):
        pair.core.wait(1.1)
        pair.settle()
    assert pair.received("in") == [1, 3, 5, 6]
    assert pair.received("lot") == []


def test_nothing_enters_before_the_lot_is_known() -> None:
    """After a restart BIND waits until what was parked has come to light: it may hold lanes up."""
    pair = linked(on_reject=PARK)
    pair.core.open("in", False)
    pair.publish()
    pair.settle()
    pair.kill(pair.core, synced=True)
    lot = pair.core.ends["lot"]
    lot.settings.egress_enabled = False
    pair.core.open("in", True)
    pair.publish()
    pair.connect()
    pair.core.wait(1.1)
    pair.settle()
    assert pair.here.said == []
    lot.settings.egress_enabled = True
    lot.wake()
    for _ in range(3):
        pair.core.wait(1.1)
        pair.settle()
    assert pair.received("in") == [1, 2]


def test_a_full_lot_blocks() -> None:
    """Park without room holds the flow up, as block does."""
    pair = linked(on_reject=PARK, queues={"in": "t/a", "other": "t/b"}, window=10)
    pair.core.ends["lot"].settings.max_spooled_msg_count = 1
    pair.core.open("in", False)
    for topic in ("t/a", "t/a", "t/b"):
        pair.publish(topic)
    pair.settle()
    assert pair.received("lot") == [1]
    assert pair.received("other") == []
    pair.core.open("in", True)
    pair.core.wait(1.1)
    pair.settle()
    assert (pair.received("in"), pair.received("other")) == ([1, 2], [3])


def test_skip_gives_back_for_good() -> None:
    """The refused message goes to the dead message queue of the remote queue, the rest goes on."""
    pair = linked(on_reject=SKIP, queues={"in": "t/a", "other": "t/b"})
    pair.core.open("in", False)
    for topic in ("t/a", "t/b"):
        pair.publish(topic)
    pair.settle()
    assert pair.received("other") == [2]
    assert pair.edge.contents("out") == []
    assert pair.edge.ends["out"].counters.discarded.counts == {"rejected": 1}
    assert pair.flow.rejected == 1


def test_skip_holds_what_a_broken_spool_refuses() -> None:
    """A store that takes nothing is no reason to throw messages away."""
    pair = linked(on_reject=SKIP)
    pair.core.spool.down = "503 Service Unavailable"
    pair.publish()
    pair.edge.sync()
    pair.to_core()
    assert pair.taker.lanes.held
    pair.core.spool.down = ""
    pair.core.wait(1.1)
    pair.settle()
    assert pair.received() == [1]
