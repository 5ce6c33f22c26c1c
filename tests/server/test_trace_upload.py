"""Uploads of trace files: each once, whole, resumed, and never in the way of retention's bounds for long."""

import gc
import io
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from vpnrouter import limits
from vpnrouter.config.model import model_of
from vpnrouter.server.trace_stores import MountedDirectory, ObjectStore, UnreadableError, open_store
from vpnrouter.server.trace_upload import (
    DENIED,
    FAILING,
    NOT_FOUND,
    STORE_ERROR,
    THROTTLED,
    TROUBLE,
    UNREACHABLE,
    UNREADABLE,
    WORKING,
    Uploader,
    UploadThread,
    reason_of_store,
)
from vpnrouter.settings import trace
from vpnrouter.testing.s3_server import MISSING, S3Server, StoreGate, find_server
from vpnrouter.trace.retention import Retention
from vpnrouter.units import DAY_NS, SECOND_NS

Upload: Any = model_of(trace.Upload)

DATE = "2024-10-10"
SECRET = "s3cr3t-of-the-store"
KEY = "AKIA-of-the-store"


def put(root: Path, *numbers: int, size: int = 100) -> list[str]:
    """Complete files of router `edge`, and their names."""
    folder = root / f"date={DATE}" / "router=edge"
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"part-{1728518400 * SECOND_NS + number}-{number}.parquet" for number in numbers]
    for number, name in zip(numbers, names, strict=True):
        (folder / name).write_bytes(bytes([number % 256]) * size)
    return names


def shipped(root: Path) -> list[str]:
    """The names of all files below a directory, hidden ones included."""
    return sorted(path.name for path in root.rglob("*") if path.is_file())


class Here:
    """An uploader of what is in `traces`, with a clock of its own."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.traces = folder / "traces"
        self.traces.mkdir(exist_ok=True)
        self.told: list[tuple[str, str]] = []
        self.now_ns = time.monotonic_ns()
        upload = Upload.model_validate(options)
        self.uploader = Uploader(
            self.traces, "edge", upload, lambda *told: self.told.append(told), jitter=lambda: 0.0
        )

    def run(self) -> float | None:
        """Steps until there is nothing to do now; returns what it waits for."""
        while (wait_s := self.uploader.step(self.now_ns)) == 0.0:
            pass
        return wait_s

    def later(self, seconds: float = limits.TRACE_UPLOAD_WAIT_S + 1) -> float | None:
        """The same, after some time."""
        self.now_ns = max(self.now_ns, time.monotonic_ns()) + int(seconds * SECOND_NS)
        return self.run()

    @property
    def counts(self) -> tuple[int, int, int]:
        """Files uploaded, pending and lost."""
        status = self.uploader.status()
        return status.files, status.pending, status.lost


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """A mounted directory."""
    made = tmp_path / "there"
    made.mkdir()
    return made


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    """An S3 server with a bucket."""
    program = find_server(Path(__file__).resolve().parents[2])
    if program is None:
        pytest.skip(MISSING)
    with S3Server(program) as server:
        server.make_bucket("bucket")
        yield server


@pytest.fixture
def gate(s3: S3Server) -> Iterator[StoreGate]:
    """A gate before the server."""
    made = StoreGate(s3.port)
    yield made
    made.end()


@pytest.fixture
def remote(gate: StoreGate, tmp_path: Path) -> Callable[..., Here]:
    """Makes uploaders to a place of the test's own behind the gate."""

    def make(bucket: str = "bucket", **options: Any) -> Here:
        return Here(
            tmp_path,
            **{
                "url": f"s3://{bucket}/{tmp_path.name}",
                "endpoint": gate.url,
                "region": "us-east-1",
                "access_key": KEY,
                "secret_key": SECRET,
                "timeout_s": 1,
                **options,
            },
        )

    return make


# -- a directory -------------------------------------------------------------------------------------


def test_each_file_once_in_the_same_layout(tmp_path: Path, there: Path) -> None:
    """What was there and what comes, whole; a second start uploads nothing."""
    here = Here(tmp_path, url=f"file://{there}")
    names = put(here.traces, 1, 2)
    assert here.run() is None
    (late,) = put(here.traces, 3)
    here.uploader.completed(DATE, late, 100)
    here.uploader.completed(DATE, late, 100)
    assert here.run() is None
    assert shipped(there) == sorted([*names, late])
    place = there / f"date={DATE}" / "router=edge"
    assert (place / late).read_bytes() == b"\x03" * 100
    assert (here.counts, here.uploader.status().size_bytes) == ((3, 0, 0), 300)
    again = Here(tmp_path, url=f"file://{there}")
    (place / late).unlink()
    again.run()
    assert (again.counts, shipped(there)) == ((0, 0, 0), sorted(names))


def test_a_lost_or_foreign_state(tmp_path: Path, there: Path) -> None:
    """Without a state the store is asked: what is there in its size is not uploaded again; elsewhere all is."""
    here = Here(tmp_path, url=f"file://{there}")
    names = put(here.traces, 1, 2, 3)
    here.run()
    (state,) = here.traces.glob(".upload-*")
    (there / f"date={DATE}" / "router=edge" / names[1]).write_bytes(b"half")
    for text in (None, b"", b"\xff\x00 nonsense"):
        state.unlink() if text is None else state.write_bytes(text)
        again = Here(tmp_path, url=f"file://{there}")
        again.run()
        assert again.counts == ((1, 0, 0) if text is None else (0, 0, 0))
    other = tmp_path / "other"
    other.mkdir()
    elsewhere = Here(tmp_path, url=f"file://{other}")
    elsewhere.run()
    assert (elsewhere.counts, shipped(other)) == ((3, 0, 0), sorted(names))


def test_a_mount_that_is_gone(tmp_path: Path, there: Path) -> None:
    """Nothing is made in its place; told once when it begins and once when it is over; waits grow to a bound."""
    there.rmdir()
    here = Here(tmp_path, url=f"file://{there}")
    put(here.traces, 1, 2)
    waits = [here.run() or 0.0, *(here.later() or 0.0 for _ in range(11))]
    assert waits[:4] == [0.5, 1.0, 2.0, 4.0]
    assert waits[-1] == limits.TRACE_UPLOAD_WAIT_S / 2
    assert not there.exists()
    assert here.counts == (0, 2, 0)
    assert sum(here.uploader.status().failures.values()) == 12
    there.mkdir()
    here.later()
    assert [kind for kind, _ in here.told] == [FAILING, WORKING]
    assert here.counts == (2, 0, 0)


def test_a_file_that_cannot_be_read(tmp_path: Path, there: Path) -> None:
    """The others go on; it is tried a few times, stays pending, and is no failure of the store."""
    here = Here(tmp_path, url=f"file://{there}")
    names = put(here.traces, 1, 2)
    first = here.traces / f"date={DATE}" / "router=edge" / names[0]
    here.uploader.completed(DATE, names[0], 100)
    first.unlink()
    # A directory can be opened by nobody, not even by root.
    first.mkdir()
    here.run()
    for _ in range(limits.TRACE_UPLOAD_READS + 2):
        here.later()
    assert here.uploader.status().failures == {UNREADABLE: limits.TRACE_UPLOAD_READS}
    assert (here.counts, shipped(there)) == ((1, 1, 0), [names[1]])
    assert [kind for kind, _ in here.told] == [TROUBLE]


def test_a_file_that_somebody_removed_is_lost(tmp_path: Path, there: Path) -> None:
    """It does not wait for ever."""
    here = Here(tmp_path, url=f"file://{there}")
    here.uploader.completed(DATE, "part-1-1.parquet", 7)
    here.run()
    assert (here.counts, here.uploader.status().lost_bytes) == ((0, 0, 1), 7)


@pytest.mark.parametrize("by_age", [True, False])
def test_retention_waits_for_uploads_up_to_a_bound(
    tmp_path: Path, there: Path, *, by_age: bool
) -> None:
    """What is not uploaded stays; beyond the bound the oldest goes and is lost; what is uploaded goes as ever."""
    there.rmdir()
    here = Here(tmp_path, url=f"file://{there}", max_pending_bytes=300)
    names = put(here.traces, 1, 2, 3, 4, 5)
    folder = here.traces / f"date={DATE}" / "router=edge"
    for name in names:
        os.utime(folder / name, (1728518400, 1728518400))
    age_ns, most = (DAY_NS, 0) if by_age else (0, 1)

    def sweep() -> list[str]:
        retention = Retention(here.traces, "edge", age_ns, most, uploader=here.uploader)
        while retention.step(1728518400 * SECOND_NS + 9 * DAY_NS):
            pass
        return sorted(path.name for path in folder.glob("part-*"))

    assert sweep() == names, "before it is known what is uploaded, all stays"
    here.run()
    assert sweep() == names[2:], "the oldest beyond the bound"
    assert here.counts == (0, 3, 2)
    assert [kind for kind, _ in here.told] == [FAILING, TROUBLE]
    there.mkdir()
    here.later()
    assert here.counts == (3, 0, 2)
    assert sweep() == ([] if by_age else names[4:])
    assert here.counts == (3, 0, 2), "what was uploaded is not lost"


# -- an S3 server ------------------------------------------------------------------------------------


def test_files_in_a_bucket(remote: Callable[..., Here], s3: S3Server, tmp_path: Path) -> None:
    """The same layout and bytes, files of several parts too; a lost state asks the store and uploads nothing."""
    here = remote()
    small, large = put(here.traces, 1), put(here.traces, 2, size=23_000_000)
    here.run()
    place = f"date={DATE}/router=edge"
    wanted = {f"{place}/{small[0]}": 100, f"{place}/{large[0]}": 23_000_000}
    assert s3.files(f"bucket/{tmp_path.name}") == wanted
    with s3.filesystem().open_input_file(f"bucket/{tmp_path.name}/{place}/{large[0]}") as file:
        assert file.read() == b"\x02" * 23_000_000
    for state in here.traces.glob(".upload-*"):
        state.unlink()
    again = remote()
    again.run()
    assert again.counts == (0, 0, 0)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (301, NOT_FOUND),
        (400, STORE_ERROR),
        (403, DENIED),
        (500, STORE_ERROR),
        (503, THROTTLED),
    ],
)
def test_a_store_that_refuses(
    remote: Callable[..., Here], gate: StoreGate, status: int, reason: str
) -> None:
    """The reason is counted; when the store takes files again, all are there."""
    here = remote()
    put(here.traces, 1, 2)
    gate.status, gate.says = status, f"not with {KEY} and {SECRET}"
    assert here.run() == 0.5
    assert "not with ********" in here.told[0][1]
    assert here.uploader.status().failures == {reason: 1}
    gate.status = 0
    here.later()
    assert here.counts == (2, 0, 0)
    assert [kind for kind, _ in here.told] == [FAILING, WORKING]
    said = repr(here.told) + here.uploader.status().last_error
    assert SECRET not in said
    assert KEY not in said


def test_credentials_that_may_only_write(remote: Callable[..., Here], gate: StoreGate) -> None:
    """Who may not look whether a file is there uploads it, over what is there."""
    here = remote()
    put(here.traces, 1)
    gate.status, gate.refused = 403, "HEAD "
    here.run()
    assert here.counts == (1, 0, 0)


def test_a_bucket_that_is_not_there(remote: Callable[..., Here], s3: S3Server) -> None:
    """It is not made."""
    here = remote("nowhere")
    put(here.traces, 1)
    here.run()
    assert here.uploader.status().failures == {NOT_FOUND: 1}
    assert s3.files("nowhere") == {}


def test_a_store_that_breaks_off(
    remote: Callable[..., Here], gate: StoreGate, s3: S3Server, tmp_path: Path
) -> None:
    """Of a file whose second part is refused, or which the disk does not give whole, readers see nothing."""
    here = remote()
    (name,) = put(here.traces, 1, size=23_000_000)
    gate.status, gate.refused = 500, "partNumber=2"
    here.run()
    assert here.counts == (0, 1, 0)
    assert s3.files(f"bucket/{tmp_path.name}") == {}
    gate.status = 0

    class Half(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell() > 0:
                raise OSError(5, "Input/output error")
            return super().read(size)

    # Without the gate: where a stream is collected, nothing else of this process runs until it is closed.
    direct = remote(endpoint=f"http://127.0.0.1:{s3.port}")
    store = open_store(direct.uploader._upload)
    assert isinstance(store, ObjectStore)
    broken = False
    try:
        store.put(name, Half(bytes(9_000_000)))
    except UnreadableError:
        broken = True
    assert broken
    # No traceback holds the stream any longer, as one would that pytest keeps.
    gc.collect()
    assert s3.files(f"bucket/{tmp_path.name}") == {}
    here.later()
    assert list(s3.files(f"bucket/{tmp_path.name}").values()) == [23_000_000]


def test_a_store_that_says_nothing(remote: Callable[..., Here], gate: StoreGate) -> None:
    """An attempt ends after the timeout; the thread that waits does not hold up an end."""
    here = remote()
    put(here.traces, 1)
    gate.hangs = True
    here.run()
    assert here.uploader.status().failures == {UNREACHABLE: 1}
    silent = remote(timeout_s=300)
    thread = UploadThread(silent.uploader, lambda error: None)
    gate.hanging.clear()
    thread.start()
    assert gate.hanging.wait(60)
    assert not thread.stop(0.1)


def test_nobody_listens(tmp_path: Path) -> None:
    """A refused connection is a failure like others."""
    options = {"access_key": KEY, "secret_key": SECRET, "region": "r"}
    with socket.socket() as kept:
        # Bound, and not listening.
        kept.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{kept.getsockname()[1]}"
        here = Here(tmp_path, url="s3://bucket", endpoint=endpoint, **options)
        put(here.traces, 1)
        here.run()
    assert here.uploader.status().failures == {UNREACHABLE: 1}


def test_keys_for_azure() -> None:
    """The account is that of the URL, with and without its zone; nothing is asked before a file is put."""
    for account in ("account", "account.dfs.core.windows.net"):
        url = f"abfss://container@{account}/mesh"
        store = open_store(Upload.model_validate({"url": url, "secret_key": "a2V5"}))
        assert isinstance(store, ObjectStore)
        assert store._place == "container/mesh"


def test_reasons() -> None:
    """What is not known is an error of the store; a directory is a store of its own."""
    assert reason_of_store("AWS Error UNKNOWN (HTTP status 403) during HeadObject") == DENIED
    assert reason_of_store("what?") == STORE_ERROR
    assert isinstance(open_store(Upload.model_validate({"url": "file:///a"})), MountedDirectory)
