"""The graph of a mesh: loops, hop limits and double delivery, compared with naive searches."""

import random
import runpy
from collections import deque
from pathlib import Path
from typing import Any

from hypothesis import given, note
from hypothesis import strategies as st

from vpnrouter.config.mesh.double_delivery import DoubleSearch, needs_two_remotes
from vpnrouter.config.mesh.graph import Budget
from vpnrouter.config.mesh.loops import report_loops
from vpnrouter.config.problem_list import MeshProblems
from vpnrouter.topics.grammar import SMF
from vpnrouter.topics.oracle import oracle_matches

KIT = runpy.run_path(str(Path(__file__).with_name("mesh_kit.py")))
bridge = KIT["bridge"]
vpn = KIT["vpn"]
mesh = KIT["mesh"]
graph_of = KIT["graph_of"]


def test_mapping_both_ways() -> None:
    """A rule for the way out holds for the bridge that leads back over the same connection."""
    graph = graph_of(
        mesh(
            {
                "a/v": vpn({"in": bridge("b/v", filters=["w"])}),
                "b/v": vpn(
                    {
                        "in": bridge(
                            "a/v",
                            filters=["w"],
                            topic_mapping=[{"add_prefix": "p/", "direction": "out"}],
                        )
                    }
                ),
            }
        )
    )
    assert [each.mapped for each in graph.crossings] == [True, False]
    assert not graph.carries(graph.crossings[0], "w")


def test_fits() -> None:
    """A topic that is too long for one message VPN does not pass it."""
    graph = graph_of(mesh({"a/v": vpn(max_topic_levels=2), "b/v": vpn(max_topic_bytes=4)}))
    assert graph.fits("a/b", [0, 1])
    assert not graph.fits("a/b/c", [0])
    assert not graph.fits("abcde", [1])


def test_disabled_message_vpn_is_left_out() -> None:
    """A message VPN that is disabled is no place to go to."""
    graph = graph_of(mesh({"a/v": vpn(), "b/v": vpn(enabled=False)}))
    assert [each.name for each in graph.vpns] == ["a/v"]


told = KIT["told"]


def chain(length: int, **last: Any) -> dict[str, Any]:
    """`length` bridges in a row; `last` are keys of the last one."""
    names = [f"r{number}/v" for number in range(length + 1)]
    data = {names[0]: vpn()}
    for number in range(1, length + 1):
        more = last if number == length else {}
        data[names[number]] = vpn({"back": bridge(names[number - 1], filters=["w/>"], **more)})
    return data


def test_chain_longer_than_the_limit() -> None:
    """What has to cross nine bridges with the usual limit of eight never arrives."""
    assert told(mesh(chain(8)), about="hop limit") == []
    (only,) = told(mesh(chain(9)), about="hop limit")
    assert only.startswith("r9.yaml:")
    assert ": warning: msg_vpns.v.bridges.back: hop limit: topic w/x published in r0/v" in only
    assert "r8/v -> r9/v is 9 bridges, and max_ttl is 8" in only


def test_limit_as_written() -> None:
    """The finding stands at max_ttl where it is written."""
    (only,) = told(mesh(chain(3, max_ttl=2)), about="hop limit")
    assert "msg_vpns.v.bridges.back.max_ttl: hop limit" in only
    assert "r0/v -> r1/v -> r2/v -> r3/v is 3 bridges, and max_ttl is 2" in only
    assert told(mesh(chain(3, max_ttl=3)), about="hop limit") == []


def test_shorter_way() -> None:
    """What comes by a shorter way as well is not lost; other topics are."""
    data = chain(3, max_ttl=2)
    data["r3/v"]["bridges"]["short"] = bridge("r0/v", filters=["w/>"])
    assert told(mesh(data), about="hop limit") == []
    data["r3/v"]["bridges"]["short"]["remote_subscriptions"] = ["w/y/>"]
    assert len(told(mesh(data), about="hop limit")) == 1


def test_shorter_way_for_the_example() -> None:
    """What comes another way is no witness, though the chain would bring more."""
    data = chain(3, max_ttl=2)
    data["r3/v"]["bridges"]["short"] = bridge("r0/v", filters=["w/*"])
    assert told(mesh(data), about="hop limit") == []


def test_nothing_travels_the_chain() -> None:
    """A chain that no topic travels whole loses none."""
    data = chain(3, max_ttl=2)
    data["r2/v"]["bridges"]["back"]["remote_subscriptions"] = ["v/>"]
    assert told(mesh(data), about="hop limit") == []


def test_alike_are_told_once() -> None:
    """A chain far too long is one finding, with the number of bridges that lose the topic."""
    (only,) = told(mesh(chain(12)), about="hop limit")
    assert only.endswith("; 3 more bridges keep the topic out so")


def ring(*filters: str, **more: Any) -> dict[str, Any]:
    """A ring of message VPNs; the bridge from each to the next has one of the filters."""
    names = [f"{letter}/v" for letter in "abcdefgh"[: len(filters)]]
    return {
        name: vpn({"round": bridge(names[index - 1], filters=[filters[index - 1]], **more)})
        for index, name in enumerate(names)
    }


def test_ring() -> None:
    """A topic that all bridges of a ring attract goes round; it is a note that says what stops it."""
    (only,) = told(mesh(ring("w/>", "*/x/>", "w/x/*")), about="loop")
    assert ": note: msg_vpns.v.bridges.round: loop: topic w/x/x published in a/v" in only
    assert "a/v -> b/v -> c/v -> a/v; the visited path stops it in c/v" in only


def test_ring_without_a_common_topic() -> None:
    """Bridges in a ring are no loop as long as no topic passes all of them."""
    assert told(mesh(ring("w/>", "*/x/>", "w/y/*")), about="loop") == []


def test_pair_is_no_loop() -> None:
    """A bridge each way between two message VPNs is the usual bi-directional bridge."""
    assert told(mesh(ring(">", ">"))) == []


def test_hop_limit_below_the_ring() -> None:
    """Nothing goes all the way round where the hop limit ends it before."""
    assert told(mesh(ring(">", ">", ">", max_ttl=2)), about="loop") == []


def test_full_mesh_is_one_tangle() -> None:
    """All loops of one topic among the same message VPNs are told once."""
    names = [f"{letter}/v" for letter in "abcde"]
    data = {
        name: vpn(
            {f"from-{other[0]}": bridge(other, filters=[">"]) for other in names if other != name}
        )
        for name in names
    }
    (only,) = told(mesh(data), about="loop: ")
    assert only.endswith("; 2 more message VPNs are part of such loops")


def test_loop_that_nobody_can_enter() -> None:
    """A ring round which only topics go that nobody may publish there is left alone."""
    data = ring("w", "w", "w")
    for each in data.values():
        each["acl_profiles"] = {"default": {"publish_topic": {"default_action": "disallow"}}}
    assert told(mesh(data), about="loop") == []
    del data["b/v"]["acl_profiles"]
    (only,) = told(mesh(data), about="loop: ")
    assert "published in b/v" in only


FILTERS = ["a", "a/*", "a/>", ">", "*/b", "*", "a/b", "*/*/c"]
TOPICS = ["a", "b", "a/b", "c/b", "a/c", "a/b/c", "x/x/c"]


@st.composite
def meshes(draw: st.DrawFn, limits: list[int]) -> dict[str, dict[str, Any]]:
    """Three to five message VPNs with some bridges between them."""
    names = [f"{letter}/v" for letter in "abcde"[: draw(st.integers(3, 5))]]
    data = {name: vpn() for name in names}
    for number in range(draw(st.integers(3, 10))):
        target, source = draw(st.permutations(names))[:2]
        data[target]["bridges"][f"n{number}"] = bridge(
            source,
            filters=draw(st.lists(st.sampled_from(FILTERS), min_size=1, max_size=2, unique=True)),
            max_ttl=draw(st.sampled_from(limits)),
        )
    return data


def goes_round(
    data: dict[str, dict[str, Any]], way: tuple[str, ...], topic: str, least: int = 3
) -> list[tuple[str, ...]]:
    """The ways back to the first message VPN of `way`, through `least` message VPNs or more."""
    found: list[tuple[str, ...]] = []
    for target, msg_vpn in data.items():
        for each in msg_vpn["bridges"].values():
            source = each["remote_msg_vpns"][0]
            if (
                f"{source['router']}/{source['name']}" != way[-1]
                or len(way) > each["max_ttl"]
                or not any(
                    oracle_matches(text, SMF, topic) for text in each["remote_subscriptions"]
                )
            ):
                continue
            if target == way[0] and len(way) >= least:
                found.append((*way, target))
            elif target not in way:
                found += goes_round(data, (*way, target), topic, least)
    return found


def loops_of(data: dict[str, dict[str, Any]]) -> list[tuple[str, tuple[str, ...]]]:
    """The loops that are told, each as its topic and the names of its message VPNs."""
    graph = graph_of(mesh(data))
    found = []
    for loop in report_loops(MeshProblems(), graph, Budget(graph, 10_000_000, 1)):
        crossings = [graph.crossings[number] for number in loop.crossings]
        names = [graph.vpns[each.source].name for each in crossings]
        found.append((loop.topic, (*names, names[0])))
    return found


@given(meshes([1, 2, 3, 4, 8]))
def test_told_loops_are_loops(data: dict[str, dict[str, Any]]) -> None:
    """A topic that is said to go round does so step by step."""
    for topic, way in loops_of(data):
        assert way in goes_round(data, way[:1], topic)


@given(meshes([8]))
def test_no_tangle_is_missed(data: dict[str, dict[str, Any]]) -> None:
    """Where some topic goes round, a loop is told."""
    if any(goes_round(data, (name,), topic) for name in data for topic in TOPICS):
        assert loops_of(data)


def triangle(first: str, second: str, third: str) -> list[str]:
    """C takes from A, directly and by way of B."""
    lines: list[str] = told(
        mesh(
            {
                "a/v": vpn(),
                "b/v": vpn({"from-a": bridge("a/v", filters=[first])}),
                "c/v": vpn(
                    {
                        "from-a": bridge("a/v", filters=[second]),
                        "from-b": bridge("b/v", filters=[third]),
                    }
                ),
            }
        ),
        about="twice",
    )
    return lines


def test_two_ways() -> None:
    """A topic that two bridges bring is redundant traffic, told with topic, ways and place."""
    (only,) = triangle("w/>", "w/*/x", "*/news/>")
    assert only.startswith("c.yaml:")
    assert ": note: msg_vpns.v.bridges.from-b: redundant traffic: topic w/news/x" in only
    assert (
        "a/v -> c/v (bridge from-a, Direct) and a/v -> b/v -> c/v (bridge from-b, Direct)" in only
    )


def test_ways_of_different_topics() -> None:
    """Ways that share no topic are none."""
    assert triangle("w/>", "w/*/x", "*/news") == []
    assert triangle("w/a/>", "w/>", "w/b/>") == []


def test_exception_parts_the_ways() -> None:
    """An exception can take from one bridge what the other one brings."""
    data = {
        "a/v": vpn(),
        "b/v": vpn({"from-a": bridge("a/v", filters=["w/>"])}),
        "c/v": vpn(
            {
                "from-a": bridge("a/v", filters=["w/>", "!w/b/>"]),
                "from-b": bridge("b/v", filters=["w/b/>"]),
            }
        ),
    }
    assert told(mesh(data), about="twice") == []
    data["c/v"]["bridges"]["from-a"]["remote_subscriptions"].pop()
    assert len(told(mesh(data), about="twice")) == 1


def test_shared_subscriptions_say_nothing() -> None:
    """Members of a group take turns, and a selector may part the ways: nothing is claimed."""
    assert triangle("w/>", "#share/g/w/>", "w/>") == []
    loaded = mesh(
        {
            "a/v": vpn(),
            "b/v": vpn(
                {
                    "one": bridge("a/v", filters=["w"]),
                    "two": bridge("a/v", filters=[{"topic": "w", "selector": "n > 1"}]),
                }
            ),
        }
    )
    assert told(loaded, about="twice") == []


def test_mapped_topics_say_nothing() -> None:
    """Behind a topic mapping a topic has another name: nothing is claimed."""
    mapped = bridge("a/v", filters=["w/>"], topic_mapping=[{"add_prefix": "a/"}])
    loaded = mesh(
        {
            "a/v": vpn(),
            "b/v": vpn({"from-a": mapped}),
            "c/v": vpn(
                {
                    "from-a": bridge("a/v", filters=["w/>"]),
                    "from-b": bridge("b/v", filters=["w/>"]),
                }
            ),
        }
    )
    assert told(loaded, about="twice") == []


def queue_and_direct(subscription: str, filter_: str) -> list[str]:
    """One bridge that takes from a queue and by remote subscription."""
    both = bridge("a/v", filters=[filter_], queue="q")
    queues = {"q": {"subscriptions": [subscription]}}
    loaded = mesh({"a/v": vpn(queues=queues), "b/v": vpn({"from-a": both})})
    lines: list[str] = told(loaded, about="double")
    return lines


def test_queue_and_direct_on_one_bridge() -> None:
    """What the queue holds and the remote subscriptions attract is really delivered twice."""
    (only,) = queue_and_direct("orders/>", "*/new")
    assert ": warning: msg_vpns.v.bridges.from-a.remote_msg_vpns[0].queue_binding:" in only
    assert "topic orders/new published in a/v reaches b/v twice" in only
    assert "(bridge from-a, by queue q)" in only
    assert queue_and_direct("orders/>", "weather/>") == []


def test_fail_over_is_one_way() -> None:
    """The remotes of one bridge are alternatives, so they bring nothing twice."""
    data = {
        "a/v": vpn(),
        "b/v": vpn({"from-a": bridge("a/v", filters=["w"])}),
        "c/v": vpn({"either": bridge("a/v", "b/v", filters=["w"])}),
    }
    assert told(mesh(data), about="twice") == []
    data["c/v"]["bridges"]["from-a"] = bridge("a/v", filters=["w"])
    lines = told(mesh(data), about="twice")
    assert lines
    data["c/v"]["bridges"]["either"]["remote_msg_vpns"].reverse()
    data["c/v"]["bridges"]["either"]["remote_msg_vpns"][1]["name"] = "gone"
    (only,) = told(mesh(data), about="twice")
    assert "while bridge either takes from v at b.example" in only


def test_two_remotes_of_one_bridge_at_a_time() -> None:
    """Ways that need two remotes of one bridge at a time are not together."""
    graph = graph_of(
        mesh(
            {
                "a/v": vpn(),
                "b/v": vpn({"from-a": bridge("a/v", filters=["w"])}),
                "c/v": vpn({"either": bridge("a/v", "b/v", filters=["w"])}),
            }
        )
    )
    first, second, third = graph.crossings
    assert needs_two_remotes([first, second, third])
    assert not needs_two_remotes([first, third, third])


def test_nobody_publishes() -> None:
    """Ways of a topic that nobody may publish are none."""
    closed = {"publish_topic": {"exceptions": ["other/>"]}}
    data = {
        "a/v": vpn(acl_profiles={"default": {"publish_topic": {"default_action": "disallow"}}}),
        "b/v": vpn({"from-a": bridge("a/v", filters=["w"])}),
        "c/v": vpn(
            {"from-a": bridge("a/v", filters=["w"]), "from-b": bridge("b/v", filters=["w"])}
        ),
    }
    assert told(mesh(data), about="twice") == []
    del data["a/v"]["acl_profiles"]
    data["a/v"]["client_usernames"]["bridge"]["acl_profile"] = "closed"
    data["a/v"]["acl_profiles"] = {"closed": closed}
    assert told(mesh(data), about="twice") == []


DOUBLE_FILTERS = ["a", "a/*", "a/>", ">", "*/b", "b/>", "*", "a/b*", "a/b", "*/*/c"]
EXCEPTIONS = ["!a/b", "!a/>", "!*/b"]
DOUBLE_TOPICS = ["a", "b", "c", "a/b", "a/c", "b/b", "a/bc", "a/b/c", "x/x/c", "x/b"]


@st.composite
def meshes_with_doubles(draw: st.DrawFn) -> dict[str, dict[str, Any]]:
    """Three to five message VPNs with some bridges, queues and rules between them."""
    names = [f"{letter}/v" for letter in "abcde"[: draw(st.integers(3, 5))]]
    data = {name: vpn() for name in names}
    for name in names:
        if draw(st.integers(0, 4)) == 0:
            rule = {
                "default_action": "disallow",
                "exceptions": draw(st.lists(st.sampled_from(DOUBLE_FILTERS), max_size=1)),
            }
            data[name]["acl_profiles"] = {"default": {"publish_topic": rule}}
        if draw(st.integers(0, 3)) == 0:
            data[name]["queues"] = {"q": {"subscriptions": [draw(st.sampled_from(DOUBLE_FILTERS))]}}
    for number in range(draw(st.integers(1, 8))):
        target, source = draw(st.permutations(names))[:2]
        filters = draw(st.lists(st.sampled_from(DOUBLE_FILTERS), max_size=2, unique=True))
        if filters:
            filters += draw(st.lists(st.sampled_from(EXCEPTIONS), max_size=1))
        queue = "q" if "queues" in data[source] and draw(st.booleans()) else None
        data[target]["bridges"][f"n{number}"] = bridge(
            source, filters=filters, queue=queue, max_ttl=draw(st.sampled_from([1, 2, 3, 8]))
        )
    return data


def attracted(filters: list[str], topic: str) -> bool:
    """Whether filters with their exceptions match a topic, by the slow matcher."""
    hits = [
        text.startswith("!") for text in filters if oracle_matches(text.lstrip("!"), SMF, topic)
    ]
    return False in hits and True not in hits


def may_publish(data: dict[str, Any], topic: str) -> bool:
    """Whether a client of the message VPN may publish the topic."""
    rule = data.get("acl_profiles", {}).get("default", {}).get("publish_topic")
    return rule is None or attracted(rule["exceptions"], topic)


def arrivals(
    data: dict[str, dict[str, Any]], origin: str, topic: str, dropping: random.Random | None
) -> dict[str, list[tuple[str, ...]]]:
    """The copies of one message that reach each message VPN, each as the way that it took.

    With `dropping`, which also draws the order of arrival, only the first copy goes on.
    """
    found: dict[str, list[tuple[str, ...]]] = {name: [] for name in data}
    waiting: deque[tuple[str, tuple[str, ...], tuple[str, ...]]] = deque([(origin, (origin,), ())])
    while waiting:
        if dropping is not None:
            waiting.rotate(dropping.randrange(len(waiting)))
        here, visited, way = waiting.popleft()
        if way:
            found[here].append(way)
            if dropping is not None and len(found[here]) > 1:
                continue
        for target, msg_vpn in data.items():
            for name, each in msg_vpn["bridges"].items():
                remote = each["remote_msg_vpns"][0]
                if f"{remote['router']}/{remote['name']}" != here or target in visited:
                    continue
                if len(visited) > each["max_ttl"]:
                    continue
                if attracted(each["remote_subscriptions"], topic):
                    waiting.append((target, (*visited, target), (*way, f"{target} {name}")))
                queue = remote.get("queue_binding")
                if queue and attracted(data[here]["queues"][queue]["subscriptions"], topic):
                    waiting.append((target, (*visited, target), (*way, f"{target} {name} q")))
    return found


@given(meshes_with_doubles(), st.randoms(use_true_random=False))
def test_agrees_with_a_simulator(data: dict[str, dict[str, Any]], order: random.Random) -> None:
    """What is claimed to arrive twice does so in a simulation, and what arrives twice there is claimed."""
    graph = graph_of(mesh(data))
    names = [each.name for each in graph.vpns]
    doubled = set()
    for target in range(len(names)):
        search = DoubleSearch(graph, target)
        budget = Budget(graph, 1_000_000, 1)
        budget.begin()
        assert search.run(budget)
        for double in search.found.values():
            doubled.add(names[target])
            origin = names[double.origin]
            note(f"{double.topic} {origin} -> {names[target]}")
            assert may_publish(data[origin], double.topic)
            ways = []
            for route, by_queue in zip(double.routes, double.by_queue, strict=True):
                passed = [graph.crossings[number] for number in route]
                text = [f"{names[each.target]} {each.configured.bridge_name}" for each in passed]
                ways.append((text, by_queue))
            copies = arrivals(data, origin, double.topic, None)[names[target]]
            for text, by_queue in ways:
                # Upstream of the last bridge a copy may come either way.
                assert any(
                    [part.removesuffix(" q") for part in copy] == text
                    and copy[-1].endswith(" q") == by_queue
                    for copy in copies
                )
            assert len(copies) >= 2
    for origin in names:
        for topic in DOUBLE_TOPICS:
            if not may_publish(data[origin], topic):
                continue
            for name, copies in arrivals(data, origin, topic, order).items():
                if len(copies) > 1:
                    assert name in doubled, f"{topic} from {origin} twice at {name}: {copies}"
