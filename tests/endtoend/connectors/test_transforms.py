"""Links of a running router that change messages, over each protocol, by the configuration and by the API."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import httpx
import pytest

STEPS: Final = [
    {"when": "site IS NULL", "set_property": {"site": "oslo"}},
    {"topic": "{topic}/{payload:/kind}"},
    {"edit_payload": {"set": {"/site": "{property:site}"}, "remove": ["/secret"]}},
    {"priority": 7},
]
SENT: Final = b'{"kind":"k","secret":1}'
GOT: Final = {"kind": "k", "site": "oslo"}
LINKS: Final = {
    "mqtt": {
        "in": {"source": {"address": "a/#"}},
        "out": {"source": {"topic": "c/>"}},
    },
    "amqp": {
        "in": {"source": {"address": "topic://a/>", "subscription": "kept"}},
        "out": {"source": {"topic": "c/>"}, "target": {"address": "topic://{topic}"}},
    },
}
QUALITIES: Final = ("at-most-once", "duplicates-ok", "once-and-only-once")


def links(scheme: str, quality: str, **more: Any) -> dict[str, Any]:
    """Both links, with their steps."""
    found = {
        name: {**link, "quality_of_service": quality, "transform": STEPS, **more}
        for name, link in LINKS[scheme].items()
    }
    if scheme == "amqp":
        found["out"]["target"] = {"address": "topic://c/{1}"}
        if quality == "at-most-once":
            found["in"]["source"] = {"address": "topic://a/>"}
    return found


@pytest.fixture
def far(sites: Any, scheme: str) -> Any:
    """The provider."""
    return sites.provide(scheme)


@pytest.mark.parametrize("quality", QUALITIES)
@pytest.mark.parametrize("scheme", LINKS)
def test_both_ways(sites: Any, far: Any, paho: Any, scheme: str, quality: str) -> None:
    """What comes in and what leaves is changed, with its properties; what cannot be changed is counted."""
    url = f"{scheme}://127.0.0.1:{sites.port}"
    here = sites.connect(links(scheme, quality), url=url)
    for name in ("in", "out"):
        sites.until_link(name, state="up")
    ours, theirs = paho(here.port("mqtt"), "ours"), paho(far.port("mqtt"), "theirs")
    ours.subscribe("a/#", 1)
    theirs.subscribe("c/#", 1)
    qos = QUALITIES.index(quality)
    for publisher, reader, topic in ((theirs, ours, "a/x"), (ours, theirs, "c/x")):
        publisher.client.publish(topic, b"no JSON", qos=qos).wait_for_publish(20)
        publisher.client.publish(topic, SENT, qos=qos).wait_for_publish(20)
        found, payload = reader.next()
        assert (found, json.loads(payload)) == (f"{topic}/k", GOT)
    sites.until_link("in", deliveredMsgCount=1, discards={"not-transformed": 1})
    sites.until_link("out", deliveredMsgCount=1, msgCount=2, inFlightMsgCount=0)


def test_by_the_api(sites: Any, paho: Any) -> None:
    """The list is written, read, changed and taken away as objects; one that is wrong changes nothing."""
    sites.provide()
    here = sites.connect({"out": {"source": {"topic": "c/>"}}})
    sites.until_link("out", state="up")
    url = f"http://127.0.0.1:{here.port('http')}/SEMP/v2/config/msgVpns/blue/connectors/there/links/out"

    def patch(**body: Any) -> Any:
        return httpx.patch(url, json=body, trust_env=False, timeout=60)

    theirs, ours = paho(sites.port, "theirs"), paho(here.port("mqtt"), "ours")
    theirs.subscribe("#", 1)
    written = [
        {"when": "site IS NULL", "setProperty": {"site": "oslo", "x_y": "{property:a_b}"}},
        {"topic": "new/{level:2}"},
        {"editPayload": {"set": {"/a_b": "{json:/k}"}, "remove": ["/s"]}},
    ]
    answer = patch(transform=written, onTransformError="pass")
    assert answer.status_code == 200, answer.text
    data = httpx.get(url, trust_env=False, timeout=60).json()["data"]
    assert data["onTransformError"] == "pass"
    shown = [
        {name: value for name, value in step.items() if value not in (None, {}, [], ())}
        for step in data["transform"]
    ]
    assert shown == written
    sites.until_link("out", state="up")
    ours.client.publish("c/x", b'{"k":[1],"s":2}', qos=1).wait_for_publish(20)
    assert theirs.next() == ("c/x", b'{"k":[1],"s":2}')
    assert patch(transform=written[1:]).status_code == 200
    sites.until_link("out", state="up")
    ours.client.publish("c/x", b'{"k":[1],"s":2}', qos=1).wait_for_publish(20)
    topic, payload = theirs.next()
    assert (topic, json.loads(payload)) == ("new/x", {"k": [1], "a_b": [1]})
    for wrong in ([{"topic": "a/+"}], [{"topic": "{x}"}], [{}], [{"topic": "a", "priority": 1}]):
        refused = patch(transform=wrong)
        assert refused.status_code == 400, refused.text
        assert "transform" in refused.text
    assert patch(transform=[]).status_code == 200
    sites.until_link("out", state="up")
    ours.client.publish("c/x", b"plain", qos=1).wait_for_publish(20)
    assert theirs.next() == ("c/x", b"plain")


def test_web_hook(sites: Any, paho: Any) -> None:
    """A request has the changed payload; its path is made of the changed topic."""
    asked: list[tuple[str, bytes, str]] = []
    came = threading.Event()

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers["content-length"])
            asked.append((self.path, self.rfile.read(size), self.headers.get("x-site", "")))
            self.send_response(204)
            self.end_headers()
            came.set()

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", sites.port), Hook)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        link = {
            "source": {"topic": "c/>"},
            "transform": STEPS,
            "request": {"headers": {"X-Site": "{property:site}"}},
        }
        here = sites.connect({"out": link}, url=f"http://127.0.0.1:{sites.port}")
        ours = paho(here.port("mqtt"), "ours")
        ours.client.publish("c/x", SENT, qos=1).wait_for_publish(20)
        assert came.wait(30)
        ((path, body, site),) = asked
        assert (path, json.loads(body), site) == ("/c/x/k", GOT, "oslo")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
