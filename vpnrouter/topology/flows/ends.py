"""The two ends of a bridge: from the remote message VPN, where messages come from, to the local one."""

from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

Edge = tuple[str, str, str, str, str]
"""From router and VPN, to router and VPN, name of the bridge ("" where none is known)."""

EDGE: Final = ("from_router", "from_vpn", "to_router", "to_vpn", "bridge")
"""The columns of an edge."""

CROSSINGS: Final = ("bridge_send", "bridge_receive")
"""Events of messages on a bridge: at the remote router, and at the local one."""

CHANGES: Final = ("link_up", "link_down")
"""Events of a bridge's link; both ends write them down."""


def edge_of(row: Mapping[str, Any]) -> Edge | None:
    """The edge that a row with `remote`, `router`, `vpn`, `peer_router`, `peer_vpn` and `bridge` is about.

    None for a row that does not say both ends.
    """
    near = (row["router"], row["vpn"])
    far = (row["peer_router"], row["peer_vpn"])
    if None in near or None in far:
        return None
    start, goal = (near, far) if row["remote"] else (far, near)
    return (*start, *goal, row["bridge"] or "")


def edge_named(row: Mapping[str, Any]) -> Edge:
    """The edge of a row that has the columns of one."""
    return (
        row["from_router"],
        row["from_vpn"],
        row["to_router"],
        row["to_vpn"],
        row["bridge"] or "",
    )


def remote_end() -> Column:
    """Whether a row of PLACES was written at the remote end: senders always are there."""
    return (F.col("event") == "bridge_send") | (
        F.col("event").isin(*CHANGES) & F.coalesce(F.col("remote"), F.lit(False))
    )


def with_edge(frame: DataFrame) -> DataFrame:
    """Rows of PLACES that say both ends of a bridge, with the columns of EDGE in place of who wrote
    the row.
    """
    known = F.lit(True)
    for name in ("router", "vpn", "peer_router", "peer_vpn"):
        known &= F.col(name).isNotNull()
    remote = remote_end()

    def either(there: str, here: str) -> Column:
        return F.when(remote, F.col(there)).otherwise(F.col(here))

    return frame.where(known).withColumns(
        {
            "from_router": either("router", "peer_router"),
            "from_vpn": either("vpn", "peer_vpn"),
            "to_router": either("peer_router", "router"),
            "to_vpn": either("peer_vpn", "vpn"),
            "bridge": F.coalesce(F.col("bridge"), F.lit("")),
        }
    )
