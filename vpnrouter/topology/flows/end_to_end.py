"""How long messages took from their first ingress to a delivery or an endpoint."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.limits import REPORT_END_TO_END
from vpnrouter.topology.digests.buckets import percentiles
from vpnrouter.topology.flows.clocks import one_clock
from vpnrouter.topology.flows.gather import histogram
from vpnrouter.topology.flows.latencies import SHARES, merged
from vpnrouter.topology.tables import Rows

_PAIR: Final = ("origin_router", "origin_vpn", "router", "vpn")


def delays(digest: DataFrame) -> pa.Table:
    """DELAYS in; one row a pair of message VPNs with `messages` and the `histogram`: the
    REPORT_END_TO_END pairs with most messages, these first.
    """
    return (
        digest.groupBy(*_PAIR)
        .agg(F.sum("count").alias("messages"), histogram().alias("histogram"))
        .orderBy(F.desc("messages"), *_PAIR)
        .limit(REPORT_END_TO_END)
        .toArrow()
    )


def end_to_end(rows: Iterable[Mapping[str, Any]], references: Mapping[str, str]) -> Rows:
    """Rows of `delays` in; END_TO_END, in the same order.

    `references` are those of the clocks (`clocks.comparable`).
    """
    found = []
    for row in rows:
        p50_ns, p95_ns, p99_ns = percentiles(merged(row["histogram"]).items(), SHARES)
        found.append(
            {
                **{name: row[name] for name in _PAIR},
                "messages": row["messages"],
                "p50_ns": p50_ns,
                "p95_ns": p95_ns,
                "p99_ns": p99_ns,
                "corrected": one_clock(references, row["origin_router"], row["router"]),
            }
        )
    return found
