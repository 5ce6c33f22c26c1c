"""What a look at held publishers costs, in calls. Compiled code tells no profiler of its calls: the pure files only."""

import sys
from types import FrameType

from vpnrouter import limits
from vpnrouter.core.backpressure import Backpressure
from vpnrouter.core.outbox import Outbox
from vpnrouter.testing.memory import MemoryRouter


def test_looking_at_held_publishers_costs_little() -> None:
    """Whether a publisher waits for ten receivers or a thousand, a round asks the same."""
    asked = [calls_of_a_round(receivers) for receivers in (10, 1_000)]
    assert asked[0] == asked[1] < 20


def calls_of_a_round(receivers: int) -> int:
    """Functions called to look whether a publisher is still to wait for receivers that do not read."""
    backpressure = Backpressure()
    backpressure.active = True
    world = MemoryRouter()
    for _ in range(receivers):
        outbox = Outbox([], 100_000, backpressure.outboxes())
        outbox.offer(bytes(100_000), 1)
    assert len(backpressure.crowded) == receivers
    publisher = world.connect("p").connection
    backpressure.hold(publisher, 1_000)
    assert publisher.held
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        assert backpressure.next_ns() == 1_000 + limits.PUBLISHER_HELD_NS
        backpressure.step(1_001)
    finally:
        sys.setprofile(None)
    assert publisher.held
    backpressure.step(1_000 + limits.PUBLISHER_HELD_NS)
    assert not publisher.held
    return calls
