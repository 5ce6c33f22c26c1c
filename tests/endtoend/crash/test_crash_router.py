"""One router, killed at every named point and at random moments, and what clients saw of it (COMMIT, ALLORNONE).

The short form runs always; `VPNROUTER_LONG=1` kills 300 times here.
"""

import os
from typing import Any, Final

import pytest

LONG: Final = bool(os.environ.get("VPNROUTER_LONG"))
RUNS: Final = 3 if LONG else 1
KILLS: Final = 100 if LONG else 10

ALL: Final = ("orders", "once", "twice")
"""The queue and the two durable sessions that read orders/#."""

POINTS: Final[dict[str, int]] = {
    "publish-accepted": 100,
    "commit-before-write": 50,
    "commit-after-sync": 50,
    "answered": 50,
    "deliver-before-flush": 200,
    "ack-received": 100,
    "endpoint-settled": 100,
    "segment-deleted": 20,
    "pubrec-received": 50,
    "pubrel-received": 50,
    "pubcomp-received": 50,
    "session-saved": 1,
    "recover-during": 1,
}
"""Points of a router without bridges, and the passing at which it dies at the latest."""


def begin(traffic: Any, alone: Any) -> None:
    """Three endpoints, two producers."""
    chance = 0.005
    traffic.read(alone, chance)
    traffic.subscribe(alone, "once", 1, chance)
    for qos in (1, 2):
        topics = dict.fromkeys((f"orders/{qos}/x", f"orders/{qos}/y"), ALL)
        traffic.produce(alone, f"p{qos}", topics, qos=qos, burst=2, cut_chance=chance)


def end(traffic: Any, alone: Any) -> None:
    """A last life without faults and one after it, in which nothing may come any more."""
    alone.start()
    traffic.stop_producers()
    traffic.drain()
    alone.kill()
    alone.start()
    traffic.quiet()
    row = alone.router.queue("blue", "orders")
    assert row["imbalance"] == 0, row
    traffic.judge(waiting={"orders": row["msgCount"]})
    assert row["msgCount"] == 0, row


def first_life(traffic: Any, alone: Any) -> None:
    """Sessions are made while nothing happens; then the kills begin."""
    alone.start()
    begin(traffic, alone)
    alone.kill()


@pytest.mark.slow
@pytest.mark.parametrize("run", range(RUNS))
def test_random_kills(traffic: Any, alone: Any, run: int) -> None:
    """Killed at any moment, a router loses nothing, doubles nothing without saying so and keeps the order."""
    first_life(traffic, alone)
    for _ in range(KILLS):
        traffic.live(alone)
    end(traffic, alone)
    assert len(traffic.history.events) > 1000


@pytest.mark.slow
def test_kills_at_each_point(traffic: Any, alone: Any) -> None:
    """Killed between any two steps of a message's way, a router keeps the same promises."""
    first_life(traffic, alone)
    for point, most in POINTS.items():
        if point == "session-saved":
            options = {"endpoint": "late", "topic_filter": "late/#", "wait": False}
            traffic.consume(alone, "late", **options)
        traffic.live(alone, point, traffic.draws.randint(1, most))
    end(traffic, alone)
