"""What the links of a connector have counted, over restarts of the router."""

from typing import Any, Final

import pytest

INTO: Final = {"full": {"subscriptions": ["in/>"], "max_spooled_msg_count": 3}}
INTO["full"]["reject_msg_to_sender_on_discard_behavior"] = "always"
LINKS: Final[dict[str, Any]] = {
    "in": {"source": {"address": "in/#"}, "quality_of_service": "once-and-only-once"},
    "out": {"source": {"topic": "out/>"}},
    "direct": {"source": {"topic": "direct/>"}, "quality_of_service": "at-most-once"},
}
OUTCOMES: Final = ("delivered", "duplicate", "returned", "deadLetter", "discarded", "inFlight")
UNACCOUNTED: Final = {"unaccounted-after-crash": 7}


def counts(sites: Any) -> dict[str, dict[str, Any]]:
    """The links by name, each of which balances."""
    links = {str(link["linkName"]): dict(link) for link in sites.row()["links"]}
    for link in links.values():
        assert link["msgCount"] == sum(link[f"{name}MsgCount"] for name in OUTCOMES), link
    return links


def brief(link: dict[str, Any]) -> tuple[int, int, int]:
    """Messages of a link, those that were delivered, and those in flight.

    What the provider sends again, because an acknowledgement went down with the router, is left out.
    """
    once = link["msgCount"] - link["duplicateMsgCount"]
    return once, link["deliveredMsgCount"], link["inFlightMsgCount"]


@pytest.fixture
def counted(sites: Any, paho: Any) -> Any:
    """Sites where ten messages came in, of which a full queue took three, two went out, and two were Direct."""
    sites.provide(queues={"arrived": {"subscriptions": ["out/>"]}})
    here = sites.connect(LINKS, queues=INTO)
    theirs, ours = paho(sites.port, "theirs"), paho(here.port("mqtt"), "ours")
    for number in range(10):
        theirs.client.publish("in/x", b"%d" % number, qos=1).wait_for_publish(20)
    for topic in ("out/x", "direct/x"):
        for number in range(2):
            ours.client.publish(topic, b"%d" % number, qos=1).wait_for_publish(20)
    sites.until_link("in", msgCount=10, deliveredMsgCount=3, inFlightMsgCount=7)
    sites.until_link("out", msgCount=2, deliveredMsgCount=2)
    sites.until_link("direct", msgCount=2, deliveredMsgCount=2)
    ours.stop()
    return sites


def test_counts_go_on(counted: Any, paho: Any) -> None:
    """After a clean stop they are as before; after a kill what had gone meanwhile is unaccounted for, by name."""
    before = counts(counted)
    assert counted.here.stop() == 0
    here = counted.connect(LINKS, queues=INTO)
    again = counts(counted)
    for name, link in again.items():
        assert brief(link) == brief(before[name])
        for more in ("byteCount", "refusedMsgCount"):
            assert link[more] >= before[name][more] > (0 if more == "byteCount" else -1)
        assert link["discards"] == before[name]["discards"] == {}
    ours = paho(here.port("mqtt"), "ours")
    ours.subscribe("$queue/full", 1)
    assert [ours.next()[1] for _ in range(10)] == [b"%d" % number for number in range(10)]
    counted.until_link("in", deliveredMsgCount=10, inFlightMsgCount=0)
    here.holds("blue", "full", 0)
    here.holds("blue", "#connector/there/in", 0)
    here.kill()
    counted.connect(LINKS, queues=INTO)
    link = counts(counted)["in"]
    assert brief(link) == (10, 3, 0)
    assert link["discards"] == UNACCOUNTED


def test_what_came_after_the_counts_were_saved(counted: Any, paho: Any) -> None:
    """What is set aside, and of which nothing was counted, counts as a message after a kill."""
    assert counted.here.stop() == 0
    here = counted.connect(LINKS, queues=INTO)
    theirs = paho(counted.port, "theirs-too")
    for number in range(5):
        theirs.client.publish("in/x", b"%d" % number, qos=1).wait_for_publish(20)
    here.holds("blue", "#connector/there/in", 12)
    here.kill()
    counted.connect(LINKS, queues=INTO)
    link = counts(counted)["in"]
    assert brief(link) == (15, 3, 12)
    assert link["discards"] == {}


@pytest.mark.parametrize("runs", [True, False])
def test_a_link_that_is_removed(counted: Any, runs: bool) -> None:
    """Its counts go with it, while the router runs or stands still; those of the others stay."""
    others = {name: link for name, link in LINKS.items() if name != "out"}
    assert counted.here.stop() == 0
    counted.connect(LINKS if runs else others, queues=INTO)
    if runs:
        counted.change(others, queues=INTO)
        counted.until_links("direct", "in")
    assert counted.here.stop() == 0
    counted.connect(LINKS, queues=INTO)
    found = counts(counted)
    assert brief(found["out"]) == (0, 0, 0)
    assert brief(found["direct"]) == (2, 2, 0)
