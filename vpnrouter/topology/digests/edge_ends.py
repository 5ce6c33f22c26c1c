"""The two ends of the bridge that a trace row tells of."""

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

EDGE: Final = ("from_router", "from_vpn", "to_router", "to_vpn", "bridge")
"""What names an edge: the remote message VPN, where messages come from, the local one, and the bridge."""


def ends(remote: Column) -> dict[str, Column]:
    """The columns of EDGE for a row that the remote router wrote (`remote` true) or the local one."""
    return {
        "from_router": F.when(remote, F.col("router")).otherwise(F.col("peer_router")),
        "from_vpn": F.when(remote, F.col("vpn")).otherwise(F.col("peer_vpn")),
        "to_router": F.when(remote, F.col("peer_router")).otherwise(F.col("router")),
        "to_vpn": F.when(remote, F.col("peer_vpn")).otherwise(F.col("vpn")),
        "bridge": F.coalesce(F.col("bridge"), F.lit("")),
    }
