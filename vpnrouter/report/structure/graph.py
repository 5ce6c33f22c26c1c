"""The mesh as a graph: message VPNs by number, the joints between them, what hangs together.

A *joint* is two message VPNs with at least one bridge between them, whichever way it leads. Its `links` are how
many connections hold it together: two message VPNs share one connection for both directions (LINK-39), so a
bridge and the one that leads back go together, and only further bridges of one direction are links of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple, final

import networkx as nx
import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from vpnrouter.errors import OperationError
from vpnrouter.limits import REPORT_COMPONENT_ROUNDS, REPORT_GRAPH_EDGES
from vpnrouter.report.schema import Rows

Place = tuple[str, str]
"""Router and message VPN."""


class Joint(NamedTuple):
    """Two message VPNs, by number, `one` below `other`; `messages` crossed between them either way.

    `rows` are the bridges between them: numbers of rows of EDGES.
    """

    one: int
    other: int
    links: int
    messages: int
    rows: tuple[int, ...]

    def beyond(self, here: int) -> int:
        """The end that is not `here`."""
        return self.other if here == self.one else self.one


@final
class Mesh:
    """NODES and EDGES by number.

    `places` are in order of name, `ends` the (from, to) of each row of EDGES, None where the row does not name
    both; `neighbours` lists for each place (neighbour, joint), in order. A bridge from a message VPN to itself
    is no joint. Message VPNs that only a bridge names are places as well.
    """

    __slots__ = ("ends", "joints", "neighbours", "numbers", "places")

    def __init__(self, nodes: Rows, edges: Rows) -> None:
        named = {(row["router"], row["vpn"]) for row in nodes}
        for row in edges:
            named.update((start_of(row), goal_of(row)))
        self.places: Final[list[Place]] = sorted(one for one in named if None not in one)
        self.numbers: Final = {place: number for number, place in enumerate(self.places)}
        self.ends: Final[list[tuple[int, int] | None]] = [self._ends_of(row) for row in edges]
        self.joints: Final = self._joined(edges)
        self.neighbours: Final[list[list[tuple[int, int]]]] = [[] for _ in self.places]
        for number, joint in enumerate(self.joints):
            self.neighbours[joint.one].append((joint.other, number))
            self.neighbours[joint.other].append((joint.one, number))

    def _ends_of(self, row: dict[str, Any]) -> tuple[int, int] | None:
        start, goal = self.numbers.get(start_of(row)), self.numbers.get(goal_of(row))
        return None if start is None or goal is None else (start, goal)

    def _joined(self, edges: Rows) -> list[Joint]:
        between: dict[tuple[int, int], list[int]] = {}
        for number, ends in enumerate(self.ends):
            if ends is not None and ends[0] != ends[1]:
                between.setdefault((min(ends), max(ends)), []).append(number)
        joints = []
        for (one, other), rows in sorted(between.items()):
            forth = {edges[row]["bridge"] for row in rows if self.ends[row] == (one, other)}
            back = {edges[row]["bridge"] for row in rows if self.ends[row] == (other, one)}
            messages = sum(edges[row]["messages"] or 0 for row in rows)
            links = max(len(forth), len(back))
            joints.append(Joint(one, other, links, messages, tuple(rows)))
        return joints

    def name(self, number: int) -> str:
        """A place as "router/vpn"."""
        return "/".join(self.places[number])

    def arcs(self) -> dict[tuple[int, int], list[int]]:
        """The ways that messages can go from place to place, each with its rows of EDGES."""
        found: dict[tuple[int, int], list[int]] = {}
        for row, ends in enumerate(self.ends):
            if ends is not None and ends[0] != ends[1]:
                found.setdefault(ends, []).append(row)
        return found

    def undirected(self) -> nx.Graph[int]:
        """The joints as networkx has it, with `links` and `messages`."""
        graph: nx.Graph[int] = nx.Graph()
        graph.add_nodes_from(range(len(self.places)))
        graph.add_edges_from(
            (joint.one, joint.other, {"links": joint.links, "messages": joint.messages})
            for joint in self.joints
        )
        return graph

    def directed(self) -> nx.DiGraph[int]:
        """The ways of messages as networkx has it."""
        graph: nx.DiGraph[int] = nx.DiGraph()
        graph.add_nodes_from(range(len(self.places)))
        graph.add_edges_from(self.arcs())
        return graph


def start_of(edge: dict[str, Any]) -> Place:
    """Where messages come from on a row of EDGES."""
    return edge["from_router"], edge["from_vpn"]


def goal_of(edge: dict[str, Any]) -> Place:
    """Where messages go to on a row of EDGES."""
    return edge["to_router"], edge["to_vpn"]


PAIRS: Final = StructType(
    [StructField("u", LongType(), False), StructField("v", LongType(), False)]
)
"""Two vertices that hang together."""


def components(
    mesh: Mesh, spark: SparkSession | None = None, most: int = REPORT_GRAPH_EDGES
) -> list[int]:
    """The component of each place, from 1, the largest first; of equal ones that of the first name.

    Spark is used above `most` joints, if there is a session.
    """
    if spark is None or len(mesh.joints) <= most:
        return _numbered(nx.connected_components(mesh.undirected()), len(mesh.places))
    pairs = {
        "u": [joint.one for joint in mesh.joints],
        "v": [joint.other for joint in mesh.joints],
    }
    found = components_in_spark(spark.createDataFrame(pa.table(pairs), PAIRS)).toArrow()
    parts: dict[int, set[int]] = {}
    for vertex, root in zip(*(column.to_pylist() for column in found.columns), strict=True):
        parts.setdefault(root, {root}).add(vertex)
    joined = set().union(*parts.values())
    alone = ({vertex} for vertex in range(len(mesh.places)) if vertex not in joined)
    return _numbered([*parts.values(), *alone], len(mesh.places))


def _numbered(parts: Iterable[set[int]], count: int) -> list[int]:
    found = [0] * count
    ordered = sorted(parts, key=lambda part: (-len(part), min(part)))
    for number, part in enumerate(ordered, 1):
        for vertex in part:
            found[vertex] = number
    return found


def components_in_spark(pairs: DataFrame) -> DataFrame:
    """PAIRS in, (vertex, root) out: the least vertex that each vertex hangs together with; a root has no row.

    Large star and small star in turn (Kiveris and others, Connected Components in MapReduce and Beyond, 2014):
    each round hangs every vertex to a lesser one, until what is left are stars. Lineage is cut each round, or
    plans would grow with the rounds.

    Raises:
        OperationError: not done after REPORT_COMPONENT_ROUNDS rounds, which no graph that fits needs.
    """
    stars, before = _kept(pairs.where(F.col("u") != F.col("v")))
    for _ in range(REPORT_COMPONENT_ROUNDS):
        stars, after = _kept(_small_star(_large_star(stars)))
        if after == before:
            return stars.select(F.col("u").alias("vertex"), F.col("v").alias("root"))
        before = after
    raise OperationError(
        f"the components were not found in {REPORT_COMPONENT_ROUNDS} rounds over the bridges"
    )


def _large_star(pairs: DataFrame) -> DataFrame:
    """Every greater neighbour of a vertex is hung to the vertex's least neighbour, or to itself."""
    both = pairs.select("u", "v").union(pairs.select(F.col("v").alias("u"), F.col("u").alias("v")))
    least = F.least(F.col("u"), F.min("v").over(Window.partitionBy("u")))
    seen = both.withColumn("least", least)
    return seen.where(F.col("v") > F.col("u")).select(
        F.col("v").alias("u"), F.col("least").alias("v")
    )


def _small_star(pairs: DataFrame) -> DataFrame:
    """A vertex and its lesser neighbours are hung to the least of these."""
    downward = pairs.select(F.greatest("u", "v").alias("u"), F.least("u", "v").alias("v"))
    seen = downward.withColumn("least", F.min("v").over(Window.partitionBy("u")))
    hung = seen.where(F.col("v") != F.col("least")).select(
        F.col("v").alias("u"), F.col("least").alias("v")
    )
    return hung.union(seen.select("u", F.col("least").alias("v"))).distinct()


def _kept(pairs: DataFrame) -> tuple[DataFrame, tuple[int, int]]:
    """The pairs, computed, and a mark in one job: equal frames have equal marks, and two rounds that differ hardly
    ever do.
    """
    seen = Observation()
    kept = pairs.observe(
        seen,
        F.count(F.lit(1)).alias("count"),
        F.coalesce(F.sum(F.xxhash64("u", "v").cast("decimal(38,0)")), F.lit(0)).alias("mark"),
    ).localCheckpoint()
    return kept, (int(seen.get["count"]), int(seen.get["mark"]))
