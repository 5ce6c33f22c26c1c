"""vpnrouter.report.rules.places: topics that nobody takes."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame

from vpnrouter.report.rules.places import black_holes, standing, unmatched

DigestOf = Callable[[str, list[dict[str, Any]]], DataFrame]


def use(topic: str | None, event: str, count: int = 5, **more: Any) -> dict[str, Any]:
    """A row of USES in a/x."""
    endpoint = "no-subscription-match" if event == "discard" else None
    place = {"router": "a", "vpn": "x", "endpoint": endpoint}
    return {"topic": topic, "event": event, "count": count, "bytes": count * 10, **place, **more}


def lost(topic: str, **more: Any) -> dict[str, Any]:
    """A row of `unmatched`."""
    return {
        "topic": topic,
        "router": "a",
        "vpn": "x",
        "published": 5,
        "bytes": 50,
        "lost": 5,
        **more,
    }


def stands(filter_: str, syntax: str | None, vpn: str = "x") -> dict[str, Any]:
    """A row of `standing`."""
    return {"router": "a", "vpn": vpn, "topic": filter_, "topic_syntax": syntax}


@pytest.mark.spark
def test_topics_that_nothing_took_are_picked(digest_of: DigestOf) -> None:
    """Published, discarded for want of a match, and taken by nobody in this VPN."""
    rows = [use("gone", "ingress"), use("gone", "discard", 8)]
    rows += [use("late", "ingress"), use("late", "discard", 4), use("late", "deliver", 1)]
    rows += [use("kept", "ingress"), use("kept", "discard", 4), use("kept", "enqueue", 1)]
    rows += [use("sent", "ingress"), use("sent", "discard", 4), use("sent", "bridge_send", 1)]
    rows += [use("full", "ingress"), use("full", "discard", endpoint=None)]
    # Came over a bridge: what crosses in vain is not what is published in vain.
    rows += [use("brought", "bridge_receive"), use("brought", "discard")]
    rows += [use("rare", "ingress", 2), use("rare", "discard", 2)]
    # One of a sample of one in a hundred.
    rows += [use("sampled", "ingress", 1, weight=100.0), use("sampled", "discard", 1)]
    rows += [use(None, "ingress"), use(None, "discard")]
    # Taken in another VPN, which is another topic.
    rows += [use("gone", "deliver", vpn="y"), use("gone", "ingress", vpn="y")]
    found = unmatched(digest_of("uses", rows)).collect()
    assert [(one.topic, one.vpn, one.published, one.lost, one.bytes) for one in found] == [
        ("sampled", "x", 1, 100, 10),
        ("gone", "x", 5, 8, 50),
    ]


@pytest.mark.spark
def test_filters_that_stood_at_last_are_found(digest_of: DigestOf) -> None:
    """A client's last word counts, in the VPNs asked for."""

    def state(
        at: int, event: str, filter_: str, client: str = "c", vpn: str = "x"
    ) -> dict[str, Any]:
        place = {"router": "a", "vpn": vpn, "client": client}
        return {"ts_ns": at, "event": event, "topic": filter_, "topic_syntax": "smf", **place}

    rows = [
        state(1, "subscribe", "here/>"),
        state(2, "subscribe", "here/>", client="d"),
        state(1, "subscribe", "left/>"),
        state(2, "unsubscribe", "left/>"),
        state(2, "subscribe", "back/>"),
        state(1, "unsubscribe", "back/>"),
        state(1, "subscribe", "elsewhere/>", vpn="y"),
        state(1, "link_up", "no/filter"),
    ]
    found = standing(digest_of("states", rows), [lost("t"), lost("u")]).collect()
    assert sorted((one.topic, one.topic_syntax) for one in found) == [
        ("back/>", "smf"),
        ("here/>", "smf"),
    ]


def test_a_topic_without_a_taker_is_a_black_hole() -> None:
    """One finding a topic, with what was traced and what is known to be lost."""
    (found,) = black_holes([lost("gone/t", lost=1_000)], [])
    assert (found.kind, found.severity, found.topic) == ("black_hole", "warning", "gone/t")
    assert (found.messages, found.bytes, found.value) == (5, 50, 1_000.0)
    assert found.detail == (
        "1,000 messages on gone/t entered a/x, and nobody there wanted them, no bridge and no queue either."
    )


@pytest.mark.parametrize(
    ("filter_", "syntax", "vpn", "holes"),
    [
        ("gone/>", "smf", "x", 0),
        ("gone/#", "mqtt", "x", 0),
        ("gone/#", None, "x", 0),
        ("gone/*", None, "x", 0),
        ("gone/#", "smf", "x", 1),
        ("other/>", "smf", "x", 1),
        ("gone/>", "smf", "y", 1),
        ("", "smf", "x", 1),
    ],
)
def test_who_subscribed_late_still_wants_it(
    filter_: str, syntax: str | None, vpn: str, holes: int
) -> None:
    """A filter of the same VPN that matches in the end, in its dialect, is enough."""
    assert len(black_holes([lost("gone/t")], [stands(filter_, syntax, vpn)])) == holes
