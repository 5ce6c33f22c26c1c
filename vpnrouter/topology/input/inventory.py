"""Which trace files there are, and which of them can be read: looked up in their footers, before
Spark starts.

Rules, which docs/traces.md and docs/report.md state for users:

- Only complete files count: names that begin with "." or "_", and anything in directories so
named, are passed over.
- A file that is empty, damaged, or not a trace is set aside and named with its reason; the rest is
read.
- A file of a newer trace format is refused, and with it the whole run: guessing at its meaning
would give a
  report that is wrong without saying so.
- A file reached by two of the given paths is read once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from vpnrouter.errors import OperationError
from vpnrouter.trace.schema import ROUTER_KEY, SAMPLE_KEY, VERSION, VERSION_KEY

_NEEDED: Final = frozenset({"ts_ns", "vpn", "event"})
_VERSION_KEY: Final = VERSION_KEY.encode()
_ROUTER_KEY: Final = ROUTER_KEY.encode()
_SAMPLE_KEY: Final = SAMPLE_KEY.encode()


@dataclass(frozen=True, kw_only=True)
class TraceFile:
    """A readable trace file.

    `router_from` tells where its rows' router stands: in a column, in its directory's name, or
    only in the metadata. `sample` is the writer's sampling rate, None when the file does not say.
    """

    path: Path
    rows: int
    size_bytes: int
    router: str | None
    router_from: Literal["column", "directory", "metadata"]
    sample: float | None


@dataclass(frozen=True, kw_only=True)
class SetAside:
    """A file that is not part of the report, and why."""

    path: Path
    reason: str


@dataclass(frozen=True, kw_only=True)
class Inventory:
    """What the given paths hold."""

    files: tuple[TraceFile, ...]
    set_aside: tuple[SetAside, ...]

    @property
    def rows(self) -> int:
        """Trace rows in all readable files, from their footers."""
        return sum(file.rows for file in self.files)

    @property
    def size_bytes(self) -> int:
        """Bytes of all readable files on disk."""
        return sum(file.size_bytes for file in self.files)

    def without(self, path: Path, reason: str) -> "Inventory":
        """The same inventory with the file `path` moved to those set aside."""
        return replace(
            self,
            files=tuple(file for file in self.files if file.path != path),
            set_aside=(*self.set_aside, SetAside(path=path, reason=reason)),
        )

    def sampling(self) -> dict[str, float]:
        """The sampling rate of each router all of whose files state one and the same."""
        rates: dict[str, set[float | None]] = {}
        for file in self.files:
            if file.router is not None:
                rates.setdefault(file.router, set()).add(file.sample)
        known: dict[str, float] = {}
        for router, found in rates.items():
            (rate, *others) = found
            if rate is not None and not others:
                known[router] = rate
        return known


def take_inventory(roots: Sequence[Path], *, leave_out: Path | None = None) -> Inventory:
    """Look at every trace file under `roots` (directories or single files), but none under
    `leave_out`.

    Raises:
        OperationError: a root does not exist, or a file is of a newer trace format.
    """
    files: list[TraceFile] = []
    set_aside: list[SetAside] = []
    newer: list[str] = []
    for path in _trace_files(roots, leave_out):
        try:
            footer = pq.read_metadata(path)
            size_bytes = path.stat().st_size
        except (pa.ArrowException, OSError) as error:
            set_aside.append(SetAside(path=path, reason=_damage(path, error)))
            continue
        metadata = footer.metadata or {}
        version = _number(metadata.get(_VERSION_KEY, b"1"))
        if version is not None and version > VERSION:
            newer.append(f"{path} (format {version:g})")
            continue
        columns = {footer.schema.column(at).path.split(".")[0] for at in range(footer.num_columns)}
        missing = sorted(_NEEDED - columns)
        stated = metadata.get(_ROUTER_KEY, b"").decode(errors="replace")
        directory = path.parent.name
        placed = (
            unquote(directory.removeprefix("router=")) if directory.startswith("router=") else ""
        )
        router = stated or placed or None
        if missing:
            reason = f"not a trace file: no column {', '.join(missing)}"
            set_aside.append(SetAside(path=path, reason=reason))
        elif router is None and "router" not in columns:
            reason = "names no router: no column router, and no directory router=NAME above it"
            set_aside.append(SetAside(path=path, reason=reason))
        elif footer.num_rows == 0:
            set_aside.append(SetAside(path=path, reason="empty: no rows"))
        else:
            sample = _number(metadata.get(_SAMPLE_KEY, b""))
            files.append(
                TraceFile(
                    path=path,
                    rows=footer.num_rows,
                    size_bytes=size_bytes,
                    router=router,
                    router_from="column"
                    if "router" in columns
                    else "directory"
                    if placed == router
                    else "metadata",
                    sample=sample if sample is not None and 0 < sample <= 1 else None,
                )
            )
    if newer:
        raise OperationError(
            f"written by a newer vpnrouter than this one (it reads up to format {VERSION}): "
            + ", ".join(newer)
        )
    return Inventory(files=tuple(files), set_aside=tuple(set_aside))


def _trace_files(roots: Sequence[Path], leave_out: Path | None) -> Iterator[Path]:
    omitted = leave_out.resolve() if leave_out is not None else None
    seen: set[Path] = set()
    for root in roots:
        if not root.exists():
            raise OperationError(f"no such trace directory or file: {root}")
        if root.is_dir():
            found = sorted(path for path in root.rglob("*.parquet") if not _hidden(path, root))
        else:
            found = [root]
        for path in found:
            real = path.resolve()
            if omitted is not None and real.is_relative_to(omitted):
                continue
            if real not in seen and path.is_file():
                seen.add(real)
                yield real


def _hidden(path: Path, root: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.relative_to(root).parts)


def _damage(path: Path, error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror}"
    if path.stat().st_size == 0:
        return "empty: no bytes"
    return f"damaged: {str(error).splitlines()[0]}"


def _number(text: bytes) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
