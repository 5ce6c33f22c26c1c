"""The stores that trace files are uploaded to: where a file goes, and how it appears there as a whole.

A store is an object store by one of pyarrow's file systems, or a mounted directory. Imported where files are
uploaded only: pyarrow's file systems bring the clients of the stores.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol
from urllib.parse import urlsplit

from typing_extensions import override

from vpnrouter import limits

if TYPE_CHECKING:
    from vpnrouter.settings.trace import Upload

AZURE_ZONE: Final = ".dfs.core.windows.net"
"""What the account in a URL of Azure may end with."""

CONNECT_S: Final = 5
"""Most seconds to connect to a store, within its `timeout_s`."""


class UnreadableError(Exception):
    """The local file could not be read; the store is not to blame."""


class Store(Protocol):
    """Where files are put, by paths below the URL."""

    def put(self, path: str, file: BinaryIO) -> None:
        """Copy a file; readers see all of it or nothing. What was there is replaced.

        Raises:
            UnreadableError: the file cannot be read.
            OSError: the store does not take it.
        """

    def size_of(self, path: str) -> int | None:
        """Return the bytes of what is there under a path, None for nothing.

        Raises:
            OSError: the store does not say.
        """


def open_store(upload: Upload) -> Store:
    """Return the store of an URL.

    Raises:
        OSError: it cannot be opened.
    """
    scheme, _, rest = upload.url.partition("://")
    if scheme == "file":
        return MountedDirectory(Path(rest))
    if scheme == "s3":
        return ObjectStore(_s3(upload), rest)
    if scheme == "gs":
        return ObjectStore(_gs(upload), rest)
    container, _, path = rest.partition("/")
    name, _, account = container.partition("@")
    return ObjectStore(_azure(upload, account), f"{name}/{path}")


def _s3(upload: Upload) -> Any:  # noqa: ANN401 - pyarrow has no types
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem

    options: dict[str, Any] = {}
    if upload.access_key is not None and upload.secret_key is not None:
        options["access_key"] = upload.access_key.reveal()
        options["secret_key"] = upload.secret_key.reveal()
    if upload.region is not None:
        options["region"] = upload.region
    if upload.endpoint is not None:
        parts = urlsplit(upload.endpoint)
        options |= {"scheme": parts.scheme, "endpoint_override": parts.netloc}
    return S3FileSystem(
        connect_timeout=min(CONNECT_S, upload.timeout_s),
        request_timeout=upload.timeout_s,
        # Who uploads repeats by itself, with waits that grow further.
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=1),
        **options,
    )


def _gs(upload: Upload) -> Any:  # noqa: ANN401 - the same
    import datetime as dt

    from pyarrow.fs import GcsFileSystem

    options: dict[str, Any] = {"retry_time_limit": dt.timedelta(seconds=upload.timeout_s)}
    if upload.endpoint is not None:
        parts = urlsplit(upload.endpoint)
        options |= {"scheme": parts.scheme, "endpoint_override": parts.netloc}
    return GcsFileSystem(**options)


def _azure(upload: Upload, account: str) -> Any:  # noqa: ANN401 - the same
    from pyarrow.fs import AzureFileSystem

    options: dict[str, Any] = {}
    if upload.secret_key is not None:
        options["account_key"] = upload.secret_key.reveal()
    if upload.endpoint is not None:
        parts = urlsplit(upload.endpoint)
        for kind in ("blob", "dfs"):
            options[f"{kind}_storage_authority"] = parts.netloc
            options[f"{kind}_storage_scheme"] = parts.scheme
    return AzureFileSystem(account.removesuffix(AZURE_ZONE), **options)


class ObjectStore(Store):
    """A bucket by one of pyarrow's file systems; `place` is the bucket and the path in it."""

    abandoned: Final[list[Any]] = []
    """Streams of uploads that broke off. pyarrow completes an object where its stream is closed or collected, so a
    file that could not be read to its end would appear with its begin. These are neither, until the process ends.
    """

    def __init__(self, filesystem: Any, place: str) -> None:  # noqa: ANN401 - the same
        self._filesystem = filesystem
        self._place = place.strip("/")
        # That of S3 does not complete what the store refused a part of; of others it is not known.
        self._safe = filesystem.type_name == "s3"

    @override
    def put(self, path: str, file: BinaryIO) -> None:
        if len(self.abandoned) >= limits.TRACE_UPLOAD_ABANDONED:
            raise OSError(f"{len(self.abandoned)} uploads broke off: restart the router")
        stream = self._filesystem.open_output_stream(f"{self._place}/{path}")
        try:
            while data := _read(file):
                stream.write(data)
        except Exception as error:
            if isinstance(error, UnreadableError) or not self._safe:
                self.abandoned.append(stream)
            raise
        # What was not stored whole fails here.
        stream.close()

    @override
    def size_of(self, path: str) -> int | None:
        from pyarrow.fs import FileType

        found = self._filesystem.get_file_info(f"{self._place}/{path}")
        return int(found.size) if found.type == FileType.File else None


class MountedDirectory(Store):
    """A directory, which has to be there: a mount that is gone must not fill the disk below it."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @override
    def put(self, path: str, file: BinaryIO) -> None:
        if not self._root.is_dir():
            raise FileNotFoundError(f"{self._root} is no directory")
        final = self._root / path
        final.parent.mkdir(parents=True, exist_ok=True)
        hidden = final.with_name(f".{final.name}.upload")
        try:
            with hidden.open("wb") as copy:
                while data := _read(file):
                    copy.write(data)
                copy.flush()
                os.fsync(copy.fileno())
            hidden.replace(final)
        except BaseException:
            with contextlib.suppress(OSError):
                hidden.unlink()
            raise

    @override
    def size_of(self, path: str) -> int | None:
        try:
            return (self._root / path).stat().st_size
        except FileNotFoundError:
            return None


def _read(file: BinaryIO) -> bytes:
    try:
        return file.read(limits.TRACE_UPLOAD_CHUNK)
    except OSError as error:
        raise UnreadableError(str(error)) from error
