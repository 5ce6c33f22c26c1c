import networkx as nx
import numpy as np
import pytest

from vpnrouter.simulation import mesh


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
