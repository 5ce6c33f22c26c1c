"""The graph of a mesh."""

import runpy
from pathlib import Path

KIT = runpy.run_path(str(Path(__file__).with_name("mesh_kit.py")))
bridge, vpn, mesh, graph_of = (KIT[name] for name in ("bridge", "vpn", "mesh", "graph_of"))


def test_crossings() -> None:
    """A bridge leads from the remote message VPN to its own, once for each remote."""
    queues = {"q": {"subscriptions": ["o/>", "!o/x"]}}
    both = bridge("a/v", "b/v", filters=["w", "#share/g/s", {"topic": "t", "selector": "n = 1"}])
    both["remote_msg_vpns"][0]["queue_binding"] = "q"
    graph = graph_of(mesh({"a/v": vpn(queues=queues), "b/v": vpn(), "c/v": vpn({"in": both})}))
    assert [each.name for each in graph.vpns] == ["a/v", "b/v", "c/v"]
    first, second = graph.crossings
    assert (first.source, first.target, first.preferred) == (0, 2, True)
    assert (second.source, second.target, second.preferred) == (1, 2, False)
    assert first.bridge == second.bridge
    assert (len(first.direct), len(first.queue), len(first.maybe)) == (1, 1, 2)
    assert graph.carries(first, "w")
    assert graph.carries(first, "o/y")
    assert not graph.carries(first, "o/x")
    assert not graph.carries(second, "o/y")
    assert not graph.carries(first, "s")
    assert graph.vpns[2].into == [0, 1]
    assert graph.route(0, [first]) == "a/v -> c/v"


def test_reached() -> None:
    """How far a topic gets, with the number of bridges, the hop limit and one message VPN left out."""
    graph = graph_of(
        mesh(
            {
                "a/v": vpn(),
                "b/v": vpn({"in": bridge("a/v", filters=["w/>"])}),
                "c/v": vpn({"in": bridge("b/v", filters=["*/x"])}),
                "d/v": vpn({"in": bridge("c/v", filters=[">"], max_ttl=2)}),
            }
        )
    )
    assert graph.reached("w/x", 0) == {0: 0, 1: 1, 2: 2}
    assert graph.reached("w/y", 0) == {0: 0, 1: 1}
    assert graph.reached("w/x", 0, without=1) == {0: 0}
    assert graph.reached("w/x", 1) == {1: 0, 2: 1, 3: 2}


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
