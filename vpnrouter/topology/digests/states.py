"""Digest: what happened to links and subscriptions, row by row."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.topology.digests.schema import STATES
from vpnrouter.topology.schema import conform

_EVENTS: Final = ("link_up", "link_down", "link_rejected", "subscribe", "unsubscribe")


def states(traces: DataFrame) -> DataFrame:
    """TRACES in, STATES out, unordered."""
    return conform(traces.where(F.col("event").isin(*_EVENTS)), STATES)
