"""Digest: what became of each topic in each message VPN."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.topology.digests.schema import USES
from vpnrouter.topology.digests.sums import counted, payload, weighed
from vpnrouter.topology.schema import conform

_EVENTS: Final = ("ingress", "bridge_receive", "bridge_send", "deliver", "enqueue", "discard")
_UNMATCHED: Final = "no-subscription-match"


def uses(traces: DataFrame) -> DataFrame:
    """TRACES in, USES out, unordered."""
    event = F.col("event")
    unmatched = (event == "discard") & (F.col("reason") == _UNMATCHED)
    grouped = (
        traces.where(event.isin(*_EVENTS) & F.col("topic").isNotNull() & F.col("vpn").isNotNull())
        .groupBy(
            "topic",
            "router",
            "vpn",
            "event",
            F.when(event.isin("deliver", "bridge_send"), F.col("client")).alias("client"),
            F.when(event == "enqueue", F.col("endpoint"))
            .when(unmatched, F.col("reason"))
            .alias("endpoint"),
            "bridge",
            "peer_router",
            "peer_vpn",
        )
        .agg(counted(), weighed(), payload())
    )
    return conform(grouped, USES)
