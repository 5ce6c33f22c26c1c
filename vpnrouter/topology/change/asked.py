"""What bridges asked their remotes for, as the traces tell it."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.topology.tables import Rows

_BRIDGE: Final = "#bridge/"
_COLUMNS: Final = ("router", "vpn", "client", "filter")


def asked_by_bridges(states: DataFrame) -> Rows:
    """STATES in; every filter that a bridge ever subscribed to: `router`, `vpn`, `client`, `filter`."""
    asked = states.where((F.col("event") == "subscribe") & F.col("client").startswith(_BRIDGE))
    rows: Rows = (
        asked.withColumnRenamed("topic", "filter")
        .select(*_COLUMNS)
        .distinct()
        .toArrow()
        .to_pylist()
    )
    return rows
