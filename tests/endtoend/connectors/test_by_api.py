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
    """A router without a connector, and the provider."""
    sites.provide()
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
