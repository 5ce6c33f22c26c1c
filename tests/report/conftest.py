"""One Spark session for all tests here, and trace files to feed it."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from pyspark.testing import assertSchemaEqual

from vpnrouter.report.digests.condense import Condensed, condensed
from vpnrouter.report.digests.digest import Digests, digested
from vpnrouter.report.digests.schema import DIGESTS
from vpnrouter.report.engine.progress import NoProgress
from vpnrouter.report.engine.session import spark_session
from vpnrouter.report.schema import DISCARDS, EDGES, NODES, TOPICS, TRACES
from vpnrouter.report.traces.rows import TraceRows
from vpnrouter.testing.modules import load_module
from vpnrouter.trace.schema import CONTEXT, context_of

Row = Mapping[str, Any]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark each test that takes the session as `spark`."""
    if "spark" in getattr(item, "fixturenames", ()):
        item.add_marker("spark")


LAKEHOUSE: Final = Path(__file__).resolve().parents[2] / ".peers" / "lakehouse"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local Spark session, ended with the tests. It has the libraries of Iceberg and Delta if .ci/peers did."""
    jars = ",".join(map(str, sorted(LAKEHOUSE.glob("jars/*.jar"))))
    conf = {"spark.jars": jars} if jars else {}
    with spark_session("local[2]", conf=conf, shuffle_partitions=2, short=True) as session:
        # Rows are few: to interpret a query is quicker than to compile it.
        session.conf.set("spark.sql.codegen.wholeStage", "false")
        session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        yield session


@pytest.fixture(scope="session")
def tracefiles() -> ModuleType:
    """The generator of trace files that stands beside these tests."""
    return _beside("tracefiles")


def _beside(name: str) -> ModuleType:
    # Tests are no package (importlib mode), so that a module beside them is loaded by its path.
    return load_module(name, Path(__file__).parent / f"{name}.py")


@pytest.fixture(scope="session")
def mesh_traces(spark: SparkSession, tracefiles: ModuleType) -> DataFrame:
    """The trace rows of the mesh that tracefiles.py describes."""
    return _frame(spark, tracefiles.mesh_rows())


@pytest.fixture(scope="session")
def digested_mesh(mesh_traces: DataFrame) -> Iterator[Digests]:
    """This mesh, digested once for all tests."""
    with digested(
        TraceRows(rows=mesh_traces, in_full=mesh_traces),
        None,
        1_000_000_000,
        2,
        NoProgress(),
        small=True,
    ) as made:
        yield made


def _frame(spark: SparkSession, by_router: dict[str, list[Row]]) -> DataFrame:
    """The frame that jobs take, without files; every row weighs 2."""
    rows = [
        {"weight": 2.0, **row, "router": router}
        for router, listed in by_router.items()
        for row in listed
    ]
    for row in rows:
        row |= {"context": context_of([row.get(name) for name in CONTEXT]), "in_full": True}
    return spark.createDataFrame([tuple(map(row.get, TRACES.names)) for row in rows], TRACES)


@pytest.fixture(scope="session")
def frame_of(spark: SparkSession) -> Callable[[dict[str, list[Row]]], DataFrame]:
    """Makes the frame that jobs take from rows by router, without files; every row weighs 2."""
    return lambda by_router: _frame(spark, by_router)


@pytest.fixture(scope="session")
def condensed_of(
    frame_of: Callable[[dict[str, list[Row]]], DataFrame],
) -> Callable[[dict[str, list[Row]]], Condensed]:
    """Makes what digests are made of from rows by router, with stretches of a second; every row weighs 2."""

    def make(by_router: dict[str, list[Row]]) -> Condensed:
        frame = frame_of(by_router)
        rows = TraceRows(rows=frame, in_full=frame)
        return condensed(rows, 1_000_000_000, lambda _, kept: kept)

    return make


@pytest.fixture(scope="session")
def digest_of(spark: SparkSession) -> Callable[[str, list[Row]], DataFrame]:
    """Makes the digest of a name from rows; columns that a row does not give are null.

    Names that the digest does not have are refused, so that a slip of the pen fails the test.
    """

    def make(name: str, rows: list[Row]) -> DataFrame:
        schema = DIGESTS[name]
        unknown = {key for row in rows for key in row} - set(schema.names)
        assert not unknown, f"{name} has no {unknown}"
        listed = [tuple(row.get(column) for column in schema.names) for row in rows]
        return spark.createDataFrame(listed, schema)

    return make


@pytest.fixture
def assert_rows() -> Callable[[DataFrame, StructType, list[tuple[Any, ...]]], None]:
    """Compares a frame with exact rows, in any order.

    pyspark's assertDataFrameEqual imports pyspark.pandas, which pandas 3 breaks.
    """

    def compare(frame: DataFrame, schema: StructType, rows: list[tuple[Any, ...]]) -> None:
        assertSchemaEqual(frame.schema, schema)
        assert sorted(map(tuple, frame.collect()), key=repr) == sorted(rows, key=repr)

    return compare


@pytest.fixture
def node() -> Callable[..., dict[str, Any]]:
    """Makes rows of NODES."""

    def make(router: str, vpn: str, *, traced: bool = True, **more: Any) -> dict[str, Any]:
        counts = [name for name in NODES.names if name not in {"router", "vpn", "traced"}]
        values = dict.fromkeys(counts, 0 if traced else None)
        return {"router": router, "vpn": vpn, "traced": traced, **values, **more}

    return make


@pytest.fixture
def edge() -> Callable[..., dict[str, Any]]:
    """Makes rows of EDGES from "router/vpn" texts."""

    def make(
        start: str,
        goal: str,
        *,
        bridge: str = "fares",
        latency: tuple[int, int, int] | None = (100_000, 200_000, 300_000),
        **more: Any,
    ) -> dict[str, Any]:
        from_router, from_vpn = start.split("/", 1)
        to_router, to_vpn = goal.split("/", 1)
        percentiles = latency or (None, None, None)
        return {
            **dict.fromkeys(EDGES.names, 1),
            "from_router": from_router,
            "from_vpn": from_vpn,
            "to_router": to_router,
            "to_vpn": to_vpn,
            "bridge": bridge,
            "link_downs": 0,
            **{
                f"latency_p{share}_ns": value
                for share, value in zip((50, 95, 99), percentiles, strict=True)
            },
            **more,
        }

    return make


@pytest.fixture
def topic() -> Callable[..., dict[str, Any]]:
    """Makes rows of TOPICS."""

    def make(name: str, **more: Any) -> dict[str, Any]:
        place = {"topic": name, "router": "edge", "vpn": "blue"}
        return {**dict.fromkeys(TOPICS.names, 1), **place, **more}

    return make


@pytest.fixture
def discard() -> Callable[..., dict[str, Any]]:
    """Makes rows of DISCARDS."""

    def make(reason: str, **more: Any) -> dict[str, Any]:
        texts = {"router": "edge", "vpn": "blue", "event": "dead_letter", "place": "q"}
        return {
            **dict.fromkeys(DISCARDS.names, 1),
            **texts,
            "reason": reason,
            "example_topic": None,
            **more,
        }

    return make
