import random
from collections.abc import Callable
from itertools import combinations

import networkx as nx
import pytest

from vpnrouter.report.structure.centrality import Widest
from vpnrouter.report.structure.graph import Mesh


@pytest.mark.parametrize("seed", range(10))
def test_the_narrowest_step_of_the_widest_way(random_mesh: Callable[..., Mesh], seed: int) -> None:
    """The same as dropping narrow joints until the two are apart."""
    mesh = random_mesh(random.Random(seed), 14, 20)
    widest = Widest(mesh)
    for one, other in combinations(range(14), 2):
        expected = None
        for width in sorted({joint.messages for joint in mesh.joints}):
            wide = [joint[:2] for joint in mesh.joints if joint.messages >= width]
            graph: nx.Graph[int] = nx.Graph(wide)
            graph.add_nodes_from(range(14))
            if nx.has_path(graph, one, other):
                expected = width
        assert widest.between(one, other) == expected, f"seed {seed}"
