"""Connectors that close a connection over which nothing crosses, and open it for a message that waits."""

from typing import Any, Final

import pytest
import yaml

OPEN: Final = {"authentication": {"basic": {"enabled": False}}, "max_msg_spool_usage": 100}
OUT: Final = {
    "quick": {"source": {"topic": "t/>"}, "target": {"address": "t/{1}"}},
    "kept": {"source": {"queue": "work"}, "target": {"address": "w"}},
}
BY_AMQP: Final = {
    "quick": {"source": {"topic": "t/>"}, "target": {"address": "topic://t/{1}"}},
    "kept": {"source": {"queue": "work"}, "target": {"address": "topic://w"}},
}


@pytest.mark.parametrize(("scheme", "links"), [("mqtt", OUT), ("amqp", BY_AMQP)])
def test_a_connection_that_nothing_needs(
    sites: Any, start: Any, paho: Any, patiently: Any, scheme: str, links: dict[str, Any]
) -> None:
    """It is closed, and the router behind has no client of it; a message of either link opens it again."""
    far = {
        "listeners": [
            {"protocol": scheme, "bind": f"127.0.0.1:{sites.port}", "msg_vpn": "red"},
            {"protocol": "http", "bind": "127.0.0.1:0"},
        ],
        "msg_vpns": {
            "red": {**OPEN, "queues": {"all": {"subscriptions": ["t/>", "w"]}}},
        },
    }
    there = start(yaml.safe_dump(far), "there")
    here = sites.connect(
        links,
        wait=False,
        queues={"work": {"subscriptions": ["w/>"]}},
        url=f"{scheme}://127.0.0.1:{sites.port}",
        connect={"idle_timeout": 1, "retry_delay": 0},
    )
    publisher = paho(here.port("mqtt"), "publisher")

    def arrived() -> int:
        (row,) = (row for row in there.api().queues("red") if row["queueName"] == "all")
        return int(row["spooledMsgCount"])

    def connected() -> list[str]:
        return [row["clientName"] for row in there.api().clients("red") if row["connected"]]

    for count, topic in enumerate(("t/1", "w/1", "t/2"), 1):
        sites.state("idle", failure="")
        patiently(lambda: not connected(), "the other router has no client of it")
        publisher.client.publish(topic, b"", qos=1).wait_for_publish(20)
        patiently(lambda count=count: arrived() == count, f"message {count} is there")
    assert [row["refusedMsgCount"] for row in sites.row()["links"]] == [0, 0]
