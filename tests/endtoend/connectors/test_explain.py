"""explain over --url of routers with connectors, and what becomes of the same messages in fact."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from vpnrouter.explain.explain import explain
from vpnrouter.explain.live import live_mesh
from vpnrouter.explain.request import ExplainRequest

OPEN = {"authentication": {"basic": {"enabled": False}}, "max_msg_spool_usage": 100}
ONCE = {"quality_of_service": "at-most-once"}
LINKS = {
    "once": {"source": {"topic": "once/>"}, **ONCE},
    "kept": {"source": {"topic": "kept/*"}, "target": {"address": "far/{1}"}},
    "work": {"source": {"queue": "work"}, "target": {"address": "done/{1}"}},
}
HTTP = {"protocol": "http", "bind": "127.0.0.1:0"}


class Both:
    """`here` has a connector, whose password is a variable of its own environment, and leads to `there`."""

    def __init__(self, folder: Any, router_process: Any, port: int) -> None:
        self._folder = folder
        self._make = router_process
        self.port = port
        self.started: list[Any] = []

    def start(self, name: str, document: dict[str, Any]) -> Any:
        path = self._folder / f"{name}.yaml"
        document = {"router": {"name": name, "data_dir": f"data-{name}"}, **document}
        path.write_text(yaml.safe_dump(document), encoding="utf-8")
        made = self._make(path, more={"ONLY_THERE": "right"})
        self.started.append(made)
        return made

    def here(self) -> Any:
        provider = {
            "url": f"mqtt://127.0.0.1:{self.port}",
            "username": "taker",
            "password": {"env": "ONLY_THERE"},
            "connect": {"retry_delay": 0},
        }
        blue = {
            **OPEN,
            "queues": {"work": {"subscriptions": ["jobs/>"]}},
            "client_usernames": {"ann": {"password": {"env": "ONLY_THERE"}}},
            "connectors": {"there": {"provider": provider, "links": LINKS}},
        }
        mqtt = {"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": "blue"}
        return self.start("here", {"listeners": [mqtt, HTTP], "msg_vpns": {"blue": blue}})

    def there(self) -> Any:
        red = {
            "max_msg_spool_usage": 100,
            "client_usernames": {"taker": {"password": {"env": "ONLY_THERE"}}},
        }
        mqtt = {"protocol": "mqtt", "bind": f"127.0.0.1:{self.port}", "msg_vpn": "red"}
        return self.start("there", {"listeners": [mqtt, HTTP], "msg_vpns": {"red": red}})


@pytest.fixture
def both(tmp_path: Any, router_process: Any, free_port: Any) -> Any:
    """Two routers that are not started; they end with the test."""
    made = Both(tmp_path, router_process, free_port())
    yield made
    for router in made.started:
        router.kill()


CASES = [
    ("once/1", "direct", "once/1", "discarded"),
    ("kept/1", "persistent", "far/1", "waits in its queue"),
    ("jobs/1", "persistent", "done/jobs/1", "waits in queue work"),
]


def test_what_it_says_is_what_happens(both: Any, tool: Any, paho: Any, patiently: Any) -> None:
    """While the provider is there, and after it has gone."""
    there = both.there()
    here = both.here()

    def told(topic: str, mode: str) -> Any:
        live = live_mesh([here.api()])
        return explain(live.mesh, ExplainRequest("here", "blue", topic, mode), live)

    def is_up(up: bool) -> None:
        patiently(lambda: (here.api().connectors()[0]["state"] == "up") is up, f"up: {up}")

    is_up(True)
    hears = paho(there.port("mqtt"), "hears", login=("taker", "right"))
    hears.subscribe("#")
    says = paho(here.port("mqtt"), "says")
    for topic, mode, there_topic, _ in CASES:
        answer = told(topic, mode)
        assert [one.topic for one in answer.arrivals if one.kind == "connector"] == [there_topic]
        assert [one.up for one in answer.connectors] == [True]
        says.client.publish(topic, b"x", 1 if mode == "persistent" else 0)
        assert hears.next()[0] == there_topic
    there.kill()
    is_up(False)
    for topic, mode, _, why in CASES:
        answer = told(topic, mode)
        assert not [one for one in answer.arrivals if one.kind == "connector"]
        assert [(one.up, one.why != "") for one in answer.connectors] == [(False, True)]
        assert why in str(answer.as_dict())
    words = ["--at", "here/blue", "--topic", "once/1", "--json"]
    shown = json.loads(
        tool("explain", "--url", f"http://127.0.0.1:{here.port('http')}", *words).stdout
    )
    assert (shown["arrivals"], shown["connectors"][0]["up"]) == ([], False)
