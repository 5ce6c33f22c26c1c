"""Links that have a connection to themselves, beside one that the others share."""

from pathlib import Path
from typing import Any, Final

import pytest

from vpnrouter.testing.modules import load_module

PROVIDERS: Final = load_module("connector_providers", Path(__file__).parent / "providers.py")
LINKS: Final = {
    "mqtt": {
        "in": {"source": {"address": "a/#"}},
        "out": {"source": {"topic": "c/>"}},
    },
    "amqp": {
        "in": {"source": {"address": "topic://a/>", "subscription": "kept"}},
        "out": {"source": {"topic": "c/>"}, "target": {"address": "topic://c/{1}"}},
    },
}
QUALITIES: Final = ("duplicates-ok", "once-and-only-once")
SHARED: Final = "here-blue-there"
OWN: Final = f"{SHARED}-in"


def links(scheme: str, quality: str, **connections: str) -> dict[str, Any]:
    """Both links, with their connections by name."""
    return {
        name: {**link, "quality_of_service": quality, "connection": connections.get(name, "shared")}
        for name, link in LINKS[scheme].items()
    }


@pytest.fixture
def far(sites: Any, scheme: str) -> Any:
    """The provider."""
    return sites.provide(scheme)


def connected(far: Any) -> dict[str, Any]:
    """The clients of the provider by name, with what tells one connection from the next."""
    return {
        row["clientName"]: row["clientAddress"]
        for row in far.api().clients("red")
        if row["connected"] and row["clientName"].startswith("here")
    }


@pytest.mark.parametrize("quality", QUALITIES)
@pytest.mark.parametrize("scheme", LINKS)
def test_the_end_of_one_is_not_that_of_the_other(
    sites: Any, far: Any, paho: Any, patiently: Any, scheme: str, quality: str
) -> None:
    """Both carry messages. The provider ends each in turn: that one is made anew, and the other one stays."""
    url = f"{scheme}://127.0.0.1:{sites.port}"
    here = sites.connect(links(scheme, quality, **{"in": "dedicated"}), url=url)
    sites.until_link("in", state="up", connection="dedicated", connectionState="up")
    sites.until_link("out", state="up", connection="shared", connectionState="up")
    ours, theirs = paho(here.port("mqtt"), "ours"), paho(far.port("mqtt"), "theirs")
    ours.subscribe("a/#", 1)
    theirs.subscribe("c/#", 1)
    for at, ended in enumerate((OWN, SHARED, OWN)):
        before = connected(far)
        assert before.keys() == {SHARED, OWN}
        far.api().disconnect_client("red", ended)

        def is_back(before: dict[str, Any] = before, ended: str = ended) -> bool:
            now = connected(far)
            return now.keys() == before.keys() and now[ended] != before[ended]

        patiently(is_back, f"{ended} is back")
        (stays,) = before.keys() - {ended}
        assert connected(far)[stays] == before[stays]
        theirs.client.publish(f"a/{at}", b"in", qos=1).wait_for_publish(20)
        ours.client.publish(f"c/{at}", b"out", qos=1).wait_for_publish(20)
        assert ours.next() == (f"a/{at}", b"in")
        assert theirs.next() == (f"c/{at}", b"out")


@pytest.mark.parametrize("scheme", LINKS)
def test_a_connection_that_comes_and_goes(
    sites: Any, far: Any, paho: Any, patiently: Any, scheme: str
) -> None:
    """A link gets one of its own and shares one again, and the provider keeps no session of what is gone."""
    url = f"{scheme}://127.0.0.1:{sites.port}"

    def have(**connections: str) -> dict[str, Any]:
        return links(scheme, "once-and-only-once", **connections)

    here = sites.connect(have(), url=url)
    ours, theirs = paho(here.port("mqtt"), "ours"), paho(far.port("mqtt"), "theirs")
    ours.subscribe("a/#", 1)
    theirs.subscribe("c/#", 1)
    steps: list[tuple[dict[str, str], set[str]]] = [
        ({"in": "dedicated"}, {SHARED, OWN}),
        ({"in": "dedicated", "out": "dedicated"}, {OWN, f"{SHARED}-out"}),
        ({"out": "dedicated"}, {SHARED, f"{SHARED}-out"}),
        ({}, {SHARED}),
    ]
    for at, (connections, names) in enumerate(steps):
        sites.change(have(**connections), url=url)
        patiently(lambda names=names: connected(far).keys() == names, f"connections {names}")
        for name in ("in", "out"):
            sites.until_link(name, state="up")
        theirs.client.publish(f"a/{at}", b"in", qos=2).wait_for_publish(20)
        ours.client.publish(f"c/{at}", b"out", qos=2).wait_for_publish(20)
        assert ours.next() == (f"a/{at}", b"in")
        assert theirs.next() == (f"c/{at}", b"out")
    rows = {row["clientName"] for row in far.api().clients("red")}
    assert {name for name in rows if name.startswith("here")} == {SHARED}


@pytest.mark.parametrize("quality", QUALITIES)
@pytest.mark.parametrize("scheme", LINKS)
def test_it_outlives_the_router(
    sites: Any, far: Any, paho: Any, start: Any, scheme: str, quality: str
) -> None:
    """What the provider keeps for a dedicated connection comes when the router is there again, each message once."""
    url = f"{scheme}://127.0.0.1:{sites.port}"
    wanted = links(scheme, quality, **{"in": "dedicated"})
    queues = {"all": {"subscriptions": ["a/>"]}}
    here = sites.connect(wanted, queues=queues, url=url)
    sites.until_link("in", state="up")
    here.process.kill()
    here.process.wait()
    theirs = paho(far.port("mqtt"), "theirs")
    for at in range(20):
        theirs.client.publish(f"a/{at}", b"", qos=1).wait_for_publish(20)
    again = sites.connect(wanted, queues=queues, url=url)
    sites.until_link("in", state="up", deliveredMsgCount=20)
    (row,) = (row for row in again.api().queues("blue") if row["queueName"] == "all")
    assert row["spooledMsgCount"] == 20


BOTH_WAYS: Final = {
    "in": {"source": {"address": "t/#"}, "connection": "dedicated"},
    "out": {"source": {"topic": "t/>"}},
}


@pytest.mark.parametrize("scheme", ["mqtt"])
def test_no_echo(sites: Any, far: Any, paho: Any, scheme: str) -> None:
    """What one connection takes out to a provider of MQTT 5 does not come back by another."""
    here = sites.connect(BOTH_WAYS, url=f"{scheme}://127.0.0.1:{sites.port}")
    ours, theirs = paho(here.port("mqtt"), "ours"), paho(far.port("mqtt"), "theirs")
    for client in (ours, theirs):
        client.subscribe("t/#", 1)
    for name in BOTH_WAYS:
        sites.until_link(name, state="up")
    ours.client.publish("t/x/1", b"1", qos=1).wait_for_publish(20)
    theirs.client.publish("t/x/2", b"2", qos=1).wait_for_publish(20)
    assert [ours.next(), ours.next()] == [("t/x/1", b"1"), ("t/x/2", b"2")]
    assert [theirs.next(), theirs.next()] == [("t/x/1", b"1"), ("t/x/2", b"2")]


@pytest.mark.skipif(bool(PROVIDERS.missing("nats")), reason=PROVIDERS.missing("nats"))
def test_no_echo_of_a_provider_that_cannot_tell(sites: Any, tmp_path: Path) -> None:
    """NATS speaks MQTT 3.1.1: the link that would bring back what the other connection takes out is refused."""
    with PROVIDERS.providing("nats", sites.port, tmp_path):
        sites.connect(BOTH_WAYS)
        sites.until_link("out", state="up")
        why = "the provider speaks MQTT 3.1.1: it would bring back what link out takes out over another connection"
        sites.until_link("in", state="refused", stateReason=why)
