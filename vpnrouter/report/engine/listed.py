"""Has Spark read files by a list of ours, so that it asks an object store for none of them before it reads.

Spark asks for each file that it is given by itself: whether it is there, and what is below it. That is two requests a
file, one after the other in each task: half an hour for 100,000 files. Where a directory has a log of the files that a
stream of Spark has written (`_spark_metadata`), it takes the files of the log instead, with their lengths; they may lie
anywhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import quote, urlsplit

from pyspark.sql import DataFrame, DataFrameReader

from vpnrouter.report.traces.storage import OBJECT_STORES, StoredFile, is_uri

_LOG: Final = "_spark_metadata"
_VERSION: Final = "v1"
_BLOCK_BYTES: Final = 128 * 1024 * 1024
_FAR: Final = OBJECT_STORES | {"abfs", "abfss", "wasb", "wasbs"}
"""File systems on which no file is nearer to one executor than to another, so that their list says all of it."""


def are_far(paths: Iterable[str]) -> bool:
    """Return whether all of these files are on object stores."""
    return all(urlsplit(path).scheme.lower() in _FAR for path in paths)


def read_listed(reader: DataFrameReader, files: Iterable[StoredFile]) -> DataFrame:
    """Return the rows of these Parquet files, in Java of this machine."""
    with TemporaryDirectory(prefix="vpnrouter-files-") as folder:
        log = Path(folder, _LOG)
        log.mkdir()
        lines = (json.dumps(_entry(file)) for file in files)
        Path(log, "0").write_text("\n".join((_VERSION, *lines)))
        # The log is read here and now, and not again.
        return reader.parquet(Path(folder).as_uri())


def _entry(file: StoredFile) -> dict[str, object]:
    if is_uri(file.path):
        scheme, _, rest = file.path.partition(":")
        path = f"{scheme}:{quote(rest, safe='/@:')}"
    else:
        path = Path(file.path).as_uri()
    return {
        "path": path,
        "size": file.size_bytes,
        "isDir": False,
        "modificationTime": 0,
        "blockReplication": 1,
        "blockSize": _BLOCK_BYTES,
        "action": "add",
    }
