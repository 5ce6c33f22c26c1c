"""A connector with quality of service once-and-only-once, whose router, provider and connection die again and again.

The provider is another router, seen as an MQTT broker. It keeps packet identifiers of QoS 2 over a kill, and not those
of QoS 1: what was published there at QoS 1 can be known again only where the provider itself is not killed.

The short form runs always; `VPNROUTER_LONG=1` kills 500 times.
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

OUTCOMES: Final = ("delivered", "duplicate", "returned", "deadLetter", "discarded", "inFlight")
"""What the messages of a link come to."""

POINTS: Final[dict[str, tuple[str, int]]] = {
    "publish-accepted": ("here", 100),
    "pubrel-received": ("here", 50),
    "pubrec-received": ("here", 50),
    "pubcomp-received": ("here", 50),
    "deliver-before-flush": ("here", 50),
    "commit-before-write": ("here", 50),
    "commit-after-sync": ("here", 50),
    "answered": ("here", 50),
    "recover-during": ("here", 1),
    "session-saved": ("there", 1),
}
"""Points, the router that dies there and at which passing at the latest."""


@pytest.fixture
def connected(place: Callable[..., Any], network: Any) -> tuple[Any, Any]:
    """Routers here and there, not started: here has the connector, `link` of there is what it dials."""
    link = network.link()
    open_ = {"authentication": {"basic": {"enabled": False}}}
    barrier = {"subscriptions": ["barrier/>"]}
    links = {
        "in": {"source": {"address": "orders/#"}, **ONCE},
        "direct-in": {"source": {"address": "direct/#"}, **ONCE},
        "out": {"source": {"topic": "out/>"}, **ONCE},
        "from-queue": {"source": {"queue": "work"}, **ONCE},
    }
    provider = {"url": f"mqtt://{link.address}", "connect": {"retry_delay": 0}, "keepalive": 5}
    blue = {
        **open_,
        "queues": {
            "orders": {"subscriptions": ["orders/>"]},
            "direct": {"subscriptions": ["direct/>"]},
            "work": {"subscriptions": ["work/>"]},
            "barrier": barrier,
        },
        "connectors": {"there": {"provider": provider, "links": links}},
    }
    red = {
        **open_,
        "queues": {"arrived": {"subscriptions": ["out/>", "work/>"]}, "barrier": barrier},
    }
    bind = "127.0.0.1:0"

    def listeners(msg_vpn: str) -> list[dict[str, str]]:
        return [
            {"protocol": "http", "bind": bind},
            {"protocol": "mqtt", "bind": bind, "msg_vpn": msg_vpn},
        ]

    here = place("here", {"listeners": listeners("blue"), "msg_vpns": {"blue": blue}})
    there = place("there", {"listeners": listeners("red"), "msg_vpns": {"red": red}})
    there.link, there.through = link, "mqtt"
    return here, there


def begin(traffic: Any, here: Any, there: Any, inward_qos: tuple[int, ...]) -> None:
    """Start both; producers and consumers at each of them. What comes in is published at `inward_qos`, and at QoS 0."""
    there.start()
    here.start()
    traffic.read(here)
    traffic.take_from(there, "arrived", "far")
    inward = dict.fromkeys(("orders/x", "orders/y"), ("orders", "twice"))
    for qos in inward_qos:
        traffic.produce(there, f"p-in-{qos}", inward, qos=qos, burst=2)
    # What is published at QoS 0 may be lost, but for one of two queues no more than for the other.
    traffic.take_from(here, "direct", "direct")
    traffic.produce(there, "p-in-0", {"direct/x": ("direct",)}, qos=0, burst=1)
    # Each link keeps the order of its own messages.
    for topic in ("out/x", "work/x"):
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
        waits = here.router.queue("blue", "work")["msgCount"] + row["waitingMsgCount"]
        return bool(row["state"] == "up" and not waits)

    patiently(still, "nothing waits for the connector")
    traffic.quiet()
    traffic.judge(waiting={})
    assert len(traffic.history.events) > 1000


EITHER: Final = {"either": (2,), "here": (1, 2)}
"""Who is killed, and the QoS of what is published at the provider."""


@pytest.mark.slow
@pytest.mark.parametrize("run", range(RUNS))
@pytest.mark.parametrize("dies", EITHER)
def test_random_kills_of_either_side(
    traffic: Any, connected: Any, patiently: Any, dies: str, run: int
) -> None:
    """Whichever side dies, and however the connection breaks, a message crosses exactly once."""
    here, there = connected
    begin(traffic, here, there, EITHER[dies])
    link = there.link
    for _ in range(KILLS):
        breaks = traffic.draws.choice((link.cut, link.close, link.orphan, link.unreachable))
        traffic.history.noted(f"link: {breaks.__name__}")
        breaks()
        time.sleep(traffic.draws.uniform(0.0, 0.3))
        link.heal()
        time.sleep(traffic.draws.uniform(0.0, 0.5))
        victim = here if dies == "here" else traffic.draws.choice((here, there))
        victim.kill()
        traffic.history.noted(f"{victim.name} is killed")
        victim.start()
    end(traffic, here, there, patiently)


@pytest.mark.slow
@pytest.mark.parametrize("dies", EITHER)
def test_kills_at_each_point_of_the_way(
    traffic: Any, connected: Any, patiently: Any, dies: str
) -> None:
    """Killed between any two steps of a message's way, nothing is lost and nothing comes twice."""
    here, there = connected
    begin(traffic, here, there, EITHER[dies])
    places = {"here": here, "there": there}
    for point, (name, most) in POINTS.items():
        if dies == "here" and name != dies:
            continue
        victim = places[name]
        victim.kill()
        traffic.live(victim, point, traffic.draws.randint(1, most))
        victim.start()
    end(traffic, here, there, patiently)
