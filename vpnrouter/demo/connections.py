"""The TCP connections of a machine, as Linux lists them."""

from collections.abc import Collection
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc/net")

_ESTABLISHED: Final = "01"


def accepted(ports: Collection[int], proc: Path = PROC) -> int | None:
    """How many connections to these listening ports are established; None where nobody tells.

    Each connection has a row for either end; only those count whose own port is one of `ports`.
    """
    tables = [path for name in ("tcp", "tcp6") if (path := proc / name).is_file()]
    if not tables:
        return None
    return sum(
        1
        for table in tables
        for row in table.read_text(encoding="ascii").splitlines()[1:]
        if _counts(row.split(), ports)
    )


def _counts(columns: list[str], ports: Collection[int]) -> bool:
    """Columns are number, local address, remote address, state and more; numbers are hexadecimal."""
    return columns[3] == _ESTABLISHED and int(columns[1].rpartition(":")[2], 16) in ports
