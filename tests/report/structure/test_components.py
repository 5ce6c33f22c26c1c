import random
from collections.abc import Callable

import networkx as nx
import pytest
from pyspark.sql import SparkSession

from vpnrouter.errors import OperationError
from vpnrouter.report.structure import graph as module
from vpnrouter.report.structure.graph import (
    PAIRS,
    Mesh,
    components,
    components_in_spark,
)


def test_the_largest_is_number_one(random_mesh: Callable[..., Mesh]) -> None:
    """Numbers rise with falling size, and each place has one."""
    mesh = random_mesh(random.Random(3), 60, 40)
    parts = components(mesh)
    sizes = [parts.count(number) for number in range(1, max(parts) + 1)]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(sizes) == 60
    assert all(parts[joint.one] == parts[joint.other] for joint in mesh.joints)


@pytest.mark.spark
def test_spark_finds_the_same(spark: SparkSession, random_mesh: Callable[..., Mesh]) -> None:
    """Beyond the bound the same numbers come from Spark, also for places without any bridge."""
    mesh = random_mesh(random.Random(25), 60, 35)
    assert components(mesh, spark, most=0) == components(mesh)


@pytest.mark.spark
def test_spark_walks_a_long_chain(spark: SparkSession) -> None:
    """A chain in a drawn order, a ring and a pair: each hangs together, in few rounds."""
    names = list(range(70))
    random.Random(5).shuffle(names)
    chain = [(names[at], names[at + 1]) for at in range(39)]
    ring = [(names[at], names[40 + (at - 39) % 20]) for at in range(40, 60)]
    rows = [*chain, *ring, (names[61], names[62]), (names[63], names[63])]
    found = dict(components_in_spark(spark.createDataFrame(rows, PAIRS)).collect())
    expected = {
        vertex: min(part)
        for part in nx.connected_components(nx.Graph(rows))
        for vertex in part
        if vertex != min(part)
    }
    assert found == expected


@pytest.mark.spark
def test_too_many_rounds_end_in_an_error(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search that does not end is refused."""
    monkeypatch.setattr(module, "REPORT_COMPONENT_ROUNDS", 1)
    with pytest.raises(OperationError, match="1 rounds"):
        components_in_spark(spark.createDataFrame([(1, 2), (2, 3), (4, 3)], PAIRS))
