"""A guaranteed bridge whose two routers are killed and whose link is cut (ONCE, HOLD).

The short form runs always; `VPNROUTER_LONG=1` kills 200 times here.
"""

import os
import time
from typing import Any, Final

import pytest

LONG: Final = bool(os.environ.get("VPNROUTER_LONG"))
RUNS: Final = 2 if LONG else 1
KILLS: Final = 100 if LONG else 5

BOTH: Final = ("orders", "twice")
"""The queue and the durable session at core."""

POINTS: Final[dict[str, tuple[str, int]]] = {
    "bridge-received": ("core", 100),
    "bridge-ack-before-send": ("core", 20),
    "bridge-forget-before-send": ("edge", 20),
    "commit-before-write": ("core", 50),
    "commit-after-sync": ("core", 50),
    "answered": ("core", 50),
    "segment-deleted": ("edge", 20),
    "recover-during": ("edge", 1),
}
"""Points, the router that dies there and at which passing at the latest."""


def begin(traffic: Any, edge: Any, core: Any) -> None:
    """Producers at edge, consumers at core."""
    traffic.read(core)
    for qos in (1, 2):
        topics = dict.fromkeys((f"orders/{qos}/x", f"orders/{qos}/y"), BOTH)
        traffic.produce(edge, f"p{qos}", topics, qos=qos, burst=2)


def end(traffic: Any, edge: Any, core: Any) -> None:
    """Everything heals, drains, and does not come again after one more death of both."""
    edge.link.heal()
    traffic.stop_producers()
    traffic.drain()
    edge.router.holds("blue", "to-core", 0)
    for each in (edge, core):
        each.kill()
        each.start()
    core.router.bridge("from-blue", inboundState="ready-in-sync")
    traffic.quiet()
    left = {"orders": core.router.queue("yellow", "orders")["msgCount"]}
    traffic.judge(waiting=left)
    assert left == {"orders": 0}
    edge.router.holds("blue", "to-core", 0)


def started(bridged: tuple[Any, Any], traffic: Any) -> tuple[Any, Any]:
    """Both routers with traffic over the bridge."""
    edge, core = bridged
    edge.start()
    core.start()
    begin(traffic, edge, core)
    return edge, core


@pytest.mark.slow
@pytest.mark.parametrize("run", range(RUNS))
def test_random_kills_of_either_side(traffic: Any, bridged: Any, run: int) -> None:
    """Whichever side dies, and however the link breaks, a message comes over exactly once."""
    edge, core = started(bridged, traffic)
    link = edge.link
    for _ in range(KILLS):
        breaks = traffic.draws.choice((link.cut, link.close, link.orphan, link.unreachable))
        traffic.history.noted(f"link: {breaks.__name__}")
        breaks()
        time.sleep(traffic.draws.uniform(0.0, 0.3))
        link.heal()
        time.sleep(traffic.draws.uniform(0.0, 0.3))
        victim = traffic.draws.choice((edge, core))
        victim.kill()
        traffic.history.noted(f"{victim.name} is killed")
        victim.start()
    end(traffic, edge, core)
    assert len(traffic.history.events) > 1000


@pytest.mark.slow
def test_kills_at_each_point_of_the_way(traffic: Any, bridged: Any) -> None:
    """Killed between any two steps of a message's way over the bridge, nothing is lost and nothing comes twice."""
    edge, core = started(bridged, traffic)
    places = {"edge": edge, "core": core}
    for point, (name, most) in POINTS.items():
        victim = places[name]
        victim.kill()
        traffic.live(victim, point, traffic.draws.randint(1, most))
        victim.start()
    end(traffic, edge, core)
