"""Meshes that are drawn over a network."""

import re
from typing import Any

import networkx as nx
import numpy as np
import pytest

from vpnrouter.config.load import read
from vpnrouter.config.mesh.check import check_mesh
from vpnrouter.errors import OperationError
from vpnrouter.simulation import mesh, plan, traffic
from vpnrouter.simulation.files import RowGenerator
from vpnrouter.simulation.templates import Templates, Topics


@pytest.mark.parametrize(("vpns", "seed"), [(2, 1), (9, 2), (75, 3), (400, 4)])
def test_domains_are_trees_along_links(vpns: int, seed: int) -> None:
    """There are as many message VPNs as asked for; between any two is one way or none, along links."""
    germany = mesh.load("sndlib/germany50")
    built = mesh.build(germany, vpns, 3, np.random.default_rng(seed))
    assert len(built.sites) == vpns == len({site.name for site in built.sites})
    graph = nx.Graph((one, other) for one, near in enumerate(built.near) for other in near)
    assert nx.is_forest(graph)
    for one, other in graph.edges:
        here, there = built.sites[one], built.sites[other]
        km = built.near[one][other]
        if here.router == there.router:
            assert km == 0
            assert here.vpn != there.vpn
        else:
            assert km == germany.links[here.router][there.router]
            assert here.vpn == there.vpn
    assert sorted(site for sites in built.domains for site in sites) == list(range(vpns))


def test_a_second_bridge_has_a_name_of_its_own() -> None:
    """`bridge` finds the first one again, `new_bridge` makes another."""
    built = mesh.build(mesh.load("sndlib/polska"), 8, 1, np.random.default_rng(1))
    source = 0
    target = next(iter(built.near[source]))
    first = built.bridge(source, target)
    assert built.bridge(source, target) == first
    assert built.both_ways(target, source) == [first]
    second = built.new_bridge(source, target, 1.0)
    assert built.bridge(source, target) == first != second
    names = [built.bridges[number].name for number in (first, second)]
    assert names[1] == f"{names[0]}-2"
    back = built.bridge(target, source)
    assert built.both_ways(source, target) == [first, back]
    local = built.sites[target]
    assert built.client_of(built.bridges[first]) == f"#bridge/{local.name}/{names[0]}"


def test_a_real_network_has_places_links_and_weights() -> None:
    """Names are unique and plain, links go both ways with one length, weights are 1 on average."""
    germany = mesh.load("sndlib/germany50")
    assert len(germany.routers) == len(set(germany.routers)) == 50
    assert all(re.fullmatch(r"[a-z0-9-]{1,32}", name) for name in germany.routers)
    assert sum(len(near) for near in germany.links) == 2 * 88
    for one, near in enumerate(germany.links):
        assert all(germany.links[other][one] == km >= 1 for other, km in near.items())
    assert sum(germany.weights) / 50 == pytest.approx(1)
    assert max(germany.weights) > 2 * min(germany.weights) > 0


def test_networks_without_demands_are_weighted_by_links() -> None:
    """A router with more links begins more traffic; nodes without a name get a number."""
    africa = mesh.load("backbone/africa_nosc")
    by_links = sorted(zip(map(len, africa.links), africa.weights, strict=True))
    assert by_links[0][1] < by_links[-1][1]
    assert len(set(africa.routers)) == len(africa.routers)


def test_all_networks_are_listed() -> None:
    """Each name that is listed is of a file of the package; the well-known ones are among them."""
    names = mesh.names()
    assert len(names) > 400
    assert {"sndlib/germany50", "gabriel/500/0", "backbone/world"} <= set(names)
    assert names == sorted(names)


@pytest.mark.parametrize("name", ["", "sndlib", "nowhere/land", "../data/sndlib/polska", "sndlib/"])
def test_other_names_are_refused(name: str) -> None:
    """A name that is not listed is no way into the file system."""
    with pytest.raises(OperationError, match="no network"):
        mesh.load(name)


def test_configurations_are_those_of_the_mesh(
    calm: Any, faulty: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`vpnrouter check` accepts each file and all together; message VPNs and bridges are those of the truth."""
    monkeypatch.setenv("BRIDGE_PASSWORD", "change-me")
    for made in (calm, faulty):
        readings = [read(path) for path in sorted((made.folder / "mesh").glob("*.yaml"))]
        problems = [one for reading in readings for one in reading.problems]
        assert [one.message for one in problems if one.severity == "error"] == []
        assert made is faulty or problems == []
        loaded = [reading.loaded for reading in readings if reading.loaded is not None]
        assert len(loaded) == made.truth["counts"]["routers"]
        findings = check_mesh(loaded)
        assert [one.message for one in findings if one.severity == "error"] == []
        vpns = {
            (one.config.router.name, name): vpn
            for one in loaded
            for name, vpn in one.config.msg_vpns.items()
        }
        assert len(vpns) == made.truth["counts"]["vpns"]
        bridges = {
            (remote.router, remote.name, router, vpn, name)
            for (router, vpn), config in vpns.items()
            for name, bridge in config.bridges.items()
            for remote in bridge.remote_msg_vpns
        }
        names = ("from_router", "from_vpn", "to_router", "to_vpn", "bridge")
        edges = {tuple(edge[name] for name in names) for edge in made.truth["edges"]}
        # A bridge that is refused is configured, and carries nothing.
        refused = {
            tuple(fault[name] for name in ("peer_router", "peer_vpn", "router", "vpn", "bridge"))
            for fault in made.faults("refused_bridge")
        }
        assert bridges == edges | refused
        assert not edges & refused


def test_check_sees_the_loops_and_none_in_a_calm_mesh(
    calm: Any, faulty: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted loop and the second ways can be seen in the configurations; a calm mesh has none."""
    monkeypatch.setenv("BRIDGE_PASSWORD", "change-me")

    def said(made: Any) -> str:
        readings = [read(path) for path in sorted((made.folder / "mesh").glob("*.yaml"))]
        found = check_mesh([one.loaded for one in readings if one.loaded is not None])
        return "\n".join(one.message for one in found)

    assert "loop: topic" in said(faulty)
    assert "double delivery" in said(faulty)
    for words in ("loop", "double delivery", "redundant", "black hole"):
        assert words not in said(calm)


START_NS = 1_772_352_000 * 10**9


def drawn(seed: int = 1) -> tuple[plan.Plan, RowGenerator, np.ndarray]:
    """A small plan, its generator and its counts."""
    rng = np.random.default_rng(seed)
    built = mesh.build(mesh.load("sndlib/polska"), 10, 1, rng)
    made = plan.draft(built, 600.0, 1.0, 2, rng)
    plan.lay_out(made, 1.0, rng)
    counts = plan.share_out(made, 5_000)
    return made, RowGenerator(made, counts, START_NS, rng), counts


@pytest.mark.parametrize("slices", [1, 3, 50])
def test_slices_hold_everything_once(slices: int) -> None:
    """However the time is cut, each stream has its messages and each message all its rows."""
    made, generator, counts = drawn()
    total = generator.rows
    parts = [generator.draw(600.0 * (at + 1) / slices)[0] for at in range(slices)]
    row = np.concatenate([part.row for part in parts])
    message = np.concatenate([part.message for part in parts])
    assert len(row) == total
    assert len(np.unique(message[message >= 0])) == counts.sum()
    pairs = np.stack([row, message])[:, message >= 0]
    assert len(np.unique(pairs, axis=1).T) == pairs.shape[1]
    events = np.array(made.templates.columns["event"])[row]
    assert (events == "ingress").sum() == counts.sum()
    assert (message < 0).sum() == len(made.states)


def test_a_slice_begins_where_the_last_one_ended() -> None:
    """Messages of a slice come before its end and, but for one a stream, after its begin."""
    made, generator, _ = drawn()
    generator.draw(200.0)
    rows, _ = generator.draw(400.0)
    came = np.array(made.templates.columns["event"])[rows.row] == "ingress"
    at_s = (rows.ts_ns[came] - START_NS) / 1e9
    assert (at_s < 460).all()
    assert ((at_s < 199.9) | (at_s > 400.1)).sum() <= 2 * len(made.streams)


def test_rows_are_ordered_by_router_and_time() -> None:
    """The order goes through the routers one after the other, and through each in time."""
    made, generator, _ = drawn()
    rows, order = generator.draw(600.0)
    router = np.array(made.templates.router)[rows.row[order]]
    assert (np.diff(router) >= 0).all()
    late = np.diff(rows.ts_ns[order])[np.diff(router) == 0]
    assert (late > -2_048).all()


def test_rows_know_their_parents() -> None:
    """Distances to parent and entry row are kept, not the rows, so that templates can be stamped anywhere."""
    templates = Templates()
    first = templates.begin()
    top = templates.add(3, {"event": "ingress", "vpn": "v"})
    middle = templates.add(3, {"event": "enqueue"}, parent=top, entry=top, base_ns=5.0)
    low = templates.add(3, {"event": "deliver"}, parent=middle, entry=top, spread_ns=2.0)
    second = templates.begin()
    alone = templates.add(4, {"event": "link_up"})
    assert (templates.first, templates.length) == ([0, 3], [3, 1])
    assert (first, second) == (0, 1)
    assert [top, middle, low, alone] == [0, 1, 2, 3]
    assert templates.up == [0, 1, 1, 0]
    assert templates.entry == [0, 1, 2, 0]
    assert templates.depth == [0, 1, 2, 0]
    assert templates.router == [3, 3, 3, 4]
    assert templates.columns["event"] == ["ingress", "enqueue", "deliver", "link_up"]
    assert templates.columns["vpn"] == ["v", None, None, None]


def test_a_topic_has_one_number() -> None:
    """Numbers count from 0 in the order of first use."""
    topics = Topics()
    assert [topics.number(name) for name in ("a", "b", "a", "c")] == [0, 1, 0, 2]
    assert topics.names == ["a", "b", "c"]


@pytest.mark.parametrize("number", range(len(traffic.SHAPES)))
def test_all_messages_come_in_time(number: int) -> None:
    """A profile begins and ends when it must, and its two readings are each other's inverse."""
    one = traffic.normal(2.0, 600.0, np.random.default_rng(1))[number]
    shares = np.linspace(0, 1, 50)
    times = one.times(shares)
    assert times[0] == 2.0
    assert times[-1] == 600.0
    assert (np.diff(times) > 0).all()
    assert one.before(times) == pytest.approx(shares)


def test_shapes_differ() -> None:
    """Bursts are uneven, a flat profile is even."""
    flat, *_, bursts, _ = traffic.normal(0.0, 720.0, np.random.default_rng(1))
    cells = np.linspace(0, 720, 721)
    assert np.diff(flat.before(cells)).std() == pytest.approx(0, abs=1e-12)
    load = np.diff(bursts.before(cells)) * 720
    assert load.std() > 0.8


def test_windows_hold_all_and_nothing_else() -> None:
    """Traffic within windows comes there only; the share of a window is what it had before."""
    day = traffic.normal(0.0, 600.0, np.random.default_rng(1))[1]
    windows = [(100.0, 150.0), (300.0, 420.5)]
    some = day.within(windows)
    times = some.times(np.linspace(0, 1, 1_001))
    inside = [(times >= begin) & (times <= end) for begin, end in windows]
    assert np.logical_or(*inside).all()
    part = day.share_within(windows[:1]) / day.share_within(windows)
    assert some.before(np.array([200.0]))[0] == pytest.approx(part)


def built(seed: int = 1) -> tuple[mesh.Mesh, list[traffic.Feed]]:
    """A middling mesh and its feeds."""
    rng = np.random.default_rng(seed)
    made = mesh.build(mesh.load("sndlib/germany50"), 80, 1, rng)
    return made, traffic.build(made, 1.5, 4, rng)


def test_bridges_attract_what_is_wanted_behind_them() -> None:
    """Each bridge that takes a feed on leads to a receiver, and each receiver away from the origin is led to."""
    made, all_feeds = built()
    for feed in all_feeds:
        reached = {feed.origin}
        edge = [feed.origin]
        leaves = set()
        while edge:
            site = edge.pop()
            onward = [made.bridges[number].target for number in feed.onward.get(site, ())]
            if not onward:
                leaves.add(site)
            assert not reached & set(onward)
            reached |= set(onward)
            edge += onward
        assert leaves <= set(feed.receivers) <= reached
        assert feed.receivers


def test_each_tree_link_is_used_both_ways() -> None:
    """So clocks can be compared along each of them."""
    made, _ = built()
    bridged = {(bridge.source, bridge.target) for bridge in made.bridges}
    assert bridged == {(one, other) for one, near in enumerate(made.near) for other in near}


def test_feeds_share_no_topic() -> None:
    """A subscription to one feed matches nothing of another."""
    _, all_feeds = built()
    prefixes = [feed.prefix for feed in all_feeds]
    assert len(set(prefixes)) == len(prefixes)


def test_guaranteed_feeds_cross_by_queues() -> None:
    """A bridge takes persistent messages by the queue that it is bound to, Direct ones by its filters."""
    made, all_feeds = built()
    for feed in all_feeds:
        for numbers in feed.onward.values():
            for number in numbers:
                bridge = made.bridges[number]
                by_queue = feed.mode == traffic.PERSISTENT
                assert (feed.filter in bridge.queue_filters) == by_queue
                assert (feed.filter in bridge.filters) != by_queue
                assert bridge.queue or not by_queue
