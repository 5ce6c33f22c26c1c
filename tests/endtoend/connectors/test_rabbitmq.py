"""A connector to RabbitMQ, which speaks MQTT 3.1.1 by a plugin and knows no QoS 2."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.guaranteed_rabbit import RabbitMq

pytestmark = pytest.mark.slow


@pytest.fixture
def rabbitmq(sites: Any, tmp_path: Path) -> Iterator[None]:
    """The broker, at the address that the connector dials; the test is skipped where it is not installed."""
    broker = RabbitMq("classic")
    if missing := broker.missing():
        pytest.skip(missing)
    folder = tmp_path / "rabbitmq"
    folder.mkdir()
    with broker.with_mqtt(folder, sites.port):
        yield


@pytest.mark.usefixtures("rabbitmq")
def test_rabbitmq(sites: Any, paho: Any) -> None:
    """Messages cross both ways, none is lost when the router is killed, and QoS 2 is refused by name."""
    links = {
        "in": {"source": {"address": "in/#"}},
        "out": {"source": {"topic": "out/>"}},
        "once": {"source": {"address": "once/#"}, "quality_of_service": "once-and-only-once"},
    }
    queues = {"arrived": {"subscriptions": ["in/>"]}}
    here = sites.connect(links, queues=queues)
    assert sites.row()["protocol"] == "MQTT 3.1.1"
    sites.until_link("once", stateReason=sites.refusal("once/#"))
    theirs = paho(sites.port, "theirs", level=4)
    theirs.subscribe("out/#", 1)
    sent = 0
    for _ in range(5):
        ours = paho(here.port("mqtt"), "ours")
        for _ in range(40):
            for client, topic in ((theirs, "in/x"), (ours, "out/x")):
                client.client.publish(topic, b"%d" % sent, qos=1).wait_for_publish(20)
            sent += 1
        here.kill()
        here = sites.connect(links, queues=queues)
    wanted = {b"%d" % number for number in range(sent)}
    found: set[bytes] = set()
    while found != wanted:
        found.add(theirs.next()[1])
    ours = paho(here.port("mqtt"), "ours")
    ours.subscribe("$queue/arrived", 1)
    found = set()
    while found != wanted:
        found.add(ours.next()[1])
