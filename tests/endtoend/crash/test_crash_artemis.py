"""A connector to Artemis with quality of service once-and-only-once: either side is killed, and the connection breaks.

Artemis is killed outright: what it had acknowledged is in its journal, and what it was told is settled a moment before
may not be. `VPNROUTER_LONG=1` kills 500 times.
"""

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from vpnrouter.testing.amqp_clients import AmqpClient, AmqpConsumer, AmqpProducer
from vpnrouter.testing.modules import load_module

pytestmark = [pytest.mark.slow, pytest.mark.peers]

LONG: Final = bool(os.environ.get("VPNROUTER_LONG"))
RUNS: Final = 5 if LONG else 1
KILLS: Final = 100 if LONG else 6

ONCE: Final = {"quality_of_service": "once-and-only-once"}
BATCHES: Final = {"transacted": True, "batch": {"max_size": 10, "max_time": 20}}


class Artemis:
    """The broker, and where clients find it."""

    def __init__(self, providers: Any, broker: Any, port: int) -> None:
        self.providers = providers
        self._broker = broker
        self.address = port
        self._there = True

    def port(self) -> int | None:
        """Where it is at the moment."""
        return self.address if self._there else None

    def restart(self) -> None:
        """Kill it, and begin another life."""
        self._there = False
        self._broker.kill()
        self._broker.start()
        self._there = True


@pytest.fixture
def artemis(tmp_path: Path, free_port: Callable[[], int]) -> Iterator[Artemis]:
    """A broker that runs; the test is skipped where it is not installed."""
    folder = Path(__file__).parents[1] / "connectors" / "providers.py"
    providers: Any = load_module("connector_providers", folder)
    if why := providers.missing("artemis"):
        pytest.skip(why)
    port = free_port()
    with providers.providing("artemis", port, tmp_path) as broker:
        yield Artemis(providers, broker, port)


def document(address: str) -> dict[str, Any]:
    """A router with a connector to the broker, in and out, of a topic and of queues, in transactions too."""
    links = {
        "in": {
            "source": {"address": "queue://to-here"},
            "target": {"queue": "arrived"},
            **ONCE,
        },
        "out": {"source": {"topic": "out/>"}, "target": {"address": "queue://far"}, **ONCE},
        "from-queue": {"source": {"queue": "work"}, "target": {"address": "queue://far"}, **ONCE},
        "batches": {
            "source": {"queue": "many"},
            "target": {"address": "queue://far"},
            **ONCE,
            **BATCHES,
        },
    }
    provider = {"url": f"amqp://{address}", "connect": {"retry_delay": 0}, "keepalive": 5}
    blue = {
        "authentication": {"basic": {"enabled": False}},
        "queues": {
            "arrived": {},
            "work": {"subscriptions": ["work/>"]},
            "many": {"subscriptions": ["many/>"]},
            "barrier": {"subscriptions": ["barrier/>"]},
        },
        "connectors": {"there": {"provider": provider, "links": links}},
    }
    listeners = [
        {"protocol": "http", "bind": "127.0.0.1:0"},
        {"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": "blue"},
    ]
    return {"listeners": listeners, "msg_vpns": {"blue": blue}}


@pytest.mark.parametrize("run", range(RUNS))
def test_kills_on_both_sides(
    traffic: Any, place: Any, artemis: Artemis, network: Any, patiently: Any, run: int
) -> None:
    """A message crosses exactly once, in either direction, whichever side is killed."""
    link = network.link()
    link.target = ("127.0.0.1", artemis.address)
    here = place("here", document(link.address))
    here.start()
    patiently(lambda: here.router.api().connectors("blue")[0]["state"] == "up", "it is up")
    history, draws = traffic.history, traffic.draws

    def talking(session: Any) -> AmqpClient:
        return AmqpClient(session, artemis.port, history, random.Random(draws.getrandbits(32)))

    with ExitStack() as stack:
        traffic.take_from(here, "arrived", "reader")
        inward = AmqpProducer("p-in", history, "to-here", "arrived", named=True)
        stack.enter_context(talking(inward))
        for topic in ("out/x", "work/x", "many/x"):
            for qos in (0, 1, 2):
                # What has left is read when the last kill is over: no more than a small Artemis holds.
                options = {"qos": qos, "burst": 1, "window": 2}
                traffic.produce(here, f"p-{topic}-{qos}", {topic: ("far",)}, **options)
        for _ in range(KILLS):
            time.sleep(draws.uniform(0.1, 0.5))
            broken = draws.random()
            if broken < 0.4:
                artemis.restart()
                history.noted("Artemis is killed")
            elif broken < 0.6:
                breaks = draws.choice((link.cut, link.close, link.orphan, link.unreachable))
                history.noted(f"link: {breaks.__name__}")
                breaks()
                time.sleep(draws.uniform(0.0, 0.3))
                link.heal()
            else:
                here.kill()
                history.noted("here is killed")
                here.start()
        inward.stopping = True
        patiently(lambda: inward.done, "all is answered")
        traffic.stop_producers()

        def waiting() -> tuple[str, int]:
            (row,) = here.router.api().connectors("blue")
            waits = sum(here.router.queue("blue", name)["msgCount"] for name in ("work", "many"))
            return row["state"], waits + row["waitingMsgCount"]

        artemis.providers.settled(waiting, still_s=20.0 if LONG else 1.0, within_s=900.0)
        patiently(lambda: waiting() == ("up", 0), "nothing waits for the connector")
        far = AmqpConsumer("far", history, "far", "far")
        stack.enter_context(talking(far))
        patiently(lambda: far.ready, "the queue at the provider is read")
        traffic.drain()
        artemis.providers.settled(lambda: len(far.delivered))
        traffic.quiet()
    # What Artemis has for a connection that it does not know to be gone comes later than what is behind it.
    traffic.judge(waiting={}, unordered=frozenset({"arrived"}))
    assert len(history.events) > 500
