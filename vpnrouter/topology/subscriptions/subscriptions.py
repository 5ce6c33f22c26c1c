"""All findings about subscriptions, from digests."""

from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.storagelevel import StorageLevel

from vpnrouter.limits import REPORT_SUBSCRIPTION_FINDINGS
from vpnrouter.topology.findings import Finding
from vpnrouter.topology.subscriptions.held import BRIDGE_CLIENT, Edge, Rows, by_client, held
from vpnrouter.topology.subscriptions.over_broad import Crossing, over_broad, worst_crossings
from vpnrouter.topology.subscriptions.unused import never_matched, overlaps
from vpnrouter.topology.subscriptions.wasted import crossings, wasted


def find_subscriptions(
    digests: Mapping[str, DataFrame], edges: Rows, span: tuple[int, int]
) -> list[Finding]:
    """Findings of the kinds never_matched, covered, overlapping, not_examined, over_broad, wasted_crossing.

    `digests` has STATES, USES and PLACES, `edges` are rows of EDGES, `span` is the first and last time observed
    (nanoseconds since 1970). Three small jobs where there is nothing to find; docs/report-subscriptions.md
    says what each finding means.
    """
    # Worked out once: the jobs that follow see rows and not how they came about.
    subscriptions = held(digests["states"], span).localCheckpoint()
    found = overlaps(subscriptions)
    covered = {
        (one.router, one.vpn, one.client, one.topic) for one in found if one.kind == "covered"
    }
    silent = [
        one
        for one in never_matched(subscriptions, digests, span)
        if (one.router, one.vpn, one.client, one.topic) not in covered
    ]
    return [
        *silent[:REPORT_SUBSCRIPTION_FINDINGS],
        *_crossing(subscriptions, digests["uses"], edges),
        *[one for one in found if one.kind == "covered"][:REPORT_SUBSCRIPTION_FINDINGS],
        *(one for one in found if one.kind != "covered"),
    ]


def _crossing(subscriptions: DataFrame, uses: DataFrame, edges: Rows) -> list[Finding]:
    """What crosses bridges for nobody."""
    if not edges:
        return []
    crossed = crossings(uses).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        lost = wasted(crossed, uses)
        if lost is None:
            return []
        worst = worst_crossings(crossed, lost)
    finally:
        crossed.unpersist()
    return over_broad(worst, _held_by_bridges(subscriptions, edges, worst)) if worst else []


def _held_by_bridges(
    subscriptions: DataFrame, edges: Rows, worst: Iterable[Crossing]
) -> dict[Edge, list[tuple[str, str]]]:
    """The subscriptions that the bridges in question hold, or held last."""
    wanted = {crossing.edge.client for crossing in worst}
    known = by_client(edges)
    rows: Rows = (
        subscriptions.where(
            F.col("current")
            & F.col("client").startswith(BRIDGE_CLIENT)
            & F.col("client").isin(*wanted)
        )
        .select("router", "vpn", "client", "filter", "syntax")
        .toArrow()
        .to_pylist()
    )
    found: dict[Edge, list[tuple[str, str]]] = {}
    for row in rows:
        edge = known.get((row["router"], row["vpn"], row["client"]))
        if edge is not None:
            found.setdefault(edge, []).append((row["filter"], row["syntax"]))
    return found
