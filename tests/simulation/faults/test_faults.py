"""Faults that are planted in a simulated mesh."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vpnrouter.config.load import read
from vpnrouter.errors import OperationError
from vpnrouter.simulation import mesh, plan
from vpnrouter.simulation.faults.kinds import DRIFT_KINDS, KINDS, plant
from vpnrouter.simulation.faults.placement import LEAST_MESSAGES, SHARE, Placement
from vpnrouter.simulation.simulate import Options, simulate


def test_each_kind_is_planted(faulty: Any) -> None:
    """Each kind leaves a fault of its name, and every fault is of a known kind."""
    assert {fault["kind"] for fault in faulty.truth["faults"]} == set(KINDS)


@pytest.mark.parametrize("seed", range(20))
def test_all_fit_into_a_middling_mesh(seed: int) -> None:
    """Two of each kind find room in 250 message VPNs, whatever the seed."""
    rng = np.random.default_rng(seed)
    kinds = (*KINDS, *KINDS)
    built = mesh.build(mesh.load("sndlib/germany50"), 250, len(kinds), rng)
    placement = Placement(plan.draft(built, 3_600.0, 0.2, 1, rng), 100_000, rng)
    plant(placement, kinds)
    found = [fault["kind"] for fault in placement.faults]
    assert all(found.count(kind) >= 2 for kind in KINDS), f"seed {seed}"


def placement(vpns: int = 40, seed: int = 1) -> Placement:
    """Ground in a small mesh."""
    rng = np.random.default_rng(seed)
    built = mesh.build(mesh.load("sndlib/polska"), vpns, 8, rng)
    return Placement(plan.draft(built, 600.0, 1.0, 2, rng), 100_000, rng)


def test_no_two_faults_stand_in_one_domain() -> None:
    """Each way lies in a domain of its own, along its links."""
    one = placement()
    built = one.plan.mesh
    taken = []
    for _ in range(4):
        way = one.way(3)
        assert len(set(way)) == 3
        assert way[1] in built.near[way[0]]
        assert way[2] in built.near[way[1]]
        taken.append({built.sites[site].domain for site in way})
    assert all(len(domains) == 1 for domains in taken)
    assert len(set.union(*taken)) == len(taken)


def test_ground_is_used_up() -> None:
    """When every domain has its fault, there is no room for one more."""
    one = placement()
    for _ in one.plan.mesh.domains:
        one.way(1)
    with pytest.raises(OperationError, match="too few message VPNs"):
        one.way(1)


def test_faults_have_messages_enough() -> None:
    """A share of the rows, and never fewer than a rule needs to be sure."""
    one = placement()
    assert one.messages() == round(SHARE * 100_000)
    assert one.messages(0.01) == LEAST_MESSAGES


def test_places_are_named_as_findings_name_them() -> None:
    """An edge's local end is where the bridge stands, its peer where messages come from."""
    one = placement()
    source, target = one.way(2)
    number = one.plan.mesh.bridge(source, target)
    remote, local = one.plan.mesh.sites[source], one.plan.mesh.sites[target]
    assert one.edge(number) == {
        "router": local.router_name,
        "vpn": local.vpn,
        "peer_router": remote.router_name,
        "peer_vpn": remote.vpn,
        "bridge": f"from-{remote.router_name}",
    }


START_NS = 1_772_352_000 * 10**9


SECOND_NS = 10**9


def is_of(fault: dict[str, Any], row: dict[str, Any]) -> bool:
    """Whether a row at the local end tells of the bridge of a fault."""
    names = ("router", "vpn", "peer_router", "peer_vpn", "bridge")
    return all(row[name] == fault[name] for name in names)


def is_sent(fault: dict[str, Any], row: dict[str, Any]) -> bool:
    """Whether a row at the remote end tells of the bridge of a fault."""
    pairs = (("router", "peer_router"), ("vpn", "peer_vpn"), ("peer_router", "router"))
    return row["bridge"] == fault["bridge"] and all(row[a] == fault[b] for a, b in pairs)


def test_a_flapping_link_carries_nothing_while_down(faulty: Any) -> None:
    """Ups and downs take turns at both ends, with reasons, and no message comes or goes between."""
    faults = faulty.faults("flapping_link")
    assert faults
    for fault in faults:
        rows = [row for row in faulty.rows if is_of(fault, row)]
        rows.sort(key=lambda row: row["ts_ns"])
        links = [row["event"] for row in rows if row["event"].startswith("link_")]
        assert links == ["link_up", "link_down"] * (fault["value"] + 1)
        up = False
        for row in rows:
            if row["event"].startswith("link_"):
                up = row["event"] == "link_up"
            else:
                assert up
        far = [row for row in faulty.rows if is_sent(fault, row) and row["event"] == "link_down"]
        assert len(far) == fault["value"] + 1
        assert len({row["reason"] for row in far}) > 1
    flapping = {(fault["router"], fault["vpn"], fault["bridge"]) for fault in faults}
    for row in faulty.of("link_down"):
        if row["reason"] != "503 Service Unavailable" and row["client"] is None:
            assert (row["router"], row["vpn"], row["bridge"]) in flapping


def test_a_stalled_bridge_loses_all_for_a_while(faulty: Any) -> None:
    """In the span there are sends and no receives; outside each send has arrived."""
    (fault,) = faulty.faults("stalled_bridge")
    clocks = faulty.truth["clocks"]

    def seconds(row: dict[str, Any]) -> float:
        return float(row["ts_ns"] - START_NS - clocks[row["router"]]) / SECOND_NS

    received = [row for row in faulty.of("bridge_receive") if is_of(fault, row)]
    sent = [row for row in faulty.of("bridge_send") if is_sent(fault, row)]
    begin, end = fault["begin_s"], fault["end_s"]
    inside = [row for row in sent if begin + 0.1 < seconds(row) < end - 0.1]
    assert len(inside) > 3
    assert not [row for row in received if begin + 0.5 < seconds(row) < end]
    lost = {row["trace_id"] for row in sent} - {row["trace_id"] for row in received}
    assert {row["trace_id"] for row in inside} <= lost
    assert len(lost) <= len(inside) + 2


def test_a_hot_bridge_discards_and_is_late(faulty: Any) -> None:
    """Its sending end discards for congestion, nobody else does; late messages take longer than early."""
    (fault,) = faulty.faults("hot_bridge")
    client = f"#bridge/{fault['router']}/{fault['vpn']}/{fault['bridge']}"
    discards = [row for row in faulty.of("discard") if row["reason"] == "transmit-congestion"]
    assert discards
    assert {(row["router"], row["vpn"], row["client"]) for row in discards} == {
        (fault["peer_router"], fault["peer_vpn"], client)
    }
    topic = discards[0]["topic"]
    taken = [row for row in faulty.of("bridge_receive") if row["topic"] == topic]
    share = len(discards) / (len(discards) + len(taken))
    assert share == pytest.approx(fault["value"], abs=0.02)
    taken.sort(key=lambda row: row["origin_ts_ns"])
    ages = [row["ts_ns"] - row["origin_ts_ns"] for row in taken]
    assert ages[-1] - ages[0] > 100_000_000


def test_an_endpoint_refuses_what_a_bridge_brings(faulty: Any) -> None:
    """All rejects are at the endpoint of the fault, within its span; outside it takes the messages."""
    (fault,) = faulty.faults("head_of_line")
    rejects = [row for row in faulty.of("reject") if row["bridge"]]
    assert rejects
    assert {(row["router"], row["vpn"], row["endpoint"]) for row in rejects} == {
        (fault["router"], fault["vpn"], fault["endpoint"])
    }
    assert all(row["client"] == f"#bridge/{row['bridge']}" for row in rejects)
    offset = faulty.truth["clocks"][fault["router"]]
    times = [(row["ts_ns"] - START_NS - offset) / SECOND_NS for row in rejects]
    assert fault["begin_s"] <= min(times) <= max(times) <= fault["end_s"] + 1
    taken = [row for row in faulty.of("enqueue") if row["endpoint"] == fault["endpoint"]]
    assert taken
    refused = {row["trace_id"] for row in rejects}
    assert not refused & {row["trace_id"] for row in taken}


def test_a_full_queue_refuses_clients(faulty: Any) -> None:
    """All that is refused and came over no bridge is refused by the endpoint of the fault, which takes the rest."""
    (fault,) = faulty.faults("full_queue")
    rejects = [row for row in faulty.of("reject") if not row["bridge"]]
    place = (fault["router"], fault["vpn"], fault["endpoint"])
    assert {(row["router"], row["vpn"], row["endpoint"]) for row in rejects} == {place}
    taken = [
        row for row in faulty.of("enqueue") if (row["router"], row["vpn"], row["endpoint"]) == place
    ]
    assert len(rejects) == len(taken) > 0


def test_nothing_leaves_a_growing_queue(faulty: Any) -> None:
    """The endpoint of the fault keeps what comes; all others give it away."""
    (fault,) = faulty.faults("growing_queue")
    places = {
        event: {(row["router"], row["vpn"], row["endpoint"]) for row in faulty.of(event)}
        for event in ("enqueue", "acknowledge")
    }
    place = (fault["router"], fault["vpn"], fault["endpoint"])
    assert place in places["enqueue"]
    assert place not in places["acknowledge"]


def test_a_refused_bridge_never_comes_up(faulty: Any) -> None:
    """Both ends write down each refusal, nobody else's link is refused, and this one carries nothing."""
    (fault,) = faulty.faults("refused_bridge")
    refusals = faulty.of("link_rejected")
    assert Counter((row["router"], row["vpn"], row["bridge"]) for row in refusals) == {
        (fault["router"], fault["vpn"], fault["bridge"]): fault["value"],
        (fault["peer_router"], fault["peer_vpn"], fault["bridge"]): fault["value"],
    }
    assert not [
        row
        for event in ("link_up", "bridge_send", "bridge_receive")
        for row in faulty.of(event)
        if row["bridge"] == fault["bridge"] and at(fault, row)
    ]


def at(fault: dict[str, Any], row: dict[str, Any]) -> bool:
    """Whether a row stands in the message VPN of a fault."""
    return bool(row["router"] == fault["router"] and row["vpn"] == fault["vpn"])


def ways_of(made: Any) -> dict[str, list[str]]:
    """Topic to the ways of its messages, each message VPN included."""
    ways: dict[str, list[str]] = {}
    for row in made.of("bridge_receive"):
        way = f"{row['path']}>{row['router']}/{row['vpn']}"
        ways.setdefault(row["topic"], []).append(way)
    return ways


def test_a_loop_brings_messages_back(faulty: Any) -> None:
    """Messages of the loop's topic visit a message VPN twice; those of no other topic do."""
    (loop,) = faulty.faults("loop")
    again = {
        topic
        for topic, ways in ways_of(faulty).items()
        if any(len(set(way.split(">"))) < len(way.split(">")) for way in ways)
    }
    assert len(again) == 1
    (topic,) = again
    ring = {
        name
        for way in ways_of(faulty)[topic]
        if len(set(way.split(">"))) < len(way.split(">"))
        for name in way.split(">")
    }
    assert min(ring) == f"{loop['router']}/{loop['vpn']}"


def test_two_ways_meet(faulty: Any) -> None:
    """Messages come into the message VPN over two bridges, and the second copy is discarded."""
    (fault,) = faulty.faults("two_ways")
    discards = [row for row in faulty.of("discard") if row["reason"] == "duplicate"]
    assert discards
    assert all(at(fault, row) for row in discards)
    traces = {row["trace_id"] for row in discards}
    over = Counter(
        row["trace_id"]
        for row in faulty.of("bridge_receive")
        if at(fault, row) and row["trace_id"] in traces
    )
    assert set(over.values()) == {2}


def test_duplicates_reach_the_queue(faulty: Any) -> None:
    """The endpoint of the fault takes each message twice; no other endpoint and no other client does."""
    (fault,) = faulty.faults("duplicate")
    twice = Counter(
        (row["trace_id"], row["router"], row["vpn"], row["endpoint"])
        for row in faulty.of("enqueue")
    )
    places = {place for place, many in twice.items() if many > 1}
    assert {place[1:] for place in places} == {(fault["router"], fault["vpn"], fault["endpoint"])}
    got = Counter(
        (row["trace_id"], row["router"], row["vpn"], row["client"]) for row in faulty.of("deliver")
    )
    clients = {place[1:3] for place, many in got.items() if many > 1}
    assert clients == {(fault["router"], fault["vpn"])}


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


@pytest.fixture(scope="module")
def drifted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A simulation with each kind of drift, and its truth."""
    folder = tmp_path_factory.mktemp("drifted")
    options = Options(vpns=60, rows=16_000, faults=tuple(DRIFT_KINDS))
    return folder, simulate(options, folder)


def test_configurations_differ_as_the_truth_says(
    drifted: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is missing stands in the files and not in the mesh, what is unknown the other way round."""
    monkeypatch.setenv("BRIDGE_PASSWORD", "change-me")
    folder, truth = drifted
    fault = {one["kind"]: one for one in truth["faults"]}
    assert set(fault) == set(DRIFT_KINDS)
    readings = [read(path) for path in (folder / "mesh").glob("*.yaml")]
    assert not [one for each in readings for one in each.problems if one.severity == "error"]
    configs = [each.loaded.config for each in readings if each.loaded is not None]
    vpns = {(one.router.name, name): vpn for one in configs for name, vpn in one.msg_vpns.items()}

    def place(kind: str) -> tuple[str, str]:
        return fault[kind]["router"], fault[kind]["vpn"]

    def filters(kind: str) -> list[str]:
        bridge = vpns[place(kind)].bridges[fault[kind]["bridge"]]
        return [str(one.topic) for one in bridge.remote_subscriptions]

    edges = {(one["to_router"], one["to_vpn"], one["bridge"]): one for one in truth["edges"]}
    assert place("missing_vpn") in vpns
    assert len(vpns) == truth["counts"]["vpns"] + 1
    missing, unknown = fault["missing_bridge"], fault["unknown_bridge"]
    assert missing["bridge"] in vpns[place("missing_bridge")].bridges
    assert (*place("missing_bridge"), missing["bridge"]) not in edges
    assert unknown["bridge"] not in vpns[place("unknown_bridge")].bridges
    assert edges[*place("unknown_bridge"), unknown["bridge"]]["received"] > 0
    assert fault["missing_subscription"]["topic"] in filters("missing_subscription")
    assert fault["unknown_subscription"]["topic"] not in filters("unknown_subscription")


def test_the_traces_know_nothing_of_it(drifted: tuple[Path, dict[str, Any]]) -> None:
    """Every bridge of the truth carried messages, and no more than was sent."""
    _, truth = drifted
    assert all(edge["sent"] == edge["received"] > 0 for edge in truth["edges"])
    assert "discard" not in truth["counts"]["events"]


def test_one_clock_is_wrong(faulty: Any) -> None:
    """The router's clock is off by what the fault says; all others are right within a millisecond."""
    (fault,) = faulty.faults("clock_skew")
    clocks = dict(faulty.truth["clocks"])
    skew = clocks.pop(fault["router"])
    assert skew / 1e9 == pytest.approx(fault["value"], abs=1e-6)
    assert 0.05 <= abs(fault["value"]) <= 5
    assert max(abs(offset) for offset in clocks.values()) < 1_000_000


def test_one_clock_is_set(faulty: Any) -> None:
    """What crosses to the router takes what the fault says longer from then on, and as long as ever before."""
    (fault,) = faulty.faults("clock_moved")
    clocks = faulty.truth["clocks"]
    sent = {
        (row["trace_id"], row["peer_router"], row["peer_vpn"], row["bridge"]): row["ts_ns"]
        for row in faulty.of("bridge_send")
    }
    begin_ns = START_NS + round(fault["begin_s"] * SECOND_NS) + clocks[fault["router"]]
    seen = set()
    for row in faulty.of("bridge_receive"):
        if row["router"] != fault["router"]:
            continue
        took = row["ts_ns"] - sent[row["trace_id"], row["router"], row["vpn"], row["bridge"]]
        skew = clocks[row["router"]] - clocks[row["peer_router"]]
        usual = abs(took - skew) < abs(fault["value"]) * SECOND_NS / 2
        seen.add((row["ts_ns"] >= begin_ns - 5 * SECOND_NS, usual))
    assert (False, True) in seen
    assert (False, False) not in seen
    assert (True, False) in seen


def test_the_skew_shifts_all_rows_of_the_router(faulty: Any) -> None:
    """What crosses to the router seems to take the skew longer, and what comes from it as much less; what
    began there has its origin time by that clock.
    """
    (fault,) = faulty.faults("clock_skew")
    skew = faulty.truth["clocks"][fault["router"]]
    sent = {
        (row["trace_id"], row["peer_router"], row["peer_vpn"], row["bridge"]): row["ts_ns"]
        for row in faulty.of("bridge_send")
    }
    seen = set()
    for row in faulty.of("bridge_receive"):
        key = (row["trace_id"], row["router"], row["vpn"], row["bridge"])
        towards = row["router"] == fault["router"]
        if towards == (row["peer_router"] == fault["router"]):
            continue
        delay = row["ts_ns"] - sent[key] - (skew if towards else -skew)
        assert 0 < delay < 1_000_000_000
        seen.add(towards)
    assert seen == {True, False}
    ingress = [row for row in faulty.of("ingress") if row["router"] == fault["router"]]
    assert all(row["origin_ts_ns"] == row["ts_ns"] for row in ingress)
