"""Uploads the complete trace files of one router, oldest first, each once, and says what became of them.

What is uploaded stands in a file of the router, `DIR/.upload-router=NAME`, a line for each. Files that are there when
the router starts and do not stand in it are looked for in the store; one of the same name and size is uploaded. So
neither a crash nor a lost state uploads much again, and what is uploaded again replaces itself.

Threads: `Uploader` has one of its own, which may wait for the store as long as that takes. Its methods `completed`,
`holds`, `removed` and `status` are called from the writer's, and wait for nothing but a lock that is held for moments.
"""

from __future__ import annotations

import hashlib
import random
import threading
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from vpnrouter import limits
from vpnrouter.server.trace_stores import UnreadableError, open_store
from vpnrouter.text import printable
from vpnrouter.trace.retention import Keeper, complete_files
from vpnrouter.trace.writer import Uploads
from vpnrouter.units import SECOND_NS

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.server.trace_stores import Store
    from vpnrouter.settings.trace import Upload

FIRST_WAIT_S: Final = 1.0
"""Seconds after the first failure; each further one doubles them."""

SLACK_LINES: Final = 1_000
"""Lines of files that are gone, after which the state is written anew."""

DENIED: Final = "denied"
NOT_FOUND: Final = "not-found"
THROTTLED: Final = "throttled"
UNREACHABLE: Final = "unreachable"
STORE_ERROR: Final = "store-error"
UNREADABLE: Final = "unreadable"
STATE: Final = "state"
"""Why an upload failed. The last two are of the local disk."""

FAILING: Final = "failing"
WORKING: Final = "working"
TROUBLE: Final = "trouble"
"""What is told: uploads begin to fail, they work again, or a file has trouble."""

_SIGNS: Final = (
    (
        DENIED,
        ("ACCESS_DENIED", "SIGNATURE", "INVALID_ACCESS_KEY", "TOKEN", "HTTP status 403", "401"),
    ),
    (NOT_FOUND, ("NO_SUCH_BUCKET", "RESOURCE_NOT_FOUND", "HTTP status 404", "HTTP status 301")),
    (THROTTLED, ("SLOW_DOWN", "THROTTL", "HTTP status 503", "HTTP status 429", "ServiceUnavail")),
    (UNREACHABLE, ("NETWORK_CONNECTION", "curlCode", "imed out", "imeout", "connect")),
)
"""Parts of what pyarrow says of the errors of stores, which have no numbers, by reason."""


class TraceFile(NamedTuple):
    """A complete file, in the order in which they are uploaded."""

    date: str
    first_ns: int
    serial: int
    name: str
    size_bytes: int

    @property
    def key(self) -> str:
        """What the state calls it."""
        return f"{self.date}/{self.name}"


class Uploader(Keeper):
    """Uploads the files of `router` in `directory`.

    Args:
        directory: DIR.
        router: NAME.
        upload: where to, and how.
        say: told FAILING, WORKING or TROUBLE, and a line.
        opener: makes the store, again after each failure: credentials may have been renewed.
        jitter: draws from 0.0 to below 1.0; a wait lasts between half of what is due and all of it.
    """

    def __init__(
        self,
        directory: Path,
        router: str,
        upload: Upload,
        say: Callable[[str, str], None],
        *,
        opener: Callable[[Upload], Store] = open_store,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        from vpnrouter.trace.parquet import folder_of

        self._directory = directory
        self._folder = folder_of(router)
        self._upload = upload
        self._say = say
        self._opener = opener
        self._jitter = jitter
        self._store: Store | None = None
        self._state = directory / f".upload-{self._folder}"
        self._lines = 0
        self._lock = threading.Lock()
        # Until what is there has been looked at, all is held.
        self._scanned = False
        self._pending: dict[str, TraceFile] = {}
        self._queue: deque[TraceFile] = deque()
        # Those that cannot be read, until they are tried again.
        self._aside: list[TraceFile] = []
        self._aside_due_ns = 0
        self._done: dict[str, int] = {}
        self._pending_bytes = 0
        self._unsure: set[str] = set()
        self._reads: dict[str, int] = {}
        self._failing = 0
        self._losing = False
        self._due_ns = 0
        self._counts = Uploads()
        self._failures: dict[str, int] = {}

    # -- the writer's thread -----------------------------------------------------------------------

    def completed(self, date: str, name: str, size_bytes: int) -> None:
        """Take one more complete file."""
        self._add(_file(date, name, size_bytes))

    def holds(self, date: str, name: str) -> bool:
        """Return whether retention has to leave a file."""
        with self._lock:
            if not self._scanned:
                return True
            waits = f"{date}/{name}" in self._pending
            return waits and self._pending_bytes <= self._upload.max_pending_bytes

    def removed(self, date: str, name: str) -> None:
        """Take note that a file is gone."""
        key = f"{date}/{name}"
        with self._lock:
            self._done.pop(key, None)
            began = self._lose(key) and not self._losing
            self._losing = self._losing or began
        if began:
            self._say(TROUBLE, "traces: files are removed that could not be uploaded")

    def status(self) -> Uploads:
        """Return the present counts. May be called from any thread."""
        with self._lock:
            return self._counts._replace(
                pending=len(self._pending),
                pending_bytes=self._pending_bytes,
                failures=dict(self._failures),
            )

    # -- the thread that uploads -------------------------------------------------------------------

    def step(self, now_ns: int) -> float | None:
        """Upload one file, if there is one and its time has come.

        Args:
            now_ns: monotonic clock, nanoseconds.

        Returns:
            Seconds until the next step may have something to do; None where only another file will.
        """
        if not self._scanned:
            self._scan()
        if now_ns < self._due_ns:
            return (self._due_ns - now_ns) / SECOND_NS
        file = self._next(now_ns)
        if file is None:
            return None
        try:
            self._ship(file)
        except UnreadableError as error:
            self._unreadable(file, error, now_ns)
        except Exception as error:  # noqa: BLE001 - a store never hurts the router
            return self._failed(error, now_ns)
        return 0.0

    def _ship(self, file: TraceFile) -> None:
        """Upload one file.

        Raises:
            UnreadableError: it cannot be read.
            Exception: the store does not take it.
        """
        path = f"date={file.date}/{self._folder}/{file.name}"
        try:
            source = (self._directory / path).open("rb")
        except FileNotFoundError:
            with self._lock:
                self._lose(file.key)
            return
        except OSError as error:
            raise UnreadableError(str(error)) from error
        with source:
            if self._store is None:
                self._store = self._opener(self._upload)
            there = file.key in self._unsure and self._is_there(self._store, path, file.size_bytes)
            if not there:
                self._store.put(path, source)
        self._uploaded(file, counts=not there)

    @staticmethod
    def _is_there(store: Store, path: str, size_bytes: int) -> bool:
        try:
            return store.size_of(path) == size_bytes
        except Exception:  # noqa: BLE001 - credentials that may only write: then it is uploaded again
            return False

    def _uploaded(self, file: TraceFile, *, counts: bool) -> None:
        with self._lock:
            counted = self._counts
            # Retention may have removed it meanwhile, and counted it as lost.
            if self._drop(file.key):
                self._done[file.key] = file.size_bytes
            self._losing = False
            if counts:
                self._counts = counted._replace(
                    files=counted.files + 1, size_bytes=counted.size_bytes + file.size_bytes
                )
        self._unsure.discard(file.key)
        self._note(file)
        if self._failing:
            self._failing = 0
            self._say(WORKING, f"traces: files are uploaded to {self._upload.url} again")

    def _failed(self, error: Exception, now_ns: int) -> float:
        text = self._told(error)
        self._count(reason_of_store(text), text)
        self._store = None
        self._failing += 1
        if self._failing == 1:
            self._say(FAILING, f"traces: files are not uploaded to {self._upload.url}: {text}")
        doubled = FIRST_WAIT_S * float(1 << min(self._failing - 1, 30))
        longest = min(doubled, limits.TRACE_UPLOAD_WAIT_S)
        wait_s = longest * (1 + self._jitter()) / 2
        # Counted from the end of the attempt, which may have lasted as long as a store is silent.
        self._due_ns = max(now_ns, self._now_ns()) + int(wait_s * SECOND_NS)
        return wait_s

    def _unreadable(self, file: TraceFile, error: Exception, now_ns: int) -> None:
        """Put a file aside: the others can be uploaded."""
        reads = self._reads.get(file.key, 0) + 1
        self._reads[file.key] = reads
        self._count(UNREADABLE, self._told(error))
        if reads == 1:
            self._say(TROUBLE, f"traces: {file.key} cannot be uploaded: {self._told(error)}")
        with self._lock:
            self._queue.remove(file)
        if reads < limits.TRACE_UPLOAD_READS:
            self._aside.append(file)
            self._aside_due_ns = now_ns + limits.TRACE_UPLOAD_WAIT_S * SECOND_NS

    def _told(self, error: Exception) -> str:
        """Return what is said of an error, without secrets: what a store answers may repeat them."""
        text = str(error) or type(error).__name__
        for secret in (self._upload.access_key, self._upload.secret_key):
            if secret is not None:
                text = text.replace(secret.reveal(), "********")
        return printable(text)[: limits.TRACE_UPLOAD_ERROR]

    def _count(self, reason: str, text: str) -> None:
        with self._lock:
            self._failures[reason] = self._failures.get(reason, 0) + 1
            self._counts = self._counts._replace(last_error=f"{reason}: {text}")

    @staticmethod
    def _now_ns() -> int:
        return time.monotonic_ns()

    # -- what waits ---------------------------------------------------------------------------------

    def _add(self, file: TraceFile) -> None:
        with self._lock:
            if file.key in self._pending or file.key in self._done:
                return
            self._pending[file.key] = file
            self._pending_bytes += file.size_bytes
            self._queue.append(file)

    def _next(self, now_ns: int) -> TraceFile | None:
        """Return the file that is first until it is no longer pending."""
        with self._lock:
            if self._aside and now_ns >= self._aside_due_ns:
                self._queue.extend(self._aside)
                self._aside = []
            while self._queue and self._queue[0].key not in self._pending:
                self._queue.popleft()
            return self._queue[0] if self._queue else None

    def _drop(self, key: str) -> bool:
        file = self._pending.pop(key, None)
        if file is None:
            return False
        self._pending_bytes -= file.size_bytes
        return True

    def _lose(self, key: str) -> bool:
        file = self._pending.get(key)
        if file is not None and self._drop(key):
            counted = self._counts
            self._counts = counted._replace(
                lost=counted.lost + 1, lost_bytes=counted.lost_bytes + file.size_bytes
            )
        return file is not None

    # -- what is known of earlier processes ---------------------------------------------------------

    def _scan(self) -> None:
        """Find what is there and not uploaded."""
        known = self._known()
        found = []
        for date, name, size_bytes in complete_files(self._directory, self._folder):
            file = _file(date, name, size_bytes)
            if f"{file.key} {size_bytes}" in known:
                with self._lock:
                    self._done[file.key] = size_bytes
            else:
                found.append(file)
        for file in sorted(found):
            self._unsure.add(file.key)
            self._add(file)
        with self._lock:
            # The writer may have completed some already.
            self._queue = deque(sorted(self._queue))
            self._scanned = True
        self._write_state()

    def _head(self) -> str:
        """The first line of the state: another destination has nothing yet."""
        where = f"{self._upload.url} {self._upload.endpoint or ''}"
        return "uploaded to " + hashlib.sha256(where.encode()).hexdigest()

    def _known(self) -> set[str]:
        try:
            lines = self._state.read_text(encoding="ascii").splitlines()
        except (OSError, UnicodeError):
            return set()
        return set(lines[1:]) if lines and lines[0] == self._head() else set()

    def _note(self, file: TraceFile) -> None:
        """Add a file to the state."""
        try:
            with self._state.open("a", encoding="ascii") as state:
                state.write(f"{file.key} {file.size_bytes}\n")
        except OSError as error:
            # It is looked for in the store at the next start.
            self._count(STATE, self._told(error))
            return
        self._lines += 1
        with self._lock:
            slack = self._lines - len(self._done)
        if slack > SLACK_LINES:
            self._write_state()

    def _write_state(self) -> None:
        """Write the state anew, with what is still here."""
        with self._lock:
            done = sorted(self._done.items())
        lines = [self._head(), *(f"{key} {size_bytes}" for key, size_bytes in done)]
        fresh = self._state.with_name(f"{self._state.name}.new")
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            fresh.write_text("\n".join(lines) + "\n", encoding="ascii")
            fresh.replace(self._state)
        except OSError as error:
            self._count(STATE, self._told(error))
        self._lines = len(lines) - 1


def _file(date: str, name: str, size_bytes: int) -> TraceFile:
    first_ns, serial = name.removesuffix(".parquet").split("-")[1:]
    return TraceFile(date, int(first_ns), int(serial), name, size_bytes)


def reason_of_store(text: str) -> str:
    """Return the reason of a failure by what pyarrow says of it."""
    for reason, signs in _SIGNS:
        if any(sign in text for sign in signs):
            return reason
    return STORE_ERROR


class UploadThread:
    """Drives an `Uploader`. A daemon: a store that hangs must not keep the process from ending."""

    def __init__(self, uploader: Uploader, fault: Callable[[Exception], None]) -> None:
        self._uploader = uploader
        self._fault = fault
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="trace-upload", daemon=True)

    def start(self) -> None:
        """Begin with what is there."""
        self._thread.start()

    def wake(self) -> None:
        """Let it look for another file."""
        self._wake.set()

    def stop(self, timeout_s: float) -> bool:
        """End it when nothing waits that can be uploaded now, after `timeout_s` seconds at most; the next start goes
        on. Returns False when it hangs still.
        """
        self._stopping = True
        self._wake.set()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            self._wake.clear()
            stopping = self._stopping
            wait_s: float | None = limits.TRACE_UPLOAD_WAIT_S
            try:
                wait_s = self._uploader.step(time.monotonic_ns())
            except Exception as error:  # noqa: BLE001 - told to the router
                self._fault(error)
            if wait_s == 0.0:
                continue
            if stopping:
                return
            self._wake.wait(limits.TRACE_UPLOAD_WAIT_S if wait_s is None else wait_s)
