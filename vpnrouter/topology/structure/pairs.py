"""How well pairs of message VPNs are linked: links to lose, hops, widest way."""

from collections.abc import Iterator

from vpnrouter.limits import REPORT_PAIR_STEPS, REPORT_PAIRS
from vpnrouter.topology.structure.cuts import Cuts
from vpnrouter.topology.structure.disjoint import OutOfSteps, Steps, Ways
from vpnrouter.topology.structure.graph import Mesh
from vpnrouter.topology.structure.widest import Widest
from vpnrouter.topology.tables import Rows


def pairs(
    mesh: Mesh,
    found: Cuts,
    components: list[int],
    traffic: Rows = (),  # type: ignore[assignment]
    most: int = REPORT_PAIRS,
    most_steps: int = REPORT_PAIR_STEPS,
) -> Rows:
    """Rows of PAIRS, at most so many, for pairs that hang together.

    `traffic` are rows of END_TO_END: their pairs come first, the busiest before the others, then pairs of the
    busiest message VPNs, the weakest linked first. `links` and `hops` are null for pairs that the search had
    no time for (`most_steps` joints looked at). The bridges' directions play no part.
    """
    sent = _sent(mesh, traffic)
    widest = Widest(mesh)
    steps = Steps(most_steps)
    rows: list[tuple[tuple[int, int, int, int, int], int, int]] = []
    for one, other in _chosen(mesh, sent, components, most):
        hops, links = _measured(mesh, found, steps, one, other)
        order = (-sent.get((one, other), 0), links or most_steps, -(hops or 0), one, other)
        rows.append((order, hops or 0, links or 0))
    return [
        {
            "router": mesh.places[one][0],
            "vpn": mesh.places[one][1],
            "other_router": mesh.places[other][0],
            "other_vpn": mesh.places[other][1],
            "links": links or None,
            "hops": hops or None,
            "widest": widest.between(one, other),
        }
        for (*_, one, other), hops, links in sorted(rows)
    ]


def _sent(mesh: Mesh, traffic: Rows) -> dict[tuple[int, int], int]:
    """Messages from end to end, both directions together, by pair of places."""
    sent: dict[tuple[int, int], int] = {}
    for row in traffic:
        one = mesh.numbers.get((row["origin_router"], row["origin_vpn"]))
        other = mesh.numbers.get((row["router"], row["vpn"]))
        if one is not None and other is not None and one != other:
            pair = (min(one, other), max(one, other))
            sent[pair] = sent.get(pair, 0) + (row["messages"] or 0)
    return sent


def _chosen(
    mesh: Mesh, sent: dict[tuple[int, int], int], components: list[int], most: int
) -> Iterator[tuple[int, int]]:
    together = [pair for pair in sent if components[pair[0]] == components[pair[1]]]
    first = sorted(together, key=lambda pair: (-sent[pair], pair))[:most]
    yield from first
    left = most - len(first)
    if left <= 0:
        return
    load = [0] * len(mesh.places)
    for joint in mesh.joints:
        load[joint.one] += joint.messages
        load[joint.other] += joint.messages
    linked = [place for place in range(len(mesh.places)) if mesh.neighbours[place]]
    busiest = sorted(linked, key=lambda place: (-load[place], place))
    taken = set(first)
    # A pair of the first n comes before any pair of a further one, so that few places are enough.
    for count, other in enumerate(busiest):
        for one in busiest[:count]:
            pair = (min(one, other), max(one, other))
            if pair not in taken and components[one] == components[other]:
                yield pair
                left -= 1
                if left == 0:
                    return


def _measured(
    mesh: Mesh, found: Cuts, steps: Steps, one: int, other: int
) -> tuple[int | None, int | None]:
    """Hops and links, None for what there was no time for."""
    ways = Ways(mesh, steps)
    try:
        way = ways.shortest(one, other)
    except OutOfSteps:
        return None, None
    if way is None:
        return None, None
    if found.blocks[one] != found.blocks[other]:
        return len(way), 1
    try:
        return len(way), ways.links(one, other, way)
    except OutOfSteps:
        return len(way), None
