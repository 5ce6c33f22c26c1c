"""Channels collected by Spark: who sends and receives on each, exact beyond the names, within bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

from vpnrouter.report.asyncapi.channels import Channel, Flow, Party, Role, VpnChannels
from vpnrouter.report.asyncapi.collect import Most, vpn_channels
from vpnrouter.report.digests.condense import Condensed
from vpnrouter.report.digests.counts import uses

Condense = Callable[[dict[str, list[dict[str, Any]]]], Condensed]

BLUE: Final = {"router": "edge", "vpn": "blue", "traced": True}
GREEN: Final = {"router": "edge", "vpn": "green", "traced": True}
FAR: Final = {"router": "far", "vpn": "x", "traced": False}


def event(name: str, topic: str, vpn: str = "blue", **more: Any) -> dict[str, Any]:
    """A trace row of a message of 10 bytes."""
    return {
        "event": name,
        "ts_ns": 1,
        "vpn": vpn,
        "topic": topic,
        "mode": "direct",
        "size_bytes": 10,
        **more,
    }


@pytest.fixture
def collected(spark: SparkSession, condensed_of: Condense) -> Callable[..., list[VpnChannels]]:
    """Collects the channels of rows that router edge traced; every row weighs 2."""

    def collect(rows: list[dict[str, Any]], most: Most | None = None) -> list[VpnChannels]:
        traces = condensed_of({"edge": rows})
        return vpn_channels(spark, uses(traces), traces.rows, [BLUE, GREEN, FAR], most)

    return collect


def by_topic(vpn: VpnChannels) -> dict[str, Channel]:
    """Channels by their levels, `*` for a parameter."""
    return {
        "/".join("*" if level is None else level for level in one.template.levels): one
        for one in vpn.channels
    }


def test_all_roles(collected: Callable[..., list[VpnChannels]]) -> None:
    """Each event counts for the one who caused it, in the message VPN where it was."""
    bridge = {"bridge": "fares", "peer_router": "core", "peer_vpn": "red"}
    link = {"bridge": "mq/in", "peer_router": "mqtt://broker:1883", "client": "#connector/mq"}
    rows = [
        event("ingress", "a", client="pub"),
        event("ingress", "a", client="pub"),
        event("ingress", "a", client="other"),
        event("ingress", "a", **link),
        event("bridge_receive", "a", **bridge),
        event("deliver", "a", client="sub"),
        event("deliver", "a", **link),
        event("enqueue", "a", endpoint="q"),
        event("bridge_send", "a", **bridge, client="#bridge/core/red/fares"),
        event("discard", "a", client="pub", reason="no-subscription-match"),
        event("discard", "a", client="sub", reason="slow"),
        event("acknowledge", "a", endpoint="q"),
        event("deliver", "a", "green", client="sub"),
    ]
    blue, green, far = collected(rows)

    def flow(*parties: Party) -> Flow:
        messages = sum(party.messages for party in parties)
        return Flow(
            messages=messages,
            estimated=2.0 * messages,
            size_bytes=10 * messages,
            parties=parties,
            all_parties=len(parties),
        )

    core = ("fares", "core", "red", 1)
    broker = ("mq/in", "mqtt://broker:1883", "", 1)
    assert by_topic(blue)["a"].flows == {
        Role.CLIENT_IN: flow(Party("pub", "", "", 2), Party("other", "", "", 1)),
        Role.CONNECTOR_IN: flow(Party(*broker)),
        Role.BRIDGE_IN: flow(Party(*core)),
        Role.CLIENT_OUT: flow(Party("sub", "", "", 1)),
        Role.CONNECTOR_OUT: flow(Party(*broker)),
        Role.QUEUE_OUT: flow(Party("q", "", "", 1)),
        Role.BRIDGE_OUT: flow(Party(*core)),
        Role.UNWANTED: flow(Party("", "", "", 1)),
    }
    assert (blue.topics, blue.messages, blue.messages_left_out) == (1, 5, 0)
    assert by_topic(green)["a"].flows == {Role.CLIENT_OUT: flow(Party("sub", "", "", 1))}
    assert (green.topics, green.messages) == (1, 1)
    assert far == VpnChannels(router="far", vpn="x", traced=False)


def test_a_template_counts_all_of_its_topics(collected: Callable[..., list[VpnChannels]]) -> None:
    """Clients on several topics are one client, and all count where few are named."""
    rows = [
        event("ingress", f"order/{number}/status", client=f"pub{number % 15:02}", weight=weight)
        for number in range(30)
        for weight in ([2.0, None] if number == 7 else [2.0])
    ]
    rows += [event("deliver", f"order/{number}/status", client="sub") for number in range(30)]
    blue, *_ = collected(rows, Most(names=4))
    (channel,) = by_topic(blue).values()
    assert channel.template.levels == ("order", None, "status")
    assert (channel.template.topics, channel.template.messages) == (30, 31)
    published = channel.flows[Role.CLIENT_IN]
    assert (published.messages, published.estimated, published.size_bytes) == (31, None, 310)
    named = [(party.name, party.messages) for party in published.parties]
    assert named == [("pub07", 3), ("pub00", 2), ("pub01", 2), ("pub02", 2)]
    assert published.all_parties == 15
    received = channel.flows[Role.CLIENT_OUT]
    assert (received.estimated, received.all_parties) == (60.0, 1)


def test_bounds(collected: Callable[..., list[VpnChannels]]) -> None:
    """The busiest topics and channels stay; what is left out is counted, and long topics are."""
    rows = [
        event("ingress", topic, vpn)
        for vpn in ("blue", "green")
        for topic, count in (("a", 4), ("b", 3), ("c", 2), ("d", 1), ("x" * 21, 9))
        for _ in range(count)
    ]
    blue, green, _ = collected(rows, Most(topics=3, topic_length=20))
    for vpn in (blue, green):
        assert list(by_topic(vpn)) == ["a", "b", "c"]
        assert (vpn.topics, vpn.messages, vpn.long_topics) == (5, 19, 1)
        assert (vpn.channels_left_out, vpn.messages_left_out) == (0, 10)
    # Each message VPN has its share of what all may have.
    blue, green, _ = collected(rows, Most(topics_all=4, topic_length=20))
    assert [list(by_topic(vpn)) for vpn in (blue, green)] == [["a", "b"], ["a", "b"]]
    blue, green, _ = collected(rows, Most(channels=1, topic_length=20))
    assert [list(by_topic(vpn)) for vpn in (blue, green)] == [["a"], ["a"]]
    assert (blue.channels_left_out, blue.messages_left_out) == (3, 15)
    blue, green, _ = collected(rows, Most(channels_all=5, topic_length=20))
    assert [list(by_topic(vpn)) for vpn in (blue, green)] == [["a", "b"], ["a", "b"]]


def test_topics_that_are_as_busy_are_of_any_name(
    collected: Callable[..., list[VpnChannels]],
) -> None:
    """Of thousands with one message each, those that are taken are not the first by name."""
    rows = [event("ingress", f"{kind}/{number}") for kind in "ab" for number in range(500)]
    blue, *_ = collected(rows, Most(topics=100))
    assert set(by_topic(blue)) == {"a/*", "b/*"}
    assert blue.messages_left_out == 900


def test_no_messages(collected: Callable[..., list[VpnChannels]]) -> None:
    """Without any message there are message VPNs, and no channels."""
    found = collected([event("subscribe", "a/>", client="sub")])
    assert [vpn.channels for vpn in found] == [(), (), ()]
