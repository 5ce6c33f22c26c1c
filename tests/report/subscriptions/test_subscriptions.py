"""Which subscriptions are held, match nothing, cover each other, or bring what nobody takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame

from vpnrouter.report.schema import Edge, Finding, edge_named
from vpnrouter.report.subscriptions import over_broad as module
from vpnrouter.report.subscriptions import unused
from vpnrouter.report.subscriptions.held import bridge_of, by_client, held, unmet
from vpnrouter.report.subscriptions.over_broad import crossings, wasted
from vpnrouter.report.subscriptions.unused import compared, grouped, unseen_topics


def test_names() -> None:
    """A client's name leads to the bridge, and back."""
    row = {
        "from_router": "core",
        "from_vpn": "yellow",
        "to_router": "edge/1",
        "to_vpn": "blue",
        "bridge": "fares",
    }
    edge = edge_named(row)
    assert edge == Edge("core", "yellow", "edge/1", "blue", "fares")
    assert edge.client == "#bridge/edge/1/blue/fares"
    assert by_client([row]) == {("core", "yellow", edge.client): edge}
    assert bridge_of(edge.client) == "fares"
    assert bridge_of("someone/else") is None


def test_times_and_dialects(mesh: Any) -> None:
    """Each subscription has one row, whatever came and went; gaps do not count."""
    start = mesh.span[0]
    mesh.sub("r/v", "stays", "a/+", None, since=100)
    mesh.sub("r/v", "goes", "a/b", since=100, until=300)
    mesh.sub("r/v", "goes", "keeps", since=100)
    mesh.sub("r/v", "back", "x", since=0, until=100)
    mesh.sub("r/v", "back", "x", since=500)
    mesh.state("unsubscribe", "r/v", "older", "y", 400, "mqtt")
    mesh.sub("r/v", "#bridge/q/v/b", "!a/*", None, since=200)
    mesh.sub("r/v", "shared", "$share/g/a/#", since=0)
    mesh.sub("r/v", "queue", "$queue/q1", since=0)
    mesh.sub("r/v", "crashed", "z", since=100)
    mesh.sub("r/v", "crashed", "z", since=200)
    # A router that stops takes all the clients with it; what one had given up before is not current.
    mesh.sub("r/v", "ends", "early", since=0, until=500)
    mesh.sub("r/v", "ends", "late1", since=0, until=999)
    mesh.sub("r/v", "ends", "late2", since=0, until=999.5)
    rows = held(mesh.digests()["states"], mesh.span).collect()

    def second(time_ns: int | None) -> float | None:
        return None if time_ns is None else (time_ns - start) / 1e9

    found = {
        (row["client"], row["filter"]): (
            row["syntax"],
            second(row["since_ns"]),
            second(row["until_ns"]),
            row["held_ns"] / 1e9,
            row["current"],
        )
        for row in rows
    }
    assert found == {
        ("stays", "a/+"): ("mqtt", 100, None, 900, True),
        ("goes", "a/b"): ("mqtt", 100, 300, 200, False),
        ("goes", "keeps"): ("mqtt", 100, None, 900, True),
        ("back", "x"): ("mqtt", 0, None, 600, True),
        ("older", "y"): ("mqtt", 0, 400, 400, True),
        ("#bridge/q/v/b", "!a/*"): ("smf", 200, None, 800, True),
        ("shared", "$share/g/a/#"): ("mqtt", 0, None, 1000, True),
        ("crashed", "z"): ("mqtt", 100, None, 900, True),
        ("ends", "early"): ("mqtt", 0, 500, 500, False),
        ("ends", "late1"): ("mqtt", 0, 999, 999, True),
        ("ends", "late2"): ("mqtt", 0, 999.5, 999.5, True),
    }
    flags = {row["filter"]: (row["text"], row["exception"]) for row in rows}
    assert flags["!a/*"] == ("a/*", True)
    assert flags["$share/g/a/#"] == ("a/#", False)


def test_looks_at_the_whole_message_vpn(mesh: Any) -> None:
    """A topic that went to others, or to nobody, was there all the same."""
    for filter_ in ("a/b", "a/+", "+/b", "b", "b/+", "+/c", "a", "#", "$share/g/a/+"):
        mesh.sub("r/v", "one", filter_)
        mesh.sub("r/w", "two", filter_)
    mesh.sub("r/w", "two", "+/SYS")
    mesh.use("r/v", "discard", "a/b", 9)
    mesh.use("r/w", "ingress", "$x/SYS", 9)
    digests = mesh.digests()
    rows = unmet(held(digests["states"], mesh.span), digests["uses"]).collect()
    found = {(row["vpn"], row["filter"]) for row in rows}
    everything = {"a/b", "a/+", "+/b", "b", "b/+", "+/c", "a", "#", "$share/g/a/+"}
    assert {filter_ for vpn, filter_ in found if vpn == "w"} == {*everything, "+/SYS"}
    assert {filter_ for vpn, filter_ in found if vpn == "v"} == {"b", "b/+", "+/c", "a"}


def test_unseen_topics() -> None:
    """Chao's bound: none without singles, more with more of them, fewer with pairs."""
    assert unseen_topics(0, 5) == 0
    assert unseen_topics(1, 0) == 0
    assert unseen_topics(3, 0) == 3
    assert unseen_topics(3, 2) == 1


def client(*filters: tuple[str, str], count: int | None = None, name: str = "c") -> dict[str, Any]:
    """A client as the job collects it."""
    listed = [{"filter": text, "syntax": syntax} for text, syntax in filters]
    place = {"router": "r", "vpn": "v", "client": name}
    return {**place, "count": count or len(filters), "filters": listed}


def told(*filters: tuple[str, str]) -> set[tuple[str, str | None, str]]:
    """What is found about one client: kind, filter, detail."""
    return {(one.kind, one.topic, one.detail) for one in compared([client(*filters)])}


def test_pairs() -> None:
    """One finding for each covered filter, and one for each pair of the others that meet."""
    assert told(("a/+", "mqtt"), ("a/b", "mqtt"), ("c", "mqtt")) == {
        ("covered", "a/b", "covered by a/+")
    }
    assert told(("a/+", "mqtt"), ("+/b", "mqtt")) == {
        ("overlapping", "+/b", "a/+ matches a/b as well")
    }
    assert told(("a/b", "mqtt"), ("a/c", "mqtt"), ("b/+", "mqtt")) == set()


def test_dialects() -> None:
    """The same text, or the same topics, in both dialects: one of the two is not needed."""
    assert told(("a/b", "mqtt"), ("a/b", "smf")) == {("covered", "a/b", "covered by a/b (mqtt)")}
    assert told(("a/*", "smf"), ("a/+", "mqtt")) == {("covered", "a/+", "covered by a/* (smf)")}
    # Literal in one dialect, a wildcard in the other.
    assert told(("a/*", "smf"), ("a/*", "mqtt")) == {("covered", "a/*", "covered by a/* (smf)")}


def test_shared() -> None:
    """Shared subscriptions are compared within their group."""
    assert told(("$share/g/a/#", "mqtt"), ("$share/h/a/#", "mqtt"), ("a/#", "mqtt")) == set()
    assert told(("$share/g/a/#", "mqtt"), ("$share/g/a/b", "mqtt")) == {
        ("covered", "$share/g/a/b", "covered by $share/g/a/#")
    }


def test_malformed_filters_are_passed_over() -> None:
    """What the router would have refused says nothing."""
    assert told(("a+", "mqtt"), ("#", "mqtt")) == set()


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients beyond the bounds are named, the small ones first examined."""
    monkeypatch.setattr(unused, "REPORT_CLIENT_FILTERS", 3)
    monkeypatch.setattr(unused, "REPORT_FILTER_PAIRS", 2)
    rows = [
        client(("a", "mqtt"), ("b", "mqtt"), ("#", "mqtt"), name="three"),
        client(("a", "mqtt"), ("#", "mqtt"), name="two"),
        client(("a", "mqtt"), ("#", "mqtt"), count=9, name="nine"),
    ]
    found = compared(rows)
    assert [(one.kind, one.client) for one in found] == [
        ("covered", "two"),
        ("not_examined", "nine"),
        ("not_examined", "three"),
    ]


def lost(mesh: Any) -> dict[tuple[str, str, str], bool]:
    """Wasted crossings as (from, to, topic), and whether they are inherited."""
    uses = mesh.digests()["uses"]
    found = wasted(crossings(uses), uses)
    return {
        (
            f"{row['from_router']}/{row['from_vpn']}",
            f"{row['to_router']}/{row['to_vpn']}",
            row["topic"],
        ): row["inherited"]
        for row in (found.collect() if found is not None else [])
    }


def test_what_is_of_use(mesh: Any) -> None:
    """A topic is of use where it is received, sent on to where it is, or sent on into the unknown."""
    for topic in ("delivered", "queued", "onward", "nobody", "passed"):
        mesh.publish("a/v", topic)
        mesh.cross("a/v", "b/v", topic)
    mesh.deliver("b/v", "one", "delivered")
    mesh.use("b/v", "enqueue", "queued", endpoint="q")
    for topic in ("onward", "passed"):
        mesh.cross("b/v", "c/v", topic)
        mesh.cross("c/v", "d/v", topic)
    mesh.deliver("d/v", "one", "onward")
    # Delivered elsewhere under the same name, in a message VPN that it does not lead to.
    mesh.deliver("e/v", "one", "nobody")
    # Messages that go round, one topic with a receiver on the round.
    for topic in ("round", "used"):
        mesh.publish("x/v", topic)
        for start, goal in (("x/v", "y/v"), ("y/v", "z/v"), ("z/v", "y/v"), ("z/v", "x/v")):
            mesh.cross(start, goal, topic)
    mesh.deliver("x/v", "one", "used")
    # Routers that do not trace, topics that are renamed on the way.
    mesh.cross("a/v", "b/v", "dark")
    mesh.cross("b/v", "dark/v", "dark", seen="sender")
    mesh.cross("a/v", "b/v", "renamed")
    mesh.cross("b/v", "c/v", "renamed", seen="sender")
    mesh.cross("b/v", "c/v", "otherwise", seen="receiver")
    mesh.deliver("c/v", "one", "otherwise")
    # Nothing is known of where this came from, only that nobody has it.
    mesh.cross("dark/v", "b/v", "light", seen="receiver")
    assert lost(mesh) == {
        ("a/v", "b/v", "nobody"): False,
        ("a/v", "b/v", "passed"): False,
        ("b/v", "c/v", "passed"): True,
        ("c/v", "d/v", "passed"): True,
        ("x/v", "y/v", "round"): False,
        ("y/v", "z/v", "round"): True,
        ("z/v", "y/v", "round"): True,
        ("z/v", "x/v", "round"): True,
        ("dark/v", "b/v", "light"): False,
    }


def test_a_large_mesh_is_searched_by_spark(mesh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It finds the same, and a way with more steps than it follows counts as of use."""
    monkeypatch.setattr(module, "REPORT_WAYS_ON", 0)
    for at in range(3):
        mesh.cross(f"r{at}/v", f"r{at + 1}/v", "far")
        mesh.cross(f"r{at}/v", f"r{at + 1}/v", "unwanted")
    mesh.deliver("r3/v", "one", "far")
    mesh.cross("r0/v", "r1/v", "nobody")
    ends = {("r2/v", "r3/v", "unwanted"), ("r0/v", "r1/v", "nobody")}
    on_the_way = {("r0/v", "r1/v", "unwanted"), ("r1/v", "r2/v", "unwanted")}
    assert lost(mesh).keys() == ends | on_the_way
    monkeypatch.setattr(module, "HOPS", 1)
    assert lost(mesh).keys() == ends


def test_counts_of_both_ends(mesh: Any) -> None:
    """Rows of the two routers meet; each end keeps its own figures."""
    mesh.cross("a/v", "b/v", "t", 10, seen="sender")
    mesh.cross("a/v", "b/v", "t", 8, seen="receiver")
    (row,) = crossings(mesh.digests()["uses"]).collect()
    assert tuple(row) == ("a", "v", "b", "v", "b", "t", 10, 100, 8, 80)


def silent(mesh: Any) -> None:
    """Describe subscriptions that match nothing, for good reasons and for bad ones."""
    mesh.publish("r/v", "a/b", 1000)
    mesh.deliver("r/v", "busy", "a/b", 1000)
    mesh.sub("r/v", "busy", "a/b")
    mesh.sub("r/v", "idle", "x/+", since=0)
    mesh.sub("r/v", "bare", "x", since=0)
    # There for a moment, or made just before the end.
    mesh.sub("r/v", "short", "x/y", since=100, until=105)
    mesh.sub("r/v", "late", "x/y", since=950)
    # Given up for another one: nothing is left to be done.
    mesh.sub("r/v", "changed", "x/old", since=0, until=500)
    mesh.sub("r/v", "changed", "a/b", since=0)
    # Others of the group get the messages, or the session is away.
    mesh.sub("r/v", "shares", "$share/g/a/+")
    # Hardly any traffic.
    mesh.publish("r/quiet", "a/b", 90)
    mesh.sub("r/quiet", "idle", "x")
    # No traffic at all.
    mesh.sub("r/dead", "idle", "x")
    # Exceptions are to match nothing that comes.
    mesh.sub("r/v", "#bridge/q/v/b", "!x/*", None)
    mesh.sub("r/v", "#bridge/q/v/b", "x/>", None)
    # A silent one that another one covers is no second finding.
    mesh.sub("r/v", "twice", "y/#")
    mesh.sub("r/v", "twice", "y/z")


def sampled(mesh: Any) -> None:
    """Describe traffic from before a subscription, and traffic of which only a sample was traced."""
    mesh.publish("half/v", "a/b", 200)
    mesh.sub("half/v", "half", "x", since=550)
    mesh.sub("half/v", "most", "y", since=250)
    for weight, name in ((100_000.0, "sampled"), (None, "unknown")):
        for vpn in ("known", "varied"):
            mesh.publish(f"{name}/{vpn}", "a/b", 1000, weight=weight)
            mesh.sub(f"{name}/{vpn}", "idle", "x")
        for number in range(3):
            mesh.publish(f"{name}/varied", f"rare/{number}", 1, weight=weight)


def covering(mesh: Any) -> None:
    """Describe clients whose filters cover each other."""
    mesh.sub("many/v", "one", "a/#")
    mesh.sub("many/v", "one", "a/b")
    mesh.sub("many/v", "one", "a/c", since=0, until=500)
    mesh.sub("many/v", "two", "a/d")
    mesh.sub("many/v", "#bridge/q/v/b", "a/>", None)
    mesh.sub("many/v", "#bridge/q/v/b", "!a/b", None)
    mesh.sub("many/v", "#bridge/q/v/b", "a/*", None)
    mesh.sub("many/v", "plain", "x")
    mesh.sub("many/v", "plain", "x", "smf")


def sound(mesh: Any) -> None:
    """Describe a ring in which what is subscribed is published and what crosses is received."""
    nodes = [f"r{number}/v" for number in range(6)]
    for at, node in enumerate(nodes):
        mesh.sub(node, f"c{at}", "orders/+/new")
        mesh.sub(node, f"c{at}", f"orders/{at}/new")
        mesh.sub(node, f"c{at}", "$share/g/orders/#")
        mesh.publish(node, f"orders/{at}/new", 200)
        mesh.deliver(node, f"c{at}", f"orders/{at}/new", 200)
        # A ring in both directions; what comes is received and goes no farther.
        for other in (nodes[at - 1], nodes[(at + 1) % len(nodes)]):
            mesh.bridge(node, other, "orders/>")
            mesh.cross(node, other, f"orders/{at}/new", 200)
            mesh.deliver(other, f"c{nodes.index(other)}", f"orders/{at}/new", 200)


def broad(mesh: Any) -> None:
    """Describe a bridge that brings too much, and one that passes it on."""
    mesh.bridge("a/v", "b/v", ">")
    mesh.bridge("b/v", "c/v", ">")
    for number in range(10):
        topic = f"orders/{number}/new"
        mesh.publish("a/v", topic, 20)
        mesh.cross("a/v", "b/v", topic, 20)
        mesh.deliver("b/v", "one", topic, 20)
    mesh.publish("a/v", "logs/x", 300)
    mesh.cross("a/v", "b/v", "logs/x", 300)
    mesh.cross("b/v", "c/v", "logs/x", 300)
    mesh.cross("b/v", "c/v", "orders/1/new", 20)
    mesh.deliver("c/v", "two", "orders/1/new", 20)


Found = Callable[..., list[Finding]]


@pytest.fixture(scope="module")
def all_found(digest_of: Callable[..., DataFrame], mesh_type: Any) -> list[Finding]:
    """What is found in one mesh of several parts, which have no router in common."""
    mesh = mesh_type(digest_of)
    assert mesh.find() == [], "nothing in, nothing out"
    for part in (silent, sampled, covering, sound, broad):
        part(mesh)
    found: list[Finding] = mesh.find()
    return found


@pytest.fixture
def found_at(all_found: list[Finding]) -> Found:
    """The findings at some routers, of one kind only if it is named."""
    return lambda *routers, kind=None: [
        one for one in all_found if one.router in routers and kind in {None, one.kind}
    ]


def test_only_well_founded_ones(found_at: Found) -> None:
    """Held long enough, while there was traffic, and matching none of it."""
    found = found_at("r", kind="never_matched")
    assert {(one.vpn, one.client, one.bridge, one.topic) for one in found} == {
        ("v", "idle", None, "x/+"),
        ("v", "bare", None, "x"),
        ("v", "#bridge/q/v/b", "b", "x/>"),
        ("v", "twice", None, "y/#"),
    }
    one = next(one for one in found if one.client == "idle")
    assert (one.severity, one.router, one.messages, one.value) == ("info", "r", 1000, 1000.0)
    assert "1,000 s" in one.detail
    assert {one.severity for one in found if one.bridge} == {"warning"}


def test_traffic_and_sampling(found_at: Found) -> None:
    """Messages from before a subscription say nothing about it; nor does silence where not all was traced
    and topics seen once say that there were others.
    """
    found = found_at("half", "sampled", "unknown", kind="never_matched")
    assert {(one.router, one.vpn, one.client, one.messages) for one in found} == {
        ("half", "v", "most", 140),
        ("sampled", "known", "idle", 1000),
        ("unknown", "known", "idle", 1000),
    }


def idle(client: str, topic: str, **more: Any) -> Finding:
    """A finding `never_matched`."""
    told = {"router": "r", "vpn": "v", "messages": 100, "value": 60.0, "first_ns": 5, "last_ns": 9}
    return Finding(kind="never_matched", severity="info", client=client, topic=topic, **told | more)


PATTERNS = {
    "a fleet": ([(f"c{at}", f"cmd/{at}/#") for at in range(1_000)], [("cmd/*/#", 1_000)]),
    "the same filter": ([(f"c{at}", "cmd/all") for at in range(12)], [("cmd/all", 12)]),
    "the last level": ([(f"c{at}", f"reply/{at}") for at in range(10)], [("reply/*", 10)]),
    "too few": ([(f"c{at}", f"cmd/{at}") for at in range(9)], []),
    "two levels differ": ([(f"c{at}", f"{at}/{at}/x") for at in range(30)], []),
    "two fleets": (
        [(f"c{at}", f"a/{at}") for at in range(10)] + [(f"d{at}", f"b/{at}") for at in range(20)],
        [("b/*", 20), ("a/*", 10)],
    ),
    "two subscriptions each": (
        [(f"c{at}", f"{kind}/{at}") for at in range(10) for kind in ("get", "set")],
        [("get/*", 10), ("set/*", 10)],
    ),
}


@pytest.mark.parametrize("case", PATTERNS)
def test_patterns_of_clients_are_one_finding(case: str) -> None:
    """Of clients that each wait for something of their own; the rest are told one by one."""
    held, patterns = PATTERNS[case]
    bridge = idle("#bridge/q/v/b", "cmd/0/#", bridge="b")
    found = grouped([bridge, *(idle(*one, messages=100 + at) for at, one in enumerate(held))])
    groups = [one for one in found if one.client is None]
    assert [one.topic for one in groups] == [topic for topic, _ in patterns]
    for one, (topic, clients) in zip(groups, patterns, strict=True):
        assert one.detail.startswith(f"{topic}: {clients:,} clients hold such a subscription")
        assert (one.severity, one.router, one.first_ns, one.last_ns) == ("info", "r", 5, 9)
    assert bridge in found
    assert len(found) == len(groups) + 1 + len(held) - sum(clients for _, clients in patterns)


def test_other_places_are_other_groups() -> None:
    """Five here and five there are no pattern."""
    found = [idle(f"c{at}", f"cmd/{at}", vpn="v" if at < 5 else "w") for at in range(10)]
    assert grouped(found) == found


def test_filters_that_cover_each_other(found_at: Found) -> None:
    """Current subscriptions only, by client."""
    found = found_at("many")
    assert {(one.kind, one.client, one.bridge, one.topic) for one in found} == {
        ("covered", "one", None, "a/b"),
        ("covered", "#bridge/q/v/b", "b", "a/*"),
        ("covered", "plain", None, "x"),
    }
    assert {one.severity for one in found} == {"info"}


def test_a_sound_mesh(found_at: Found) -> None:
    """What is subscribed is published, what crosses is received: nothing but remarks."""
    found = found_at("r0", "r1", "r2", "r3", "r4", "r5")
    assert {one.kind for one in found} == {"covered"}
    assert len(found) == 6


def test_a_broad_bridge(found_at: Found) -> None:
    """A subscription that brings too much is one finding, on the edge where the waste begins."""
    (one,) = found_at("a", "b", "c")
    assert (one.kind, one.router, one.peer_router, one.topic) == ("over_broad", "b", "a", ">")
    assert (one.detail, one.value) == ("orders/*/new", 0.6)
