"""What hangs together: small meshes by networkx, large ones in Spark."""

from collections.abc import Iterable
from typing import Final

import networkx as nx
import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from vpnrouter.errors import OperationError
from vpnrouter.limits import REPORT_COMPONENT_ROUNDS, REPORT_GRAPH_EDGES
from vpnrouter.topology.structure.graph import Mesh

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
