"""Digests on disk that grow batch by batch, each batch exactly once.

`DIR/digests/` holds Parquet files and `manifest.json`, which says which of them count and which batch of each
stream was the last one. A batch writes its files and then replaces the manifest, in one rename: a batch that is
run again after a crash finds that it has been taken, or finds nothing of itself. Files that no
manifest names are rests of a crash and go at the next start.
"""

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from vpnrouter.errors import OperationError

FOLDER: Final = "digests"
MANIFEST: Final = "manifest.json"
_FORMAT: Final = 1


class DigestStore:
    """The digests under `output`/digests. Methods may be called from any thread.

    Raises:
        OperationError: the folder cannot be made or read, or is of a newer format.
    """

    def __init__(self, output: Path) -> None:
        self._folder = output / FOLDER
        self._lock = threading.Lock()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._manifest = self._read()
            self._clear()
        except OSError as error:
            raise OperationError(
                f"cannot keep digests in {self._folder}: {error.strerror}"
            ) from error

    def taken(self, stream: str) -> int:
        """The last batch of a stream that was added, -1 before the first."""
        with self._lock:
            return int(self._manifest["batches"].get(stream, -1))

    def add(self, stream: str, batch: int, tables: Mapping[str, pa.Table]) -> bool:
        """Add what a batch gave, tables by the name of their digest; False when it was there already.

        Raises:
            OperationError: the files cannot be written; then nothing was added.
        """
        with self._lock:
            if batch <= int(self._manifest["batches"].get(stream, -1)):
                return False
            files = {name: [*listed] for name, listed in self._manifest["files"].items()}
            for name, table in tables.items():
                if table.num_rows:
                    written = f"{name}-{stream}-{batch}.parquet"
                    self._write(written, table)
                    files.setdefault(name, []).append(written)
            batches = {**self._manifest["batches"], stream: batch}
            self._commit({"format": _FORMAT, "batches": batches, "files": files})
            return True

    def files(self, name: str) -> list[Path]:
        """The files of a digest, oldest first."""
        with self._lock:
            return [self._folder / one for one in self._manifest["files"].get(name, [])]

    def replace(self, name: str, old: list[Path], table: pa.Table) -> None:
        """Put one file in the place of several that hold the same in sum.

        Raises:
            OperationError: it cannot be written; then nothing has changed.
        """
        gone = {path.name for path in old}
        with self._lock:
            written = f"{name}-sum-{self._manifest.get('sums', 0) + 1}.parquet"
            self._write(written, table)
            files = dict(self._manifest["files"])
            files[name] = [written, *(one for one in files[name] if one not in gone)]
            changed = {**self._manifest, "files": files, "sums": self._manifest.get("sums", 0) + 1}
            self._commit(changed)
            for path in old:
                path.unlink(missing_ok=True)

    def _read(self) -> dict[str, Any]:
        path = self._folder / MANIFEST
        if not path.exists():
            return {"format": _FORMAT, "batches": {}, "files": {}}
        try:
            manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            newer = int(manifest["format"]) > _FORMAT
            named = [one for listed in manifest["files"].values() for one in listed]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise OperationError(
                f"{path} is damaged: remove {self._folder}, or use another --output"
            ) from error
        if newer:
            raise OperationError(f"{path} was written by a newer vpnrouter than this one")
        missing = [one for one in named if not (self._folder / one).exists()]
        if missing:
            raise OperationError(
                f"{self._folder} lacks {missing[0]}: remove it, or use another --output"
            )
        return manifest

    def _clear(self) -> None:
        named = {one for listed in self._manifest["files"].values() for one in listed}
        for path in self._folder.glob("*.parquet"):
            if path.name not in named:
                path.unlink()

    def _write(self, name: str, table: pa.Table) -> None:
        try:
            pq.write_table(table, self._folder / name, compression="zstd")
        except OSError as error:
            (self._folder / name).unlink(missing_ok=True)
            raise OperationError(f"cannot write {self._folder / name}: {error.strerror}") from error

    def _commit(self, manifest: dict[str, Any]) -> None:
        partial = self._folder / f".{MANIFEST}"
        try:
            partial.write_text(json.dumps(manifest), encoding="utf-8")
            partial.replace(self._folder / MANIFEST)
        except OSError as error:
            raise OperationError(
                f"cannot write {self._folder / MANIFEST}: {error.strerror}"
            ) from error
        self._manifest = manifest
