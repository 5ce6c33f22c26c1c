"""A queue that is full for a minute holds one link up, and nothing else: what leaves and other links go on."""

import time
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from vpnrouter.testing.modules import load_module

pytestmark = [pytest.mark.slow, pytest.mark.peers]

FULL_S: Final = 60
LARGE: Final = bytes(100_000)
PROMPTLY_S: Final = 1.0


@pytest.fixture(scope="session")
def providers() -> ModuleType:
    """The module providers.py."""
    return load_module("connector_providers", Path(__file__).parent / "providers.py")


class Echo:
    """Messages from one client to another, one after the other; how long each took, in seconds."""

    def __init__(self, source: Any, topic: str, sink: Any) -> None:
        self._source = source
        self._topic = topic
        self._sink = sink
        self.sent = 0

    def one(self) -> float:
        """Publish one, and wait until it, and nothing else, is there."""
        self.sent += 1
        payload = b"%d" % self.sent
        begin = time.monotonic()
        self._source.client.publish(self._topic, payload, qos=1)
        assert self._sink.next() == (self._topic, payload)
        return time.monotonic() - begin


@pytest.mark.parametrize("version", ["5", "3.1.1"])
@pytest.mark.parametrize("quality", ["duplicates-ok", "once-and-only-once"])
def test_a_full_queue_for_a_minute(
    sites: Any, paho: Any, providers: Any, tmp_path: Path, version: str, quality: str
) -> None:
    """The link is held, with its reason, over one connection; then it brings all, in order, once."""
    if why := providers.missing("mosquitto"):
        pytest.skip(why)
    once = {"quality_of_service": quality}
    links = {
        "full": {"source": {"address": "full/#"}, **once},
        "in": {"source": {"address": "in/#"}, **once},
        "alarms": {"source": {"address": "alarms/#"}, "quality_of_service": "at-most-once"},
        "out": {"source": {"topic": "out/>"}, **once},
    }
    queue = {
        "subscriptions": ["full/>"],
        "max_msg_spool_usage": 1,
        "reject_msg_to_sender_on_discard_behavior": "when-queue-enabled",
    }
    with providers.providing("mosquitto", sites.port, tmp_path):
        here = sites.connect(links, queues={"small": queue}, mqtt_version=version)
        level = 5 if version == "5" else 4
        far = {name: paho(sites.port, f"far-{name}", level=level) for name in ("p", "s")}
        near = {name: paho(here.port("mqtt"), f"near-{name}") for name in ("p", "in", "alarms")}
        far["s"].subscribe("out/#", 1)
        near["in"].subscribe("in/#", 1)
        near["alarms"].subscribe("alarms/#", 0)
        ways = [
            Echo(far["p"], "in/a", near["in"]),
            Echo(far["p"], "alarms/a", near["alarms"]),
            Echo(near["p"], "out/a", far["s"]),
        ]
        before = [way.one() for _ in range(20) for way in ways]
        sent = [b"%d:" % number + LARGE for number in range(30)]
        for payload in sent:
            far["p"].client.publish("full/a", payload, qos=1).wait_for_publish(20)
        sites.until_link("full", state="held")
        during: list[float] = []
        until = time.monotonic() + FULL_S
        while time.monotonic() < until:
            during += [way.one() for way in ways]
        (row,) = [each for each in sites.row()["links"] if each["linkName"] == "full"]
        assert row["state"] == "held"
        assert "small" in row["stateReason"]
        events = [each["event"] for each in here.api().events(1_000)]
        assert events.count("VPN_CONNECTOR_LINK_HELD") == 1
        assert "VPN_CONNECTOR_DOWN" not in events
        print(f"before {max(before):.3f} s, while full {max(during):.3f} s, {len(during)} messages")
        assert max(during) < max(before) + PROMPTLY_S
        # Room comes: all is there, in the order of sending.
        consumer = paho(here.port("mqtt"), "consumer")
        consumer.subscribe("$queue/small", 1)
        assert [consumer.next()[1] for _ in sent] == sent
        sites.until_link("full", state="up", inFlightMsgCount=0)
        assert consumer.arrived.empty()
