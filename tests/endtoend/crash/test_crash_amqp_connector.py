"""A connector that sends once-and-only-once over AMQP to another router, while either router and the connection die.

The other router knows deliveries again by their tags. The short form runs always; `VPNROUTER_LONG=1` kills 500 times.
"""

import os
import time
from collections.abc import Callable
from typing import Any, Final

import pytest

LONG: Final = bool(os.environ.get("VPNROUTER_LONG"))
RUNS: Final = 5 if LONG else 1
KILLS: Final = 100 if LONG else 8

ONCE: Final = {"quality_of_service": "once-and-only-once"}
BATCHES: Final = {"transacted": True, "batch": {"max_size": 20, "max_time": 10}}

OUTCOMES: Final = ("delivered", "duplicate", "returned", "deadLetter", "discarded", "inFlight")
"""What the messages of a link come to."""

POINTS: Final[dict[str, tuple[str, int]]] = {
    "publish-accepted": ("there", 60),
    "commit-before-write": ("there", 40),
    "commit-after-sync": ("there", 40),
    "answered": ("there", 40),
    "transaction-half": ("there", 10),
    "deliver-before-flush": ("here", 60),
    "ack-received": ("here", 40),
    "endpoint-settled": ("here", 60),
    "recover-during": ("there", 1),
}
"""Points, the router that dies there and at which passing at the latest."""


@pytest.fixture
def connected(place: Callable[..., Any], network: Any) -> tuple[Any, Any]:
    """Routers here and there, not started: here has the connector, `link` of there is what it dials."""
    link = network.link()
    open_ = {"authentication": {"basic": {"enabled": False}}}
    barrier = {"subscriptions": ["barrier/>"]}
    target = {"target": {"address": "topic://{1}"}}
    links = {
        "out": {"source": {"topic": "out/>"}, "target": {"address": "topic://out/{1}"}, **ONCE},
        "from-queue": {"source": {"queue": "work"}, **target, **ONCE},
        "batches": {"source": {"queue": "many"}, **target, **ONCE, **BATCHES},
    }
    provider = {"url": f"amqp://{link.address}", "connect": {"retry_delay": 0}, "keepalive": 5}
    blue = {
        **open_,
        "queues": {
            "work": {"subscriptions": ["work/>"]},
            "many": {"subscriptions": ["many/>"]},
            "barrier": barrier,
        },
        "connectors": {"there": {"provider": provider, "links": links}},
    }
    arrived = {"subscriptions": ["out/>", "work/>", "many/>"]}
    red = {**open_, "queues": {"arrived": arrived, "barrier": barrier}}

    def listeners(msg_vpn: str, *protocols: str) -> list[dict[str, str]]:
        bind = "127.0.0.1:0"
        of_clients = [{"protocol": each, "bind": bind, "msg_vpn": msg_vpn} for each in protocols]
        return [{"protocol": "http", "bind": bind}, *of_clients]

    here = place("here", {"listeners": listeners("blue", "mqtt"), "msg_vpns": {"blue": blue}})
    red_listeners = listeners("red", "mqtt", "amqp")
    there = place("there", {"listeners": red_listeners, "msg_vpns": {"red": red}})
    there.link, there.through = link, "amqp"
    return here, there


def begin(traffic: Any, here: Any, there: Any) -> None:
    """Start both, with producers here and a consumer there."""
    there.start()
    here.start()
    traffic.take_from(there, "arrived", "far")
    # Each link keeps the order of its own messages.
    for topic in ("out/x", "work/x", "many/x"):
        for qos in (0, 1, 2):
            traffic.produce(here, f"p-{topic}-{qos}", {topic: ("arrived",)}, qos=qos, burst=2)


def end(traffic: Any, here: Any, there: Any, patiently: Any) -> None:
    """Everything heals, drains, and does not come again after one more death of both; counts balance all the time."""
    there.link.heal()
    traffic.stop_producers()
    traffic.drain()
    for each in (here, there):
        each.kill()
        each.start()

    def still() -> bool:
        (row,) = here.router.api().connectors("blue")
        for link in row["links"]:
            known = sum(link[f"{name}MsgCount"] for name in OUTCOMES)
            assert link["msgCount"] == known, link
        waits = sum(here.router.queue("blue", name)["msgCount"] for name in ("work", "many"))
        waits += there.router.queue("red", "arrived")["msgCount"]
        return bool(row["state"] == "up" and not waits + row["waitingMsgCount"])

    patiently(still, "nothing waits for the connector, or behind it")
    traffic.quiet()
    traffic.judge(waiting={})
    assert len(traffic.history.events) > 500


@pytest.mark.slow
@pytest.mark.parametrize("run", range(RUNS))
def test_random_kills_of_either_side(
    traffic: Any, connected: Any, patiently: Any, run: int
) -> None:
    """Whichever side dies, and however the connection breaks, a message crosses exactly once."""
    here, there = connected
    begin(traffic, here, there)
    link = there.link
    for _ in range(KILLS):
        breaks = traffic.draws.choice((link.cut, link.close, link.orphan, link.unreachable))
        traffic.history.noted(f"link: {breaks.__name__}")
        breaks()
        time.sleep(traffic.draws.uniform(0.0, 0.3))
        link.heal()
        time.sleep(traffic.draws.uniform(0.1, 0.6))
        dying = traffic.draws.choice((here, there))
        dying.kill()
        traffic.history.noted(f"{dying.name} is killed")
        dying.start()
    end(traffic, here, there, patiently)


@pytest.mark.slow
def test_kills_at_each_point_of_the_way(traffic: Any, connected: Any, patiently: Any) -> None:
    """Killed between any two steps of a message's way, nothing is lost and nothing comes twice."""
    here, there = connected
    begin(traffic, here, there)
    places = {"here": here, "there": there}
    for point, (name, most) in POINTS.items():
        dying = places[name]
        dying.kill()
        traffic.live(dying, point, traffic.draws.randint(1, most))
        dying.start()
    end(traffic, here, there, patiently)
