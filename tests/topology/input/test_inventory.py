"""vpnrouter.topology.input.inventory: which files count, and why the others do not."""

from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vpnrouter.errors import OperationError
from vpnrouter.topology.input.inventory import take_inventory
from vpnrouter.trace.schema import VERSION


def one(files: ModuleType, root: Path, router: str = "edge", **more: object) -> Path:
    """A trace file with one row."""
    path: Path = files.write(root, router, [files.row("ingress", 0, "blue")], **more)
    return path


def test_whole_files_are_counted(tracefiles: ModuleType, tmp_path: Path) -> None:
    """Rows and bytes of all complete files under all roots, and single files, are found."""
    first = one(tracefiles, tmp_path / "a")
    second = one(tracefiles, tmp_path / "b", "core", sample=0.25)
    found = take_inventory([tmp_path / "a", second])
    assert [(f.path, f.router, f.router_from, f.sample) for f in found.files] == [
        (first, "edge", "directory", None),
        (second, "core", "directory", 0.25),
    ]
    assert found.rows == 2
    assert found.size_bytes == first.stat().st_size + second.stat().st_size
    assert found.set_aside == ()


def test_half_written_files_are_passed_over(tracefiles: ModuleType, tmp_path: Path) -> None:
    """Hidden files, files in hidden directories, and names with an underscore are not looked at."""
    whole = one(tracefiles, tmp_path)
    for name in (".part-2.parquet", "_part-3.parquet", ".hidden/part-4.parquet"):
        (whole.parent / name).parent.mkdir(exist_ok=True)
        (whole.parent / name).write_bytes(b"half")
    (whole.parent / "notes.txt").write_text("no trace")
    found = take_inventory([tmp_path])
    assert [file.path for file in found.files] == [whole]
    assert found.set_aside == ()


def test_what_cannot_be_read_is_named_with_its_reason(
    tracefiles: ModuleType, tmp_path: Path
) -> None:
    """Damaged, cut, empty and foreign files are set aside, each with a reason; the rest is kept."""
    whole = one(tracefiles, tmp_path)
    folder = whole.parent
    (folder / "cut.parquet").write_bytes(whole.read_bytes()[:-20])
    (folder / "noise.parquet").write_bytes(bytes(range(256)))
    (folder / "nothing.parquet").write_bytes(b"")
    tracefiles.write(tmp_path, "edge", [], part=7)
    pq.write_table(pa.table({"ts_ns": [1], "event": ["x"]}), folder / "other.parquet")
    found = take_inventory([tmp_path])
    assert [file.path for file in found.files] == [whole]
    reasons = {aside.path.name: aside.reason for aside in found.set_aside}
    assert set(reasons) == {
        "cut.parquet", "noise.parquet", "nothing.parquet", "part-00007.parquet", "other.parquet",
    }  # fmt: skip
    assert reasons["cut.parquet"].startswith("damaged: ")
    assert reasons["noise.parquet"].startswith("damaged: ")
    assert reasons["nothing.parquet"] == "empty: no bytes"
    assert reasons["part-00007.parquet"] == "empty: no rows"
    assert reasons["other.parquet"] == "not a trace file: no column vpn"
    assert all("\n" not in reason for reason in reasons.values())


def test_a_newer_format_is_refused(tracefiles: ModuleType, tmp_path: Path) -> None:
    """One file of a newer format stops the run, and all such files are named."""
    one(tracefiles, tmp_path)
    newer = [one(tracefiles, tmp_path, part=n, version=VERSION + 1) for n in (1, 2)]
    with pytest.raises(OperationError, match="newer vpnrouter") as refused:
        take_inventory([tmp_path])
    assert all(str(path) in str(refused.value) for path in newer)


def test_the_router_is_found_in_three_places(tracefiles: ModuleType, tmp_path: Path) -> None:
    """A column, the directory's name with its escapes undone, or the metadata name the router."""
    one(tracefiles, tmp_path / "1", "a/b %")
    one(tracefiles, tmp_path / "2", "loose", partitioned=False)
    one(tracefiles, tmp_path / "3", "inside", router_inside=True)
    found = take_inventory([tmp_path])
    assert [(file.router, file.router_from) for file in found.files] == [
        ("a/b %", "directory"),
        ("loose", "metadata"),
        ("inside", "column"),
    ]


def test_a_file_of_no_router_is_set_aside(tracefiles: ModuleType, tmp_path: Path) -> None:
    """Without column, directory and metadata the rows belong to nobody."""
    path = one(tracefiles, tmp_path, partitioned=False)
    pq.write_table(pq.read_table(path).replace_schema_metadata({}), path)
    (aside,) = take_inventory([tmp_path]).set_aside
    assert aside.reason.startswith("names no router")


def test_a_file_is_read_once(tracefiles: ModuleType, tmp_path: Path) -> None:
    """Overlapping roots and symbolic links do not double the counts."""
    path = one(tracefiles, tmp_path)
    (tmp_path / "link").symlink_to(path.parent)
    (path.parent / "again.parquet").symlink_to(path)
    assert take_inventory([tmp_path, path.parent, path, tmp_path / "link"]).rows == 1


def test_the_output_is_no_input(tracefiles: ModuleType, tmp_path: Path) -> None:
    """A report written among the traces is left out of the next one."""
    one(tracefiles, tmp_path)
    one(tracefiles, tmp_path / "report" / "tables")
    assert take_inventory([tmp_path], leave_out=tmp_path / "report").rows == 1


def test_a_missing_root_is_an_error(tmp_path: Path) -> None:
    """A path that does not exist is named."""
    with pytest.raises(OperationError, match="nowhere"):
        take_inventory([tmp_path / "nowhere"])


def test_a_rate_holds_where_all_files_agree(tracefiles: ModuleType, tmp_path: Path) -> None:
    """A router's rate is known when all its files state the same; 0 and nonsense state nothing."""
    one(tracefiles, tmp_path, "steady", sample=0.5)
    one(tracefiles, tmp_path, "steady", part=1, sample=0.5)
    one(tracefiles, tmp_path, "changed", sample=0.5)
    one(tracefiles, tmp_path, "changed", part=1, sample=0.1)
    one(tracefiles, tmp_path, "partly", sample=0.5)
    one(tracefiles, tmp_path, "partly", part=1)
    one(tracefiles, tmp_path, "off", sample=0.0)
    one(tracefiles, tmp_path, "absurd", sample=7.0)
    assert take_inventory([tmp_path]).sampling() == {"steady": 0.5}


def test_a_file_can_be_set_aside_later(tracefiles: ModuleType, tmp_path: Path) -> None:
    """What turns out to be damaged moves from the files to those set aside."""
    path = one(tracefiles, tmp_path)
    one(tracefiles, tmp_path, "core")
    less = take_inventory([tmp_path]).without(path, "damaged")
    assert [file.router for file in less.files] == ["core"]
    assert [aside.path for aside in less.set_aside] == [path]
