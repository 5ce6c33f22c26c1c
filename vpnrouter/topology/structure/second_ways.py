"""Which further link would give the most pairs of message VPNs a second way.

What stays together whichever link goes is a block; blocks and cut joints are a forest. A new link between two
blocks makes one block of all on the way between them, so the best one spans the way with the most message VPNs
on it: the longest way of a tree whose nodes have weights, found by two walks.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from vpnrouter.limits import REPORT_SECOND_WAYS
from vpnrouter.topology.structure.cuts import Cuts, Parting
from vpnrouter.topology.structure.graph import Mesh, Place


class SecondWay(NamedTuple):
    """A link to add, between `one` and `other`. `pairs` of message VPNs get a second way, among them those
    that now send `messages` over the cut bridges, `rows` of EDGES. `past` is the articulation point that
    it leads around, else None. `beside`: the two have a link already.
    """

    one: Place
    other: Place
    pairs: int
    messages: int
    rows: tuple[int, ...]
    past: Place | None
    beside: bool


Forest = dict[int, dict[int, int]]
"""For each block its neighbours, and the cut joint in between."""


def second_ways(
    mesh: Mesh, found: Cuts, components: Sequence[int], most: int = REPORT_SECOND_WAYS
) -> list[SecondWay]:
    """The best links to add, at most so many for cut joints and as many for articulation points; those
    that help the most pairs first. The second one is the best when the first is there, and so on.
    """
    forest: Forest = {}
    for number in found.joints:
        joint = mesh.joints[number]
        one, other = found.blocks[joint.one], found.blocks[joint.other]
        forest.setdefault(one, {})[other] = number
        forest.setdefault(other, {})[one] = number
    members: dict[int, list[int]] = {}
    for place, block in enumerate(found.blocks):
        members.setdefault(block, []).append(place)
    ways: list[SecondWay] = []
    for tree in _trees(forest):
        for _ in range(most):
            path = _longest(mesh, forest, members, tree)
            if len(path) < 2:
                break
            ways.append(_over(mesh, forest, members, path))
            _merge(forest, members, tree, path)
    ways = sorted(ways, key=_rank)[:most]
    around = [
        _around(mesh, place, parting, components)
        for place, parting in found.places.items()
        if all(joint not in found.joints for _, joint in mesh.neighbours[place])
    ]
    return sorted([*ways, *sorted(around, key=_rank)[:most]], key=_rank)


def _rank(way: SecondWay) -> tuple[int, int, Place, Place]:
    return (-way.pairs, -way.messages, way.one, way.other)


def _trees(forest: Forest) -> list[set[int]]:
    trees: list[set[int]] = []
    seen: set[int] = set()
    for root in forest:
        if root not in seen:
            tree = set(_walk(forest, root))
            seen |= tree
            trees.append(tree)
    return trees


def _walk(forest: Forest, root: int) -> dict[int, int]:
    """Every block of a tree and the one that it was reached from, each after that one."""
    above = {root: root}
    waiting = [root]
    while waiting:
        here = waiting.pop()
        for there in forest.get(here, ()):
            if there not in above:
                above[there] = here
                waiting.append(there)
    return above


def _longest(
    mesh: Mesh, forest: Forest, members: dict[int, list[int]], tree: Iterable[int]
) -> list[int]:
    """The way with the most places on its blocks; of equal ones that with the most messages."""
    total = 1 + 2 * sum(joint.messages for joint in mesh.joints)
    weights = {
        block: len(members[block])
        + sum(mesh.joints[joint].messages for joint in forest.get(block, {}).values()) / total
        for block in sorted(tree)
    }
    start = next(iter(weights))
    for _ in range(2):
        above = _walk(forest, start)
        length: dict[int, float] = {}
        for block, before in above.items():
            length[block] = weights[block] + (length[before] if before != block else 0.0)
        start = max(length, key=lambda block: (length[block], -block))
    path = [start]
    while above[path[-1]] != path[-1]:
        path.append(above[path[-1]])
    return path


def _over(
    mesh: Mesh, forest: Forest, members: dict[int, list[int]], path: Sequence[int]
) -> SecondWay:
    sizes = [len(members[block]) for block in path]
    joints = [forest[one][other] for one, other in pairwise(path)]
    one = _end(mesh, members[path[0]], joints[0])
    other = _end(mesh, members[path[-1]], joints[-1])
    return SecondWay(
        mesh.places[one],
        mesh.places[other],
        (sum(sizes) ** 2 - sum(size * size for size in sizes)) // 2,
        sum(mesh.joints[joint].messages for joint in joints),
        tuple(sorted(row for joint in joints for row in mesh.joints[joint].rows)),
        None,
        any(there == other for there, _ in mesh.neighbours[one]),
    )


def _end(mesh: Mesh, block: Sequence[int], joint: int) -> int:
    """Where to fasten the link in a block: its busiest place, but not where the cut link is fastened."""
    fastened = {mesh.joints[joint].one, mesh.joints[joint].other}
    free = [place for place in block if place not in fastened] or block
    return max(free, key=lambda place: (_load(mesh, place), -place))


def _load(mesh: Mesh, place: int) -> int:
    return sum(mesh.joints[joint].messages for _, joint in mesh.neighbours[place])


def _merge(
    forest: Forest, members: dict[int, list[int]], tree: set[int], path: Sequence[int]
) -> None:
    """Make one block, the first of the path, of all on it."""
    whole, inside = path[0], set(path)
    outward = {
        there: joint
        for block in path
        for there, joint in forest[block].items()
        if there not in inside
    }
    for block in path[1:]:
        members[whole].extend(members.pop(block))
        tree.discard(block)
        del forest[block]
    forest[whole] = outward
    for there, joint in outward.items():
        forest[there] = {
            beyond: way for beyond, way in forest[there].items() if beyond not in inside
        } | {whole: joint}


def _around(mesh: Mesh, place: int, parting: Parting, components: Sequence[int]) -> SecondWay:
    size = sum(one == components[place] for one in components)
    one, other = sorted((parting.part[0], parting.beside))
    return SecondWay(
        mesh.places[one],
        mesh.places[other],
        parting.places * (size - 1 - parting.places),
        parting.messages,
        (),
        mesh.places[place],
        any(there == other for there, _ in mesh.neighbours[one]),
    )
