import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vpnrouter.errors import OperationError
from vpnrouter.report.follow import FOLDER, MANIFEST, DigestStore


def _table(*values: int) -> pa.Table:
    return pa.table({"count": pa.array(values, pa.int64())})


def _held(store: DigestStore) -> list[int]:
    return [
        value for path in store.files("paths") for value in pq.read_table(path)["count"].to_pylist()
    ]


def test_a_batch_counts_once(tmp_path: Path) -> None:
    """A batch that is run again, by this process or the next, adds nothing."""
    store = DigestStore(tmp_path)
    assert store.taken("rows") == -1
    assert store.add("rows", 0, {"paths": _table(1), "uses": _table()})
    assert not store.add("rows", 0, {"paths": _table(1)})
    assert store.add("messages", 0, {"paths": _table(2)})
    again = DigestStore(tmp_path)
    assert not again.add("rows", 0, {"paths": _table(1)})
    assert again.add("rows", 1, {"paths": _table(3)})
    assert _held(again) == [1, 2, 3]
    assert again.files("uses") == []


def test_what_a_crash_left_is_no_part_of_it(tmp_path: Path) -> None:
    """A file that was written and never named in the manifest goes, and its batch is taken when it comes again."""
    DigestStore(tmp_path).add("rows", 0, {"paths": _table(1)})
    pq.write_table(_table(9), tmp_path / FOLDER / "paths-rows-1.parquet")
    store = DigestStore(tmp_path)
    assert sorted(path.name for path in (tmp_path / FOLDER).glob("*.parquet")) == [
        "paths-rows-0.parquet"
    ]
    assert store.add("rows", 1, {"paths": _table(2)})
    assert _held(store) == [1, 2]


def test_many_files_become_one(tmp_path: Path) -> None:
    """What was added while the sum was made stays beside it."""
    store = DigestStore(tmp_path)
    store.add("rows", 0, {"paths": _table(1)})
    store.add("rows", 1, {"paths": _table(2)})
    old = store.files("paths")
    store.add("rows", 2, {"paths": _table(4)})
    store.replace("paths", old, _table(3))
    assert _held(store) == [3, 4]
    store.replace("paths", store.files("paths"), _table(7))
    assert _held(DigestStore(tmp_path)) == [7]
    assert len(list((tmp_path / FOLDER).glob("*.parquet"))) == 1


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1, "files": {}, "batches"'])
def test_a_damaged_manifest_is_named(tmp_path: Path, text: str) -> None:
    """The error says where it is and what to do."""
    DigestStore(tmp_path)
    (tmp_path / FOLDER / MANIFEST).write_text(text)
    with pytest.raises(OperationError, match=r"manifest\.json is damaged"):
        DigestStore(tmp_path)


def test_a_store_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    """Guessing at it would be wrong without saying so."""
    DigestStore(tmp_path)
    newer = {"format": 99, "batches": {}, "files": {}}
    (tmp_path / FOLDER / MANIFEST).write_text(json.dumps(newer))
    with pytest.raises(OperationError, match="newer"):
        DigestStore(tmp_path)


def test_a_lost_file_is_named(tmp_path: Path) -> None:
    """Rows that were counted and are gone cannot be had again."""
    store = DigestStore(tmp_path)
    store.add("rows", 0, {"paths": _table(1)})
    store.files("paths")[0].unlink()
    with pytest.raises(OperationError, match=r"lacks paths-rows-0\.parquet"):
        DigestStore(tmp_path)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """One line says which."""
    (tmp_path / FOLDER).write_text("a file stands here")
    with pytest.raises(OperationError, match="cannot keep digests"):
        DigestStore(tmp_path)
