"""Where files are: on this machine, or on a file system that a session of Spark reaches.

A place is a text: a path of this machine, or the URI of another file system (`s3a://bucket/traces`).
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol, final
from urllib.parse import unquote, urlsplit

from vpnrouter.errors import OperationError

OBJECT_STORES: Final = frozenset({"s3", "s3a", "s3n", "gs", "oss", "cosn", "obs"})
"""Schemes of those that show a file when it is complete, and cannot rename it in a step; elsewhere a hidden name goes
first.
"""

_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def is_uri(place: str) -> bool:
    """Return whether a place is the URI of a file system that is not this machine's."""
    return _URI.match(place) is not None and not Path(place).exists()


def place_of(text: str) -> str:
    """Return the place that a text names; the URI of a file of this machine (`file:///traces`) becomes its path.

    Raises:
        OperationError: it is empty, or a URI of files names another machine.
    """
    if not text.strip():
        raise OperationError("it is empty, and names no place")
    if not is_uri(text):
        return text
    scheme, host, path, _, _ = urlsplit(text)
    if scheme.lower() != "file":
        return text.rstrip("/")
    if host not in {"", "localhost"}:
        raise OperationError(f"{text} is on {host}: a file: URI is of this machine, as file:///…")
    return unquote(path)


def without_links(place: str) -> str:
    """Return the one name of a place: a path of this machine without links and steps up; a URI as it is."""
    return place if is_uri(place) else str(Path(place).resolve())


def below(place: str, name: str) -> str:
    """Return the place `name` in the directory `place`."""
    return f"{place.rstrip('/')}/{name}"


def lies_below(place: str, folder: str) -> bool:
    """Return whether a place is a directory or something in it, at any depth."""
    return place == folder or place.startswith(folder.rstrip("/") + "/")


_SUFFIX: Final = ".parquet"


def is_complete(name: str) -> bool:
    """Return whether a path below a directory names a file for readers: what is being written is hidden, as is what
    other programs keep beside.
    """
    return name.endswith(_SUFFIX) and not any(
        part.startswith((".", "_")) for part in name.split("/")
    )


class StoredFile(NamedTuple):
    """A file and how large it is, bytes."""

    path: str
    size_bytes: int


class Storage(Protocol):
    """Files of one file system. All methods raise an OperationError of one line where it refuses."""

    def files(self, root: str) -> list[StoredFile]:
        """Return the file `root`, or all complete files (`is_complete`) below the directory `root` at any depth.

        Raises:
            OperationError: there is nothing of that name, or it cannot be listed.
        """

    def tails(
        self, files: Sequence[StoredFile], size_bytes: int
    ) -> Iterable[bytes | OperationError]:
        """Return the last bytes of each of the files, at most `size_bytes` and at least the footer as far as it is in
        them, or why it cannot be read.
        """

    def digest(self, path: str) -> str:
        """Return a digest of the contents of a file, "" of one that is gone."""

    def make(self, folder: str) -> None:
        """Make a directory and those above it, where there is none."""

    def read(self, path: str) -> bytes:
        """Return the contents of a file."""

    def exists(self, path: str) -> bool:
        """Return whether there is a file or a directory of that name."""

    def write(self, path: str, data: bytes) -> None:
        """Write a whole file: a reader sees the old one or the new one."""

    def remove(self, path: str) -> None:
        """Remove a file, where there is one."""


@final
class LocalStorage:
    """The file system of this machine."""

    def files(self, root: str) -> list[StoredFile]:
        """Return the files below `root`, or itself, without links in their paths: a file has one path."""
        top = Path(root)
        if not top.exists():
            raise OperationError(f"no such trace directory or file: {root}")
        inside = (path for path in top.rglob(f"*{_SUFFIX}") if is_complete(_name(path, top)))
        found = sorted(inside) if top.is_dir() else [top]
        return [self._stored(path) for path in found if not path.is_dir()]

    @staticmethod
    def _stored(path: Path) -> StoredFile:
        """Return a file; one that a link names and that is not there, or that has just gone, has no bytes."""
        try:
            return StoredFile(str(path.resolve()), path.stat().st_size)
        except OSError:
            return StoredFile(str(path.absolute()), 0)

    def tails(
        self, files: Sequence[StoredFile], size_bytes: int
    ) -> Iterator[bytes | OperationError]:
        """Yield the last bytes of each of the files."""
        for stored in files:
            try:
                with Path(stored.path).open("rb") as file:
                    file.seek(max(0, file.seek(0, os.SEEK_END) - size_bytes))
                    yield file.read()
            except OSError as error:
                yield OperationError(f"cannot be read: {error.strerror}")

    def digest(self, path: str) -> str:
        """Return a digest of the contents."""
        try:
            with Path(path).open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            return ""

    def make(self, folder: str) -> None:
        """Make a directory."""
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OperationError(f"cannot write to {folder}: {error.strerror}") from error

    def read(self, path: str) -> bytes:
        """Return the contents of a file."""
        try:
            return Path(path).read_bytes()
        except OSError as error:
            raise OperationError(f"cannot read {path}: {error.strerror}") from error

    def exists(self, path: str) -> bool:
        """Return whether there is something of that name."""
        return Path(path).exists()

    def write(self, path: str, data: bytes) -> None:
        """Write a file under a hidden name first, in a directory that is made where it is missing."""
        whole = Path(path)
        partial = whole.with_name(f".{whole.name}")
        try:
            whole.parent.mkdir(parents=True, exist_ok=True)
            partial.write_bytes(data)
            partial.replace(whole)
        except OSError as error:
            if partial.is_file():
                partial.unlink()
            raise OperationError(f"cannot write {path}: {error.strerror}") from error

    def remove(self, path: str) -> None:
        """Remove a file."""
        try:
            Path(path).unlink(missing_ok=True)
        except OSError as error:
            raise OperationError(f"cannot remove {path}: {error.strerror}") from error


def _name(path: Path, top: Path) -> str:
    return path.relative_to(top).as_posix()


LOCAL: Final = LocalStorage()


@final
class Storages:
    """The storage of each place: of this machine, and what a session of Spark reaches, `remote`.

    `elsewhere`: Spark works on another machine, so that paths are of that one and `remote` has them all.
    """

    def __init__(self, remote: Storage | None = None, *, elsewhere: bool = False) -> None:
        self._remote = remote
        self._elsewhere = elsewhere

    def of(self, place: str) -> Storage:
        """Return the storage of a place.

        Raises:
            OperationError: it is a URI, and there is no session of Spark.
        """
        if not self._elsewhere and not is_uri(place):
            return LOCAL
        if self._remote is None:
            raise OperationError(f"{place} is not on this machine")
        return self._remote
