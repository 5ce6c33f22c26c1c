from collections import Counter
from typing import Any


def at(fault: dict[str, Any], row: dict[str, Any]) -> bool:
    """Whether a row stands in the message VPN of a fault."""
    return bool(row["router"] == fault["router"] and row["vpn"] == fault["vpn"])


def test_a_black_hole_swallows_its_topic(faulty: Any) -> None:
    """The topic is published there, discarded as matched by nobody, and goes nowhere."""
    (fault,) = faulty.faults("black_hole")
    rows = [row for row in faulty.rows if row["topic"] == fault["topic"]]
    assert {row["event"] for row in rows} == {"ingress", "discard"}
    assert all(at(fault, row) for row in rows)
    assert {row["reason"] for row in rows} == {None, "no-subscription-match"}
    published = [
        row
        for row in faulty.of("discard")
        if row["reason"] == "no-subscription-match" and row["hops"] == 0
    ]
    assert {row["topic"] for row in published} == {fault["topic"]}


def test_nothing_matches_the_subscription(faulty: Any) -> None:
    """The client subscribes to the filter, and no message has a topic that it matches."""
    (fault,) = faulty.faults("never_matched")
    (row,) = [row for row in faulty.of("subscribe") if row["topic"] == fault["topic"]]
    assert at(fault, row)
    assert row["client"] == fault["client"]
    stem = fault["topic"].removesuffix("#")
    topics = {row["topic"] for row in faulty.rows if row["trace_id"] is not None}
    assert not [topic for topic in topics if topic.startswith(stem)]


def test_a_broad_subscription_attracts_what_is_lost(faulty: Any) -> None:
    """The bridge holds the filter; most of what comes by it is wanted by nobody, the rest by somebody."""
    (fault,) = faulty.faults("over_broad")
    client = f"#bridge/{fault['router']}/{fault['vpn']}/{fault['bridge']}"
    held = [row["topic"] for row in faulty.of("subscribe") if row["client"] == client]
    assert fault["topic"] in held
    stem = fault["topic"].removesuffix(">")
    here = [row for row in faulty.rows if at(fault, row) and (row["topic"] or "").startswith(stem)]
    events = Counter(row["event"] for row in here)
    share = events["discard"] / events["bridge_receive"]
    assert abs(share - fault["value"]) < 0.05
    assert {row["topic"] for row in here if row["event"] == "deliver"} == {stem + "i00"}


def test_one_partition_gets_nearly_all(faulty: Any) -> None:
    """The endpoint's largest partition is far above the mean; all other endpoints are even."""
    (fault,) = faulty.faults("skewed_partition")
    loads: dict[tuple[str, str, str], Counter[int]] = {}
    for row in faulty.of("enqueue"):
        if row["partition"] is not None:
            place = (row["router"], row["vpn"], row["endpoint"])
            loads.setdefault(place, Counter())[row["partition"]] += 1
    ratios = {
        place: max(load.values()) * len(load) / sum(load.values()) for place, load in loads.items()
    }
    skewed = ratios.pop((fault["router"], fault["vpn"], fault["endpoint"]))
    assert abs(skewed - fault["value"]) < 0.1
    assert max(ratios.values(), default=1.0) < 1.5
