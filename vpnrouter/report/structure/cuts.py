"""Finds cut links and articulation points, how many links separate two message VPNs, and which links to add."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import chain, islice, pairwise
from typing import Final, NamedTuple, final

from vpnrouter.limits import REPORT_PAIR_LINKS, REPORT_SECOND_WAYS
from vpnrouter.report.structure.graph import Mesh, Place


class StepLimitReached(Exception):
    """The search has looked at as many joints as it may."""


@final
class StepBudget:
    """How many joints all searches together may still look at."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, count: int) -> None:
        """Use some of the links.

        Raises:
            StepLimitReached: they are used up.
        """
        self.left -= count
        if self.left < 0:
            raise StepLimitReached


@final
class PathSearch:
    """Paths between two places. `used`: links of each joint in use, from its one to its other end (negative: the other
    direction).
    """

    __slots__ = ("_mesh", "_steps", "used")

    def __init__(self, mesh: Mesh, steps: StepBudget) -> None:
        self._mesh = mesh
        self._steps = steps
        self.used: dict[int, int] = {}

    def _free(self, joint: int, here: int) -> bool:
        """Return whether a link of the joint can be taken from `here`."""
        links, used = self._mesh.joints[joint].links, self.used.get(joint, 0)
        return (used if here == self._mesh.joints[joint].one else -used) < links

    def shortest(self, start: int, goal: int) -> list[int] | None:
        """Return the joints of a shortest way of what is free, from `start` on; None when there is none.

        Raises:
            StepLimitReached: the search would take too long.
        """
        # From each end: every place reached, and the (place before, joint) that led there.
        neighbours = self._mesh.neighbours
        reached: list[dict[int, tuple[int, int]]] = [{start: (start, -1)}, {goal: (goal, -1)}]
        rims = [[start], [goal]]
        work = [len(neighbours[start]), len(neighbours[goal])]
        while rims[0] and rims[1]:
            side = 0 if work[0] <= work[1] else 1
            self._steps.take(work[side])
            work[side] = 0
            mine, others = reached[side], reached[1 - side]
            rim: list[int] = []
            for here in rims[side]:
                for there, joint in neighbours[here]:
                    if there in mine or not self._free(joint, here if side == 0 else there):
                        continue
                    mine[there] = (here, joint)
                    if there in others:
                        return _traced(reached, there)
                    rim.append(there)
                    work[side] += len(neighbours[there])
            rims[side] = rim
        return None

    def take(self, start: int, way: Sequence[int]) -> None:
        """Use one link of each joint of a way."""
        here = start
        for number in way:
            joint = self._mesh.joints[number]
            self.used[number] = self.used.get(number, 0) + (1 if here == joint.one else -1)
            here = joint.beyond(here)

    def links(self, start: int, goal: int, first: Sequence[int]) -> int:
        """Return how many links have to go before the two are apart, counted up to REPORT_PAIR_LINKS; `first` is a way
        between them.

        Raises:
            StepLimitReached: the search would take too long.
        """
        most = min(self._degree(start), self._degree(goal), REPORT_PAIR_LINKS)
        count = 0
        way: Sequence[int] | None = first
        while way is not None:
            self.take(start, way)
            count += 1
            # With all links of one end in use, the last search, which finds nothing, can be spared.
            way = self.shortest(start, goal) if count < most else None
        return count

    def _degree(self, place: int) -> int:
        return sum(self._mesh.joints[joint].links for _, joint in self._mesh.neighbours[place])


def _traced(reached: Sequence[dict[int, tuple[int, int]]], middle: int) -> list[int]:
    way: list[int] = []
    before, joint = reached[0][middle]
    while joint >= 0:
        way.append(joint)
        before, joint = reached[0][before]
    way.reverse()
    after, joint = reached[1][middle]
    while joint >= 0:
        way.append(joint)
        after, joint = reached[1][after]
    return way


class Cutoff(NamedTuple):
    """What is cut off from the largest remaining part: message VPNs, and the messages that crossed the joints in
    between. `part` are some of these, by number; the first, and `beside` in the largest part, are neighbours of what
    is removed.
    """

    places: int
    messages: int
    part: tuple[int, ...]
    beside: int


class Cuts(NamedTuple):
    """Cut joints and articulation points, by number, and the `block` of each place.

    Two places of one block stay together whichever link goes; a block is named by its least place.
    """

    joints: dict[int, Cutoff]
    places: dict[int, Cutoff]
    blocks: list[int]


SHOWN: Final = 3
"""Places of a part that are kept to be named."""


@final
class _Walk:
    """A walk through all places. `order` lists them as they were reached; the rest is by place."""

    __slots__ = ("at", "children", "low", "mesh", "order", "parent", "root", "size", "tree", "way")

    def __init__(self, mesh: Mesh) -> None:
        count = len(mesh.places)
        self.mesh = mesh
        self.order: list[int] = []
        self.at = [-1] * count
        self.low = [0] * count
        self.size = [1] * count
        self.parent = [-1] * count
        self.way = [-1] * count
        self.tree = [0] * count
        self.root = list(range(count))
        self.children: list[list[int]] = [[] for _ in range(count)]
        for root in range(count):
            if self.at[root] < 0:
                self._walk(root)
        for place in reversed(self.order):
            above = self.parent[place]
            if above >= 0:
                self.size[above] += self.size[place]
                self.low[above] = min(self.low[above], self.low[place])
        for place in self.order:
            above = self.parent[place]
            self.tree[place] = self.tree[above] if above >= 0 else self.size[place]
            self.root[place] = self.root[above] if above >= 0 else place

    def _reach(self, place: int) -> None:
        self.at[place] = self.low[place] = len(self.order)
        self.order.append(place)

    def _walk(self, root: int) -> None:
        neighbours = self.mesh.neighbours
        self._reach(root)
        stack = [(root, iter(neighbours[root]))]
        while stack:
            here, left = stack[-1]
            for there, joint in left:
                if self.at[there] < 0:
                    self.parent[there], self.way[there] = here, joint
                    self.children[here].append(there)
                    self._reach(there)
                    stack.append((there, iter(neighbours[there])))
                    break
                if joint != self.way[here]:
                    self.low[here] = min(self.low[here], self.at[there])
            else:
                stack.pop()


def cuts(mesh: Mesh) -> Cuts:
    """Return all cut joints and articulation points; a joint of two links or more is not cut."""
    walk = _Walk(mesh)
    joints: dict[int, Cutoff] = {}
    places: dict[int, Cutoff] = {}
    blocks = list(range(len(mesh.places)))
    for place in walk.order:
        above = walk.parent[place]
        if above >= 0:
            joint = walk.way[place]
            if walk.low[place] == walk.at[place] and mesh.joints[joint].links == 1:
                joints[joint] = _without_joint(walk, place, joint)
            else:
                blocks[place] = blocks[above]
        parting = _without_place(walk, place)
        if parting is not None:
            places[place] = parting
    return Cuts(joints, places, _named_by_least(blocks))


def _named_by_least(blocks: Sequence[int]) -> list[int]:
    least: dict[int, int] = {}
    for place, block in enumerate(blocks):
        least.setdefault(block, place)
    return [least[block] for block in blocks]


def _without_joint(walk: _Walk, below: int, joint: int) -> Cutoff:
    above, begin = walk.parent[below], walk.at[below]
    end = begin + walk.size[below]
    outside = walk.tree[below] - walk.size[below]
    messages = walk.mesh.joints[joint].messages
    if walk.size[below] <= outside:
        part = islice(walk.order, begin, min(begin + SHOWN, end))
        return Cutoff(walk.size[below], messages, tuple(part), above)
    first = walk.at[walk.root[below]]
    positions = chain(range(first, begin), range(end, first + walk.tree[below]))
    others = (walk.order[position] for position in positions if walk.order[position] != above)
    return Cutoff(outside, messages, (above, *islice(others, SHOWN - 1)), below)


def _without_place(walk: _Walk, place: int) -> Cutoff | None:
    is_root = walk.parent[place] < 0
    hanging = [
        child for child in walk.children[place] if is_root or walk.low[child] >= walk.at[place]
    ]
    rest = walk.tree[place] - 1 - sum(walk.size[child] for child in hanging)
    if not hanging or (is_root and len(hanging) < 2):
        return None
    # Pieces by number: the subtrees that hang on this place, and last what is left above.
    sizes = [*(walk.size[child] for child in hanging), rest]
    largest = max(range(len(sizes)), key=lambda piece: sizes[piece])
    begins = [walk.at[child] for child in hanging]
    messages = [0] * len(sizes)
    beside = (-1, -1)
    for there, joint in walk.mesh.neighbours[place]:
        crossed = walk.mesh.joints[joint].messages
        piece = _piece(walk, begins, hanging, there)
        messages[piece] += crossed
        if piece == largest:
            beside = max(beside, (crossed, there))
    part = [
        walk.order[position]
        for piece, child in enumerate(hanging)
        if piece != largest
        for position in range(walk.at[child], walk.at[child] + min(walk.size[child], SHOWN))
    ]
    if largest != len(hanging) and rest:
        part.insert(0, walk.parent[place])
    return Cutoff(
        sum(sizes) - sizes[largest],
        sum(messages) - messages[largest],
        tuple(part[:SHOWN]),
        beside[1],
    )


def _piece(walk: _Walk, begins: Sequence[int], hanging: Sequence[int], place: int) -> int:
    piece = bisect_right(begins, walk.at[place]) - 1
    if piece >= 0 and walk.at[place] < begins[piece] + walk.size[hanging[piece]]:
        return piece
    return len(hanging)


class RedundantLink(NamedTuple):
    """A link to add, between `one` and `other`. `pairs` of message VPNs get a second path, among them those that now
    send `messages` over the cut bridges, `rows` of EDGES. `past` is the articulation point that it bypasses, else
    None. `beside`: the two have a link already.
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


def redundant_links(
    mesh: Mesh, cuts: Cuts, components: Sequence[int], most: int = REPORT_SECOND_WAYS
) -> list[RedundantLink]:
    """Return the best links to add, at most so many for cut joints and as many for articulation points; those that help
    the most pairs first. Each counts on those before it.
    """
    forest: Forest = {}
    for number in cuts.joints:
        joint = mesh.joints[number]
        one, other = cuts.blocks[joint.one], cuts.blocks[joint.other]
        forest.setdefault(one, {})[other] = number
        forest.setdefault(other, {})[one] = number
    members: dict[int, list[int]] = {}
    for place, block in enumerate(cuts.blocks):
        members.setdefault(block, []).append(place)
    ways: list[RedundantLink] = []
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
        for place, parting in cuts.places.items()
        if all(joint not in cuts.joints for _, joint in mesh.neighbours[place])
    ]
    return sorted([*ways, *sorted(around, key=_rank)[:most]], key=_rank)


def _rank(way: RedundantLink) -> tuple[int, int, Place, Place]:
    return (-way.pairs, -way.messages, way.one, way.other)


def _trees(forest: Forest) -> list[set[int]]:
    trees: list[set[int]] = []
    visited: set[int] = set()
    for root in forest:
        if root not in visited:
            tree = set(_walk(forest, root))
            visited |= tree
            trees.append(tree)
    return trees


def _walk(forest: Forest, root: int) -> dict[int, int]:
    """Return every block of a tree and the one that it was reached from, each after that one."""
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
    """Return the path with the most places on its blocks; of equal ones that with the most messages."""
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
) -> RedundantLink:
    sizes = [len(members[block]) for block in path]
    joints = [forest[one][other] for one, other in pairwise(path)]
    one = _end(mesh, members[path[0]], joints[0])
    other = _end(mesh, members[path[-1]], joints[-1])
    return RedundantLink(
        mesh.places[one],
        mesh.places[other],
        (sum(sizes) ** 2 - sum(size * size for size in sizes)) // 2,
        sum(mesh.joints[joint].messages for joint in joints),
        tuple(sorted(row for joint in joints for row in mesh.joints[joint].rows)),
        None,
        any(there == other for there, _ in mesh.neighbours[one]),
    )


def _end(mesh: Mesh, block: Sequence[int], joint: int) -> int:
    """Return where to attach the link in a block: its busiest place, but not that of the cut link."""
    fastened = {mesh.joints[joint].one, mesh.joints[joint].other}
    free = [place for place in block if place not in fastened] or block
    return max(free, key=lambda place: (_load(mesh, place), -place))


def _load(mesh: Mesh, place: int) -> int:
    return sum(mesh.joints[joint].messages for _, joint in mesh.neighbours[place])


def _merge(
    forest: Forest, members: dict[int, list[int]], tree: set[int], path: Sequence[int]
) -> None:
    """Merge the blocks of a path into its first."""
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


def _around(mesh: Mesh, place: int, parting: Cutoff, components: Sequence[int]) -> RedundantLink:
    size = sum(component == components[place] for component in components)
    one, other = sorted((parting.part[0], parting.beside))
    return RedundantLink(
        mesh.places[one],
        mesh.places[other],
        parting.places * (size - 1 - parting.places),
        parting.messages,
        (),
        mesh.places[place],
        any(there == other for there, _ in mesh.neighbours[one]),
    )
