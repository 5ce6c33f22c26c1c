import random
from collections.abc import Callable
from itertools import combinations

import networkx as nx
import pytest

from vpnrouter.limits import REPORT_PAIR_LINKS
from vpnrouter.report.structure.cuts import OutOfSteps, Steps, Ways
from vpnrouter.report.structure.graph import Mesh


@pytest.mark.parametrize("seed", range(12))
def test_hops_and_links(random_mesh: Callable[..., Mesh], seed: int) -> None:
    """Shortest ways and least cuts as networkx finds them, links side by side counted."""
    mesh = random_mesh(random.Random(seed), 10, 10 + 4 * seed)
    graph = mesh.undirected()
    for one, other in combinations(range(10), 2):
        way = Ways(mesh, Steps(100_000)).shortest(one, other)
        if way is None:
            assert not nx.has_path(graph, one, other)
            continue
        assert len(way) == nx.shortest_path_length(graph, one, other), f"seed {seed}"
        here = one
        for joint in way:
            here = mesh.joints[joint].beyond(here)
        assert here == other
        expected = nx.maximum_flow_value(graph, one, other, capacity="links")
        counted = min(expected, REPORT_PAIR_LINKS)
        assert Ways(mesh, Steps(100_000)).links(one, other, way) == counted, f"seed {seed}"


def test_steps_run_out(random_mesh: Callable[..., Mesh]) -> None:
    """A search that may not look further says so."""
    mesh = random_mesh(random.Random(2), 40, 80)
    with pytest.raises(OutOfSteps):
        Ways(mesh, Steps(1)).shortest(0, 39)
