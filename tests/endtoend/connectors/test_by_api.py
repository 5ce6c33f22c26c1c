"""Connectors and their links are made, changed and deleted by the management API, as bridges are."""

from typing import Any

import httpx
import pytest
import yaml


class Config:
    """The paths that configure the message VPN `blue` of a router."""

    def __init__(self, router: Any) -> None:
        self._url = f"http://127.0.0.1:{router.port('http')}/SEMP/v2/config/msgVpns/blue"

    def __call__(self, method: str, path: str, **body: Any) -> dict[str, Any]:
        """Send a request, and return the attributes in the answer."""
        answer = httpx.request(
            method, self._url + path, json=body or None, trust_env=False, timeout=60
        )
        assert answer.status_code == 200, answer.text
        data: dict[str, Any] = answer.json().get("data", {})
        return data


@pytest.fixture
def router(sites: Any, start: Any) -> Any:
    """A router without a connector, and the provider, which refuses what is published on `out/bad`."""
    denied = {"default_action": "allow", "exceptions": ["out/bad"]}
    sites.provide(acl_profiles={"default": {"publish_topic": denied}})
    document = yaml.safe_load(sites.text({}))
    document["msg_vpns"]["blue"].pop("connectors")
    sites.here = start(yaml.safe_dump(document), "here")
    return sites.here


def test_connector(sites: Any, router: Any, paho: Any) -> None:
    """A connector that was made by the API carries messages, also over another link, until it is deleted."""
    configure = Config(router)
    made = configure(
        "POST",
        "/connectors",
        connectorName="there",
        providerUrl=f"mqtt://127.0.0.1:{sites.port}",
        providerUsername="ann",
        providerPassword="a secret",
        providerConnectRetryDelay=0,
    )
    assert "providerPassword" not in made
    assert made["providerKeepalive"] == 30
    sites.state("up")
    link = configure(
        "POST", "/connectors/there/links", linkName="in", sourceAddress="a/#", retained="clear"
    )
    assert link["qualityOfService"] == "duplicates-ok"
    sites.until_link("in", state="up")
    ours, theirs = paho(router.port("mqtt"), "ours"), paho(sites.port, "theirs")
    for client in (ours, theirs):
        client.subscribe("#", 1)
    theirs.client.publish("a/b", b"1", qos=1).wait_for_publish(20)
    assert (ours.next(), theirs.next()) == (("a/b", b"1"), ("a/b", b"1"))
    configure(
        "POST", "/connectors/there/links", linkName="out", sourceTopic="c/>", targetAddress="d/{1}"
    )
    configure("PATCH", "/connectors/there/links/in", enabled=False)
    sites.until_link("in", state="disabled")
    sites.until_link("out", state="up")
    ours.client.publish("c/d", b"2", qos=1).wait_for_publish(20)
    assert (ours.next(), theirs.next()) == (("c/d", b"2"), ("d/d", b"2"))
    configure("DELETE", "/connectors/there/links/in")
    sites.until_links("out")
    configure("DELETE", "/connectors/there")
    assert list(router.api().connectors("blue")) == []
    # Nothing was wrong with a link: it is gone.
    assert router.told("VPN_CONNECTOR_LINK_REFUSED") == []


def test_dead_message_queues(sites: Any, router: Any, paho: Any, patiently: Any) -> None:
    """A list of dead message queues is written and read as a list of objects, and holds; links to addresses show."""
    configure = Config(router)
    configure("POST", "/queues", queueName="buried", ingressEnabled=True, egressEnabled=True)
    configure(
        "POST",
        "/connectors",
        connectorName="there",
        providerUrl=f"mqtt://127.0.0.1:{sites.port}",
        providerConnectRetryDelay=0,
    )
    entries = [{"queue": "absent", "attempts": 1}, {"queue": "buried", "ttl": 60}]
    made = configure(
        "POST",
        "/connectors/there/links",
        linkName="out",
        sourceTopic="out/>",
        rejectAttempts=1,
        expired="discard",
        deadMsgQueues=entries,
    )
    rest = {"attempts": 3, "interval": 5000}
    assert made["deadMsgQueues"][1] == {"queue": "buried", "ttl": 60, **rest}
    assert (made["expired"], made["then"]) == ("discard", "dead-letter")
    sites.until_link("out", state="up")
    ours, theirs = paho(router.port("mqtt"), "ours"), paho(sites.port, "theirs")
    theirs.subscribe("#", 1)
    ours.client.publish("out/bad", b"1", qos=1).wait_for_publish(20)
    patiently(lambda: router.queue("blue", "buried")["msgCount"] == 1, "the dead letter")
    (dead,) = router.api().msgs("blue", "buried", 10)
    assert router.api().payload("blue", "buried", dead["msgId"]) == b"1"
    entries = [{"address": "dead/{1}", "attempts": 2}]
    configure("PATCH", "/connectors/there/links/out", deadMsgQueues=entries)
    sites.until_links("out", "out/dead/1")
    sites.until_link("out/dead/1", state="up")
    ours.client.publish("out/bad", b"2", qos=1).wait_for_publish(20)
    assert theirs.next() == ("dead/out/bad", b"2")
    sites.until_link("out/dead/1", deliveredMsgCount=1)
    sites.until_link("out", deadLetterMsgCount=2, inFlightMsgCount=0)
    url = f"http://127.0.0.1:{router.port('http')}/SEMP/v2/monitor/msgVpns/blue/connectors/there"
    answer = httpx.get(f"{url}/links", trust_env=False, timeout=60)
    assert [row["target"] for row in answer.json()["data"]] == ["AS_SOURCE", "dead/{1}"]
    url = f"http://127.0.0.1:{router.port('http')}/SEMP/v2/config/msgVpns/blue/connectors/there"
    for wrong, told in (
        ([{}], "exactly one of queue, topic and address"),
        ([{"queue": "buried", "interval": -1}], "deadMsgQueues"),
    ):
        body = {"deadMsgQueues": wrong}
        answer = httpx.patch(f"{url}/links/out", json=body, trust_env=False, timeout=60)
        assert answer.status_code == 400
        assert told in answer.json()["meta"]["error"]["description"]
    configure("PATCH", "/connectors/there/links/out", deadMsgQueues=[])
    sites.until_links("out")


@pytest.mark.parametrize(
    ("path", "body", "text"),
    [
        ("/connectors", {"connectorName": "a/b"}, "may only contain A-Z a-z 0-9 . _ -"),
        ("/connectors", {"connectorName": "c", "providerUrl": "ftp://h"}, "does not begin with"),
        ("/connectors", {"connectorName": "c", "maxTtl": 0}, "maxTtl"),
        ("/connectors", {"connectorName": "c", "maxTTL": 3}, "did you mean maxTtl?"),
        ("/connectors/there/links", {"linkName": "in"}, "exactly one of"),
        (
            "/connectors/none/links",
            {"linkName": "in", "sourceAddress": "a/#"},
            "none",
        ),
    ],
)
def test_refusals(sites: Any, router: Any, path: str, body: dict[str, Any], text: str) -> None:
    """What is wrong is refused with the reason, and nothing is changed."""
    configure = Config(router)
    configure(
        "POST",
        "/connectors",
        connectorName="there",
        providerUrl=f"mqtt://127.0.0.1:{sites.port}",
    )
    url = f"http://127.0.0.1:{router.port('http')}/SEMP/v2/config/msgVpns/blue"
    answer = httpx.post(url + path, json=body, trust_env=False, timeout=60)
    assert answer.status_code == 400
    assert text in answer.json()["meta"]["error"]["description"]
    assert [row["connectorName"] for row in router.api().connectors("blue")] == ["there"]
    assert configure("GET", "/connectors/there")["connectorName"] == "there"
