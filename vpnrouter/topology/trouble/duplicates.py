"""Rule: somebody got the same message more than once."""

from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.limits import REPORT_TROUBLE_ROWS
from vpnrouter.topology.findings import WARNING, Finding
from vpnrouter.topology.tables import Rows
from vpnrouter.topology.trouble.bridges import Bridges, ends
from vpnrouter.topology.trouble.excuses import Excuses
from vpnrouter.topology.trouble.words import counted

_DEAD_MESSAGES: Final = "#DEAD_MSG_QUEUE"
"""Where several queues of a VPN put what they gave up: copies of one message, each rightly."""


def doubles_by_place(doubles: DataFrame) -> DataFrame:
    """DOUBLES in and out, one row a kind, place and those concerned, those with most copies."""
    return (
        doubles.groupBy("kind", "router", "vpn", "who", "other")
        .agg(
            F.sum("messages").alias("messages"),
            F.sum("copies").alias("copies"),
            F.min("example_trace").alias("example_trace"),
            F.min("first_ns").alias("first_ns"),
            F.max("last_ns").alias("last_ns"),
        )
        .orderBy(F.desc("copies"))
        .limit(REPORT_TROUBLE_ROWS)
    )


def duplicates(doubles: Rows, excuses: Excuses, bridges: Bridges) -> list[Finding]:
    """`doubles` of `doubles_by_place` in, a `duplicate` for each client, endpoint and bridge out.

    `value` is how many copies were one too many.
    """
    found = []
    for row in doubles:
        router, vpn, who, copies = row["router"], row["vpn"], row["who"], row["copies"]
        if row["kind"] == "two_ways" or excuses.by_loop(router, vpn, copies):
            continue
        where: dict[str, Any] = {"router": router, "vpn": vpn}
        if row["kind"] == "bridge":
            edge = bridges.receiving(router, vpn, "", who, None)
            if excuses.by_discards(router, vpn, copies) or excuses.by_breaks(
                edge, copies, row["first_ns"], row["last_ns"]
            ):
                continue
            where = ends(edge) if edge else {**where, "bridge": who}
            did = f"bridge {who} brought"
        elif row["kind"] == "enqueue":
            if who == _DEAD_MESSAGES:
                continue
            where["endpoint"] = who
            did = f"endpoint {who} took"
        else:
            where["client"] = who
            did = f"client {who} got"
        trace = row["example_trace"]
        example = f"; one of them is trace {trace}" if trace else ""
        found.append(
            Finding(
                kind="duplicate",
                severity=WARNING,
                **where,
                messages=row["messages"],
                value=float(copies),
                first_ns=row["first_ns"],
                last_ns=row["last_ns"],
                detail=f"In {router}/{vpn} {did} {counted(row['messages'], 'message')} more than once,"
                f" {counted(copies, 'copy', 'copies')} too many{example}.",
            )
        )
    return found
