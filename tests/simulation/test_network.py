import re

import pytest

from vpnrouter.errors import OperationError
from vpnrouter.simulation import mesh


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
