"""How the many files of an object store are read: their footers in one go, and their rows by a list of ours."""

from pathlib import Path
from types import ModuleType

import pytest
from pyspark.sql import SparkSession

from vpnrouter.errors import OperationError
from vpnrouter.report.engine.listed import are_far, read_listed
from vpnrouter.report.engine.remote import HadoopStorage
from vpnrouter.report.schema import TRACE_READ
from vpnrouter.report.traces.footers import TraceFile, footers
from vpnrouter.report.traces.storage import LOCAL, StoredFile

NAMES = ("plain", "with space", "50%", "50%25", "umläut é", "a+b=c&d", "#1", "{x}[y]*?", "q'\"")


@pytest.fixture
def files(tracefiles: ModuleType, tmp_path: Path) -> list[StoredFile]:
    """A trace file in a directory of each name, each with another number of rows."""
    for count, name in enumerate(NAMES, 1):
        rows = [tracefiles.row("ingress", number, "blue") for number in range(count)]
        tracefiles.write(tmp_path / "in" / name, f"r{count}", rows)
    found = LOCAL.files(str(tmp_path / "in"))
    assert len(found) == len(NAMES)
    return found


@pytest.mark.parametrize("size_bytes", [1, 7, 8, 64, 1_000_000])
def test_footers_are_those_of_this_machine(
    spark: SparkSession, files: list[StoredFile], tmp_path: Path, size_bytes: int
) -> None:
    """Whatever a file is called and ends with, and however little of it is wanted, a report finds the same in it."""
    endings = {
        "empty": b"",
        "short": b"PAR1",
        "text": b"no Parquet at all",
        "negative": b"abcd" + (-1).to_bytes(4, "little", signed=True) + b"PAR1",
        "huge": b"abcd" + (2**31 - 1).to_bytes(4, "little") + b"PAR1",
        "cut": Path(files[0].path).read_bytes()[:-1],
    }
    for name, data in endings.items():
        (tmp_path / f"{name}.parquet").write_bytes(data)
        files.append(StoredFile(str(tmp_path / f"{name}.parquet"), len(data)))
    here = list(footers(LOCAL, files, []))
    assert list(footers(HadoopStorage(spark), files, [])) == here
    assert sum(isinstance(one, TraceFile) for one in here) == len(NAMES)
    for file, tail in zip(files, HadoopStorage(spark).tails(files, size_bytes), strict=True):
        assert isinstance(tail, bytes)
        assert len(tail) <= size_bytes
        assert Path(file.path).read_bytes().endswith(tail)


def test_what_cannot_be_read(spark: SparkSession, files: list[StoredFile]) -> None:
    """A file that has gone, or became shorter than its list says, has a reason of one line; others are read."""
    gone, shorter, *others = files
    Path(gone.path).unlink()
    longer = StoredFile(shorter.path, shorter.size_bytes + 100)
    unknown = StoredFile("nosuch://host/x.parquet", 100)
    missing, cut, foreign, *tails = HadoopStorage(spark).tails(
        [gone, longer, unknown, *others], 1_000
    )
    for tail in (missing, cut, foreign):
        assert isinstance(tail, OperationError)
        assert str(tail).startswith("cannot be read: ")
        assert "\n" not in str(tail)
    assert "nosuch" in str(foreign)
    assert all(isinstance(tail, bytes) for tail in tails)
    assert not list(HadoopStorage(spark).tails([], 1_000))


def test_rows_are_those_of_listed_files(
    spark: SparkSession, tracefiles: ModuleType, tmp_path: Path
) -> None:
    """All of them and no others, with the router that a directory names."""
    root = tmp_path / "50% of #1 [ü]"
    for count, name in enumerate(NAMES, 1):
        rows = [tracefiles.row("ingress", number, "blue") for number in range(count)]
        tracefiles.write(root, name, rows)
    files = [file for file in LOCAL.files(str(root)) if "plain" not in file.path]
    assert len(files) == len(NAMES) - 1
    rows = read_listed(spark.read.schema(TRACE_READ), files)
    found = {row["router"]: row["count"] for row in rows.groupBy("router").count().collect()}
    assert found == {name: count for count, name in enumerate(NAMES, 1) if name != "plain"}


@pytest.mark.parametrize(
    ("path", "expected"),
    [("s3a://b/x", True), ("abfss://c@a/x", True), ("hdfs://n/x", False), ("/x", False)],
)
def test_which_are_far(path: str, expected: bool) -> None:
    """HDFS says where the blocks of a file are, which a list of ours would not."""
    assert are_far([path]) is expected
    assert are_far([path, "file:///x"]) is False
