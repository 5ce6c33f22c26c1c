"""Faults of the configurations alone: they say something else than what the traces show.

Only a report that is given the configurations can find them.
"""

from vpnrouter.errors import OperationError
from vpnrouter.simulation.faults.ground import Ground
from vpnrouter.simulation.mesh import Bridge


def missing_vpn(ground: Ground) -> None:
    """A message VPN is configured, and nothing happens in it."""
    (site,) = ground.way(1)
    place = ground.plan.mesh.sites[site]
    vpn = f"{place.vpn}-next"
    ground.plan.drift.vpns.append((site, vpn))
    ground.faults.append({"kind": "missing_vpn", "router": place.router_name, "vpn": vpn})


def missing_bridge(ground: Ground) -> None:
    """A bridge is configured, and its link never comes up."""
    source, target = ground.way(2)
    name = f"from-{ground.plan.mesh.sites[source].router_name}-next"
    topic = f"{ground.plan.mesh.sites[source].vpn}/planned/>"
    planned = Bridge(name, source, target, 0.0, filters={topic: None})
    ground.plan.drift.bridges.append(planned)
    ground.faults.append({"kind": "missing_bridge", **ground.ends(planned)})


def unknown_bridge(ground: Ground) -> None:
    """A bridge carries messages and is not configured."""
    number = ground.plan.mesh.bridge(*ground.way(2))
    ground.plan.drift.without.add(number)
    ground.faults.append({"kind": "unknown_bridge", **ground.edge(number)})


def missing_subscription(ground: Ground) -> None:
    """A bridge has a remote subscription in its configuration that it never asked for."""
    number, _ = _filtered(ground, 1)
    source = ground.plan.mesh.sites[ground.plan.mesh.bridges[number].source]
    topic = f"{source.vpn}/planned/{source.router_name}/>"
    ground.plan.drift.more.append((number, topic))
    ground.faults.append({"kind": "missing_subscription", **ground.edge(number), "topic": topic})


def unknown_subscription(ground: Ground) -> None:
    """A bridge asks for more than its configuration says."""
    number, topic = _filtered(ground, 2)
    ground.plan.drift.less.append((number, topic))
    ground.faults.append({"kind": "unknown_subscription", **ground.edge(number), "topic": topic})


def _filtered(ground: Ground, least: int) -> tuple[int, str]:
    """A bridge with so many filters, and one of them."""
    mesh = ground.plan.mesh
    for _ in mesh.domains:
        way = ground.way(2)
        for number in mesh.both_ways(*way):
            if len(mesh.bridges[number].filters) >= least:
                return number, next(iter(mesh.bridges[number].filters))
    raise OperationError("no bridge has filters enough: more --vpns")
