"""A connector to mosquitto with quality of service once-and-only-once: the router is killed, the connection breaks, the
broker restarts. Messages are published at each QoS.

mosquitto keeps its sessions on disk when it stops, and nothing of what it had acknowledged when it is killed: so it is
stopped here. `VPNROUTER_LONG=1` kills 500 times.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

LONG: Final = bool(os.environ.get("VPNROUTER_LONG"))
RUNS: Final = 5 if LONG else 1
KILLS: Final = 100 if LONG else 6

ONCE: Final = {"quality_of_service": "once-and-only-once"}


class Mosquitto:
    """A mosquitto broker that stops and comes again on the same port and folder, as clients see a router."""

    name = "mosquitto"

    def __init__(self, program: str, folder: Path, port: int) -> None:
        self._command = [program, "-c", str(folder / "mosquitto.conf")]
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None
        lines = (
            f"listener {port} 127.0.0.1",
            "allow_anonymous true",
            "persistence true",
            f"persistence_location {folder}/",
            # What waits for a client, and what is on its way, is bounded otherwise.
            "max_queued_messages 0",
            "max_inflight_messages 1000",
            "user root",
        )
        (folder / "mosquitto.conf").write_text("\n".join(lines), encoding="utf-8")

    def port(self) -> int | None:
        """Where clients find it at the moment."""
        return None if self._process is None else self._port

    def start(self) -> None:
        """Begin a life."""
        self._process = subprocess.Popen(self._command, stderr=subprocess.DEVNULL)

    def stop(self) -> None:
        """End it, so that it keeps what it has."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(20)
            self._process = None


@pytest.fixture
def mosquitto(tmp_path: Path, free_port: Callable[[], int]) -> Iterator[Mosquitto]:
    """A broker that runs; the test is skipped where it is not installed."""
    program = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
    if not Path(program).exists():
        pytest.skip("mosquitto is not installed: apt-get install mosquitto")
    folder = tmp_path / "mosquitto"
    folder.mkdir()
    broker = Mosquitto(program, folder, free_port())
    broker.start()
    yield broker
    broker.stop()


def document(address: str, version: str) -> dict[str, Any]:
    """A router with a connector to the broker, in and out, of a topic and of a queue."""
    links = {
        "in": {"source": {"address": "orders/#"}, **ONCE},
        "direct-in": {"source": {"address": "direct/#"}, **ONCE},
        "out": {"source": {"topic": "out/>"}, "target": {"address": "far/{1}"}, **ONCE},
        "from-queue": {"source": {"queue": "work"}, "target": {"address": "far/{1}"}, **ONCE},
    }
    provider = {
        "url": f"mqtt://{address}",
        "mqtt_version": version,
        "connect": {"retry_delay": 0},
        "keepalive": 5,
    }
    blue = {
        "authentication": {"basic": {"enabled": False}},
        "queues": {
            "orders": {"subscriptions": ["orders/>"]},
            "direct": {"subscriptions": ["direct/>"]},
            "work": {"subscriptions": ["work/>"]},
            "barrier": {"subscriptions": ["barrier/>"]},
        },
        "connectors": {"there": {"provider": provider, "links": links}},
    }
    listeners = [
        {"protocol": "http", "bind": "127.0.0.1:0"},
        {"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": "blue"},
    ]
    return {"listeners": listeners, "msg_vpns": {"blue": blue}}


@pytest.mark.slow
@pytest.mark.parametrize("version", ["5", "3.1.1"])
@pytest.mark.parametrize("run", range(RUNS))
def test_kills_beside_mosquitto(
    traffic: Any,
    place: Any,
    mosquitto: Mosquitto,
    network: Any,
    patiently: Any,
    run: int,
    version: str,
) -> None:
    """A message crosses exactly once, in either direction, whichever side goes away."""
    port = mosquitto.port()
    assert port is not None
    link = network.link()
    link.target = ("127.0.0.1", port)
    here = place("here", document(link.address, version))
    here.start()
    patiently(lambda: here.router.api().connectors("blue")[0]["state"] == "up", "it is up")
    traffic.read(here)
    traffic.consume(
        mosquitto, "far", endpoint="far", topic_filter="far/#", qos=2, barrier="barrier/far"
    )
    inward = dict.fromkeys(("orders/x", "orders/y"), ("orders", "twice"))
    traffic.take_from(here, "direct", "direct")
    traffic.produce(mosquitto, "p-in-0", {"direct/x": ("direct",)}, qos=0, burst=1)
    for qos in (1, 2):
        traffic.produce(mosquitto, f"p-in-{qos}", inward, qos=qos, burst=2)
    for topic in ("out/x", "work/x"):
        for qos in (0, 1, 2):
            traffic.produce(here, f"p-{topic}-{qos}", {topic: ("far",)}, qos=qos, burst=2)
    for _ in range(KILLS):
        time.sleep(traffic.draws.uniform(0.1, 0.5))
        broken = traffic.draws.random()
        if broken < 0.2:
            mosquitto.stop()
            traffic.history.noted("mosquitto stops")
            mosquitto.start()
        elif broken < 0.6:
            breaks = traffic.draws.choice((link.cut, link.close, link.orphan, link.unreachable))
            traffic.history.noted(f"link: {breaks.__name__}")
            breaks()
            time.sleep(traffic.draws.uniform(0.0, 0.3))
            link.heal()
        else:
            here.kill()
            traffic.history.noted("here is killed")
            here.start()
    traffic.stop_producers()
    traffic.drain()

    def still() -> bool:
        (row,) = here.router.api().connectors("blue")
        waits = here.router.queue("blue", "work")["msgCount"] + row["waitingMsgCount"]
        return bool(row["state"] == "up" and not waits)

    patiently(still, "nothing waits for the connector")
    traffic.quiet()
    traffic.judge(waiting={})
    assert len(traffic.history.events) > 500
