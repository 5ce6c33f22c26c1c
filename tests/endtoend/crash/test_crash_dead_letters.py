"""Routers that die while a bridge or a connector gives messages up: each is a dead letter once, and none is lost."""

from collections.abc import Callable
from typing import Any, Final

import pytest

POINTS: Final = {
    "dead-letter-placed": 10,
    "endpoint-settled": 20,
    "commit-before-write": 20,
    "commit-after-sync": 20,
    "answered": 20,
}
"""Points at which the router dies that gives messages up, and at which passing at the latest."""

OPEN: Final = {"authentication": {"basic": {"enabled": False}}}
ABSENT: Final = {"queue": "absent", "attempts": 2, "interval": 10}
BURIED: Final = {"queue": "buried"}


def lives(traffic: Any, victim: Any) -> None:
    """Let a router die at each point."""
    for point, most in POINTS.items():
        victim.kill()
        traffic.live(victim, point, traffic.draws.randint(1, most))
        victim.start()


def end(traffic: Any, *places: Any) -> None:
    """Everything drains, and does not come again after one more death."""
    traffic.stop_producers()
    traffic.drain()
    for each in places:
        each.kill()
        each.start()
    traffic.quiet()
    traffic.judge(waiting={})
    assert len(traffic.history.events) > 300


@pytest.mark.slow
def test_dead_letters_of_a_bridge(traffic: Any, bridged: Any, place: Callable[..., Any]) -> None:
    """What the message VPN refuses is in the dead message queue once; what is behind it enters once."""
    edge, core = bridged
    document = core.document
    yellow = document["msg_vpns"]["yellow"]
    yellow["queues"] |= {
        "refuses": {
            "subscriptions": ["orders/dead/>"],
            "ingress_enabled": False,
            "reject_msg_to_sender_on_discard_behavior": "always",
        },
        "buried": {},
    }
    yellow["bridges"]["from-blue"] |= {
        "reject_attempts": 1,
        "dead_msg_queues": [ABSENT, BURIED],
    }
    core = place("core", document)
    edge.start()
    core.start()
    traffic.read(core)
    traffic.take_from(core, "buried", "buried")
    traffic.produce(edge, "p", {"orders/1/x": ("orders", "twice")}, qos=1, burst=2)
    traffic.produce(edge, "dead", {"orders/dead/x": ("buried",)}, qos=1, burst=2)
    lives(traffic, core)
    end(traffic, edge, core)


@pytest.mark.slow
def test_dead_letters_of_a_link(traffic: Any, place: Callable[..., Any], network: Any) -> None:
    """What the provider refuses is in the dead message queue once; what is behind it crosses once."""
    link = network.link()
    bind = "127.0.0.1:0"
    barrier = {"subscriptions": ["barrier/>"]}

    def document(msg_vpn: str, configured: dict[str, Any]) -> dict[str, Any]:
        listeners = [
            {"protocol": "http", "bind": bind},
            {"protocol": "mqtt", "bind": bind, "msg_vpn": msg_vpn},
        ]
        return {"listeners": listeners, "msg_vpns": {msg_vpn: {**OPEN, **configured}}}

    provider = {"url": f"mqtt://{link.address}", "connect": {"retry_delay": 0}, "keepalive": 5}
    out = {
        "source": {"topic": "out/>"},
        "quality_of_service": "once-and-only-once",
        "reject_attempts": 1,
        "dead_msg_queues": [ABSENT, BURIED],
    }
    here = place(
        "here",
        document(
            "blue",
            {
                "queues": {"buried": {}, "barrier": barrier},
                "connectors": {"there": {"provider": provider, "links": {"out": out}}},
            },
        ),
    )
    denied = {"default_action": "allow", "exceptions": ["out/bad/>"]}
    there = place(
        "there",
        document(
            "red",
            {
                "acl_profiles": {"default": {"publish_topic": denied}},
                "queues": {"arrived": {"subscriptions": ["out/>"]}, "barrier": barrier},
            },
        ),
    )
    there.link, there.through = link, "mqtt"
    there.start()
    here.start()
    traffic.take_from(there, "arrived", "arrived")
    traffic.take_from(here, "buried", "buried")
    traffic.produce(here, "good", {"out/good/x": ("arrived",)}, qos=1, burst=2)
    traffic.produce(here, "bad", {"out/bad/x": ("buried",)}, qos=1, burst=2)
    lives(traffic, here)
    end(traffic, here, there)
    (row,) = here.router.api().connectors("blue")
    for each in row["links"]:
        kinds = ("delivered", "duplicate", "returned", "deadLetter", "discarded", "inFlight")
        assert each["msgCount"] == sum(each[f"{kind}MsgCount"] for kind in kinds), each
