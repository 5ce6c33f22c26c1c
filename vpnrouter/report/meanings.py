"""Says what each column of the result tables means: docs/report-tables.md is made of it, and lakehouse tables have it
as comments. `vpnrouter.report.schema` declares the columns and their types.
"""

from __future__ import annotations

from typing import Final

from vpnrouter.report.schema import DATE

TABLES: Final = {
    "advice": "a recommended change, the most useful first",
    "findings": "a finding, the worst first",
    "changes": "a difference between two ranges of time, where `--against` was given",
    "nodes": "a message VPN",
    "edges": "a bridge, from the remote message VPN, where messages come from, to the local one, which attracts",
    "links": "a time that a bridge's link was up",
    "rates": "a bridge and a stretch of time in which messages crossed it",
    "latencies": "a bridge and a bucket of its latency histogram",
    "end_to_end": "a pair of message VPNs: from first ingress to delivery, or to an endpoint that took the message",
    "clocks": "a router",
    "ways": "a path of messages",
    "lengths": "a number of bridges that messages had crossed when they entered a message VPN",
    "topics": "a topic and a message VPN in which it was seen",
    "discards": "a message VPN, an event that ended messages early, its reason and its place",
    "providers": "a link of a connector, a provider and a direction",
    "timeline": "a stretch of time with any event",
    "usage": "a day, a message VPN, and a client or a bridge",
    "vpns": "a message VPN and its place in the mesh",
    "what_if": "a router, a bridge or a message VPN and what its loss or a doubled load would do",
    "blast_radius": "a message VPN and what depends on it",
    "growth": "a queue or a bridge and its trend",
    "pairs": "a pair of message VPNs",
}
"""What a row of each table is, in the order of docs/report.md."""

DATE_MEANING: Final = "partition: the last day (UTC) that the report covers"

SHARED: Final = {
    "router": "router of the message VPN",
    "vpn": "message VPN",
    "from_router": "router of the remote message VPN, where messages come from",
    "from_vpn": "remote message VPN",
    "to_router": "router of the local message VPN, which attracts",
    "to_vpn": "local message VPN",
    "bridge": "name of the bridge; null where it is not known or does not apply",
    "peer_router": "router of the remote end of the bridge; null where it does not apply",
    "peer_vpn": "message VPN at the remote end of the bridge; null where it does not apply",
    "client": "client concerned; null where none is",
    "endpoint": "queue or topic endpoint; null where none is concerned",
    "topic": "topic, or filter of a subscription; null where none is concerned",
    "messages": "traced messages",
    "messages_estimated": "`messages` scaled by the sampling rates; null where a rate is not known",
    "bytes": "bytes of their payloads",
    "direct": "Direct messages of `messages`",
    "guaranteed": "Guaranteed messages of `messages`",
    "first_ns": "first time seen",
    "last_ns": "last time seen",
    "start_ns": "begin of the stretch",
    "hops": "bridges crossed",
    "published": "traced messages that entered the mesh",
    "published_bytes": "bytes of the payloads of `published`",
    "published_estimated": "`published` scaled by the sampling rates; null where a rate is not known",
    "delivered": "traced deliveries to clients",
    "delivered_bytes": "bytes of the payloads of `delivered`",
    "delivered_estimated": "`delivered` scaled by the sampling rates; null where a rate is not known",
    "bridged_in": "traced messages received over bridges",
    "bridged_out": "traced messages sent over bridges",
    "discarded": "messages discarded",
    "detail": "a sentence for people",
}
"""Columns that mean the same in each table that has them and says nothing else."""

OWN: Final[dict[str, dict[str, str]]] = {
    "nodes": {
        "traced": "false: known only as the other end of a bridge; counts are null",
        "ingress": "traced messages that entered the mesh here",
        "ingress_bytes": "bytes of the payloads of `ingress`",
        "ingress_estimated": "`ingress` scaled by the sampling rates; null where a rate is not known",
        "spooled": "traced messages that queues and topic endpoints took",
        "rejected": "messages rejected at a client",
    },
    "edges": {
        "messages": "traced messages, of the side that saw more",
        "sent": "what the remote router traced",
        "received": "what the local router traced",
        "peak_messages": "`messages` of the busiest stretch",
        "latency_samples": "messages with a latency",
        "latency_p50_ns": "median of the time from sending to reception; null without samples",
        "latency_p95_ns": "95th percentile of the same",
        "latency_p99_ns": "99th percentile of the same",
        "latency_corrected": "the difference of the two clocks is known and subtracted",
        "latency_error_ns": "bound of the error that the clocks leave; null: they are not corrected",
        "link_ups": "how often the link came up",
        "link_downs": "how often the link went down",
        "up_ns": "time that the link was up; null where nothing of it was seen",
        "configured": "the configurations have it; null without configurations to compare with",
        "cut": "it is the only link between two parts of the mesh",
        "centrality": "share of the shortest paths between message VPNs that lead over it",
    },
    "latencies": {
        "latency_ns": "middle of the bucket",
        "messages": "traced messages in the bucket",
    },
    "end_to_end": {
        "origin_router": "router at which the messages entered",
        "origin_vpn": "message VPN at which they entered",
        "router": "router at which they were received",
        "vpn": "message VPN in which they were received",
        "messages": "traced deliveries and receptions by endpoints",
        "p50_ns": "median of the time since first ingress",
        "p95_ns": "95th percentile of the same",
        "p99_ns": "99th percentile of the same",
        "corrected": "the difference of the two clocks is known and subtracted, or there is one clock",
        "error_ns": "bound of the error that the clocks leave; null: they are not corrected",
    },
    "clocks": {
        "router": "router",
        "reference": "router whose clock it is compared with",
        "offset_ns": "how far its clock is ahead of the reference's; null where it cannot be told",
        "error_ns": "bound of the error of `offset_ns`",
        "pairs": "routers that it was compared with",
        "first_ns": "begin of the stretch, by the clock itself, of one that was set or drifts; null: the whole time",
        "last_ns": "end of the stretch, by the clock itself",
        "drift_ppm": "millionths by which the clock is fast in the stretch; negative: slow",
    },
    "links": {
        "up_ns": "when the link came up",
        "down_ns": "when it went down; null: it is still up",
        "reason": "why it went down",
    },
    "ways": {"way": "`router/vpn>router/vpn`, the last one included"},
    "lengths": {
        "hops": "bridges crossed; 0: published there",
        "messages": "traced messages that entered a message VPN after so many",
    },
    "topics": {"topic": "topic"},
    "discards": {
        "event": "discard, reject, expire or dead_letter",
        "reason": "reason, as the trace row has it",
        "place": "the endpoint, else the bridge, else the client",
        "messages": "messages, those that were not traced included where rows count them",
        "example_topic": "topic of one of them",
    },
    "providers": {
        "connector": "connector",
        "link": "link of the connector",
        "provider": "address of the provider; null where rows do not name one",
        "direction": "`in` from the provider, `out` to it",
        "redelivered": "messages sent to the provider again, not among `messages`",
    },
    "timeline": {
        "ingress": "traced messages that entered the mesh",
        "bridged": "traced messages received over bridges",
    },
    "usage": {
        "what": "`client`, `bridge`, or `rest`: all rows beyond the bound in one",
        "day": "day (UTC) of the events, `2026-03-01`",
        "vpn": "message VPN of the client, or the one where messages entered first",
        "client": "client name; null for bridges",
        "crossings": "traced messages that crossed the bridge",
        "crossing_bytes": "bytes of the payloads of `crossings`",
        "crossings_estimated": "`crossings` scaled by the sampling rates; null where a rate is not known",
        "rows": "rows that this one stands for; 1 but for `rest`",
    },
    "vpns": {
        "component": "number of its connected component; 1 is the largest",
        "articulation": "without it, parts of the mesh are disconnected",
        "centrality": "share of the shortest paths between other message VPNs that lead through it",
        "bridges_in": "bridges that bring messages",
        "bridges_out": "bridges that take messages away",
    },
    "pairs": {
        "other_router": "router of the other message VPN",
        "other_vpn": "the other message VPN",
        "links": "links that must fail before the two are disconnected, counted up to 8; null: not searched",
        "hops": "bridges on a shortest path; null: not searched",
        "widest": "messages over the narrowest step of the widest path",
    },
    "what_if": {
        "kind": "`router`, `bridge`, `double`, or `asked`: what the command was asked",
        "effect": "`summary` of a question, `lost`: a pair that is apart, `rise`: a bridge that carries more",
        "question": "the question",
        "router": "router of what goes or doubles; of an effect, the place",
        "vpn": "its message VPN; null for a router",
        "pairs_lost": "pairs of message VPNs with traffic that cannot reach each other any more",
        "vpns_lost": "message VPNs in these pairs",
        "rising": "bridges that carry more",
        "exceeding": "those whose busiest stretch exceeds the busiest that they have shown",
        "lost_per_s": "traced messages of the pairs that are apart",
        "own_per_s": "traced messages of what goes itself",
        "rerouted_per_s": "crossings that have another way",
        "rise_from_router": "the bridge that exceeds its busiest stretch the most: router of its remote end",
        "rise_from_vpn": "its remote message VPN",
        "rise_to_router": "router of its local end",
        "rise_to_vpn": "its local message VPN",
        "rise_bridge": "its name",
        "before_per_s": "its crossings",
        "after_per_s": "its crossings then",
        "rise_factor": "`after_per_s` divided by `before_per_s`; null for a bridge that carried nothing",
        "peak_factor": "its busiest stretch then, divided by its busiest stretch; null where that is not known",
    },
    "blast_radius": {
        "clients": "its clients that published or received",
        "endpoints": "its endpoints that took messages; null if none in the mesh did",
        "local_per_s": "traced messages that entered and were received in it",
        "senders": "other message VPNs whose messages came into it or led through it",
        "receivers": "other message VPNs that got messages from it or through it",
        "vpns": "both together",
        "clients_beyond": "clients of these",
        "endpoints_beyond": "endpoints of these; null if none in the mesh took messages",
        "beyond_per_s": "traced messages between these and it, or through it",
    },
    "growth": {
        "what": "`queue` or `bridge`",
        "router": "router of the queue, or of the local end of the bridge",
        "unit": "unit of `level`, `limit` and growth: `bytes`, or `messages/s`",
        "level": "what a queue took on in the time reported on; the load of a bridge at its end",
        "per_day": "growth a day",
        "per_day_low": "low end of its interval",
        "per_day_high": "high end of its interval",
        "limit": "quota of a queue; twice the highest load of a bridge",
        "days": "until the limit; null where `reason` says why",
        "days_low": "low end of its interval",
        "days_high": "high end of its interval",
        "stretches": "stretches of the timeline that were used",
        "reason": "why there are no `days`",
    },
    "changes": {
        "what": "`finding`, `bridge`, `vpn` or `topic`",
        "change": "`new`, `gone`, `more` or `less`",
        "measure": "column that differs; of a finding its kind",
        "before": "figure before: a second, or nanoseconds for latencies; messages of a finding",
        "after": "figure now, in the same unit",
    },
    "findings": {
        "kind": "kind of the finding",
        "severity": "`error`, `warning` or `info`",
        "router": "router of the place; for a bridge that of its local end",
        "vpn": "message VPN of the place",
        "reason": "reason that the kind tells apart",
        "messages": "traced messages concerned",
        "value": "a figure that depends on the kind",
    },
    "advice": {
        "rank": "1 is the most useful",
        "action": "kind of the change",
        "router": "router of the place; for a bridge that of its local end",
        "vpn": "message VPN of the place",
        "advice": "a sentence: what to change",
        "evidence": "a sentence: why",
        "effect": "a sentence: what it will do",
        "score": "what the rank is made from",
    },
}
"""Columns of a table alone, and those that mean something else there, or more."""

_UNITS: Final = {"_ns": "ns", "_bytes": "bytes", "_per_s": "messages/s"}
_COUNTED: Final = frozenset(
    (
        *("messages", "peak_messages", "ingress", "delivered", "bridged", "published", "crossings"),
        *("discarded", "rejected", "spooled", "sent", "received", "direct", "guaranteed"),
        *("redelivered", "widest", "latency_samples", "bridged_in", "bridged_out"),
    )
)
_SINCE_1970: Final = {"first_ns", "last_ns", "start_ns"}


def meaning_of(table: str, column: str) -> str:
    """Return what a column of a result table, or its partition, means.

    Raises:
        KeyError: nothing says so.
    """
    if column == DATE:
        return DATE_MEANING
    own = OWN.get(table, {})
    return own[column] if column in own else SHARED[column]


def unit_of(table: str, column: str) -> str:
    """Return the unit of a column of a result table, "" where it has none."""
    if column in _SINCE_1970 or (table == "links" and column in {"up_ns", "down_ns"}):
        return "ns since 1970"
    if column == "bytes":
        return "bytes"
    if table == "growth" and column.startswith(("level", "limit", "per_day")):
        return "`unit`" + ("/day" if column.startswith("per_day") else "")
    if table == "growth" and column.startswith("days"):
        return "days"
    for ending, unit in _UNITS.items():
        if column.endswith(ending):
            return unit
    return "messages" if column.removesuffix("_estimated") in _COUNTED else ""
