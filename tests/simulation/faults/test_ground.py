import numpy as np
import pytest

from vpnrouter.errors import OperationError
from vpnrouter.simulation import mesh, plan
from vpnrouter.simulation.faults.ground import LEAST_MESSAGES, SHARE, Ground


def ground(vpns: int = 40, seed: int = 1) -> Ground:
    """Ground in a small mesh."""
    rng = np.random.default_rng(seed)
    built = mesh.build(mesh.load("sndlib/polska"), vpns, 8, rng)
    return Ground(plan.draft(built, 600.0, 1.0, 2, rng), 100_000, rng)


def test_no_two_faults_stand_in_one_domain() -> None:
    """Each way lies in a domain of its own, along its links."""
    one = ground()
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
    one = ground()
    for _ in one.plan.mesh.domains:
        one.way(1)
    with pytest.raises(OperationError, match="too few message VPNs"):
        one.way(1)


def test_faults_have_messages_enough() -> None:
    """A share of the rows, and never fewer than a rule needs to be sure."""
    one = ground()
    assert one.messages() == round(SHARE * 100_000)
    assert one.messages(0.01) == LEAST_MESSAGES


def test_places_are_named_as_findings_name_them() -> None:
    """An edge's local end is where the bridge stands, its peer where messages come from."""
    one = ground()
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
