"""Finds the subscriptions that clients and bridges hold or held, for how long, and which of them matched.

Filters become regular expressions, built by Spark from columns of filters. The grammar is that of
`vpnrouter.topics.grammar` (docs/topics.md, TOPIC-7 to TOPIC-28); tests compare the expressions with the definition. A
filter that the router would have refused gives some pattern too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from vpnrouter.report.schema import BRIDGE_CLIENT, Edge, edge_named
from vpnrouter.topics.grammar import MQTT as MQTT_DIALECT
from vpnrouter.topics.grammar import QUEUE_PREFIX
from vpnrouter.topics.grammar import SMF as SMF_DIALECT

MQTT: Final = "mqtt"
SMF: Final = "smf"
DIALECTS: Final = {MQTT: MQTT_DIALECT, SMF: SMF_DIALECT}
"""The dialects of `vpnrouter.topics.grammar` by their names in trace files."""

_ONE: Final = "[^/]*"
# A topic that begins with these is matched only by filters whose first level is literal (TOPIC-23, TOPIC-24).
_NOT_HIDDEN: Final = r"(?!\$|#P2P)"


def syntax_of(client: Column, recorded: Column) -> Column:
    """Return the dialect of a subscription: as recorded, else by the kind of client: bridges speak SMF."""
    bridge = client.startswith(BRIDGE_CLIENT)
    return F.coalesce(recorded, F.when(bridge, F.lit(SMF)).otherwise(F.lit(MQTT)))


def exception(filter_: Column, syntax: Column) -> Column:
    """Return whether a filter is a subscription exception (TOPIC-29); in MQTT a leading `!` stands for itself."""
    return (syntax == SMF) & filter_.startswith("!")


def bare(filter_: Column, syntax: Column) -> Column:
    """Return the filter without exception mark, `#noexport/` and share name."""
    shared = F.regexp_replace(filter_, r"^\$share/[^/]+/", "")
    exported = F.regexp_replace(filter_, r"^!?(?:#noexport/)?(?:#share/[^/]+/)?", "")
    return F.when(syntax == MQTT, shared).otherwise(exported)


def levels(text: Column) -> Column:
    """Return the levels of a topic or of a bare filter; empty levels are levels (TOPIC-7)."""
    return F.split(text, "/", -1)


def wild_first(text: Column, syntax: Column) -> Column:
    """Return whether the first level of a bare filter is a wildcard."""
    parts = levels(text)
    first = parts[0]
    smf = first.endswith("*") | (text == ">")
    return F.when(syntax == MQTT, first.isin("+", "#")).otherwise(smf)


def literal(text: Column, syntax: Column) -> Column:
    """Return whether a bare filter has no wildcard, so that it matches only the topic of the same text."""
    parts = levels(text)
    mqtt = F.exists(parts, lambda level: level.isin("+", "#"))
    smf = F.exists(parts, lambda level: level.endswith("*")) | (F.element_at(parts, -1) == ">")
    return ~F.when(syntax == MQTT, mqtt).otherwise(smf)


def pattern(text: Column, syntax: Column) -> Column:
    """Return the regular expression (Java's) that finds exactly the topics that a bare filter matches."""
    guard = F.when(wild_first(text, syntax), F.lit(_NOT_HIDDEN)).otherwise(F.lit(""))
    body = F.when(syntax == MQTT, _mqtt(levels(text))).otherwise(_smf(levels(text)))
    # (?s): a topic may hold line ends. \z and not $, which would pass over a last line end.
    return F.concat(F.lit(r"(?s)\A"), guard, body, F.lit(r"\z"))


def _smf(parts: Column) -> Column:
    last = F.size(parts) - 1

    def piece(level: Column, index: Column) -> Column:
        prefix = F.concat(_quoted(_cut(level)), F.lit(_ONE))
        return (
            F.when((level == ">") & (index == last), F.lit(".*"))
            .when(level.endswith("*"), prefix)
            .otherwise(_quoted(level))
        )

    return F.array_join(F.transform(parts, piece), "/")


def _cut(level: Column) -> Column:
    """Return a level without its last character."""
    return F.substring(level, F.lit(1), F.length(level) - 1)


def _mqtt(parts: Column) -> Column:
    open_end = F.element_at(parts, -1) == "#"
    fixed = F.when(open_end, F.slice(parts, 1, F.size(parts) - 1)).otherwise(parts)
    body = F.array_join(
        F.transform(
            fixed, lambda level: F.when(level == "+", F.lit(_ONE)).otherwise(_quoted(level))
        ),
        "/",
    )
    return (
        F.when(F.size(fixed) == 0, F.lit(".*"))
        .when(open_end, F.concat(body, F.lit("(?:/.*)?")))
        .otherwise(body)
    )


def _quoted(text: Column) -> Column:
    """Return the text quoted; a mark that ends a quotation is quoted by itself."""
    inside = F.replace(text, F.lit(r"\E"), F.lit(r"\E\\E\Q"))
    return F.concat(F.lit(r"\Q"), inside, F.lit(r"\E"))


def by_client(edges: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str, str], Edge]:
    """Return the edges by remote router, remote message VPN, and name of the client there."""
    known = (edge_named(row) for row in edges)
    return {(edge.from_router, edge.from_vpn, edge.client): edge for edge in known}


def bridge_of(client: str) -> str | None:
    """Return the bridge that a client's name stands for; None for any other client.

    A bridge's name has no "/", what stands before it may.
    """
    if not client.startswith(BRIDGE_CLIENT):
        return None
    return client.rpartition("/")[2]


_VPN: Final = ["router", "vpn"]
_MEETS: Final = [*_VPN, "kind", "key"]

# A filter is only compared with topics that have the same key: all of a literal topic, or the first level.
_LITERAL: Final = 0
_HEADED: Final = 1
_ANYWHERE: Final = 2


def unmet(subscriptions: DataFrame, uses: DataFrame) -> DataFrame:
    """Return those rows of `subscriptions` (of `held`) whose filter matches no topic that USES has of their VPN.

    It does not matter who got the messages: shared subscriptions, sessions that are away, and bridges that do not
    send a message back match too.
    """
    text, syntax = F.col("text"), F.col("syntax")
    # Each filter once, however many clients hold it.
    filters = subscriptions.select(*_VPN, "text", "syntax").distinct()
    kind = (
        F.when(literal(text, syntax), _LITERAL)
        .when(wild_first(text, syntax), _ANYWHERE)
        .otherwise(_HEADED)
    )
    key = (
        F.when(F.col("kind") == _LITERAL, text)
        .when(F.col("kind") == _HEADED, levels(text)[0])
        .otherwise("")
    )
    keyed = (
        filters.withColumn("kind", kind)
        .withColumn("key", key)
        .withColumn("pattern", pattern(text, syntax))
    )
    topics = (
        uses.where(F.col("topic").isNotNull())
        .select(*_VPN, "topic")
        .distinct()
        .select(*_VPN, "topic", F.explode(_keys(F.col("topic"))).alias("place"))
        .select(*_VPN, "topic", "place.kind", "place.key")
        .alias("topics")
    )
    met = [F.col(f"filters.{name}") == F.col(f"topics.{name}") for name in _MEETS]
    fits = (F.col("filters.kind") == _LITERAL) | F.rlike(
        F.col("topics.topic"), F.col("filters.pattern")
    )
    left = keyed.alias("filters").join(topics, [*met, fits], "left_anti")
    return subscriptions.join(left.select(*_VPN, "text", "syntax"), [*_VPN, "text", "syntax"])


def _keys(topic: Column) -> Column:
    """Return the places where a topic may meet a filter."""
    keys = {_LITERAL: topic, _HEADED: levels(topic)[0], _ANYWHERE: F.lit("")}
    return F.array(
        *(F.struct(F.lit(kind).alias("kind"), key.alias("key")) for kind, key in keys.items())
    )


KEY: Final = ["router", "vpn", "client", "filter", "syntax"]
"""What names a subscription."""

TOGETHER_NS: Final = 1_000_000_000
"""A client that leaves gives up all its subscriptions within so many nanoseconds."""


def held(states: DataFrame, span: tuple[int, int]) -> DataFrame:
    """Return from STATES one row for each subscription, whether it is still held or not.

    * `router`, `vpn`, `client`, `filter` as written, `syntax` ("mqtt" or "smf");
    * `since_ns`: when it was first made, `until_ns`: when it was last given up, null for one still held
      at the end of `span`, `held_ns`: how long it was held in all, without the gaps;
    * `current`: it is still held, or was among the last ones of a client that holds none any more, as when a
      router stops and takes its clients with it;
    * `text`: the filter without prefixes, and `exception`, see `vpnrouter.report.subscriptions.held`.

    One whose making was not seen counts from the begin of `span` (first and last time, nanoseconds since
    1970). Bindings to queues (`$queue/…`) are no subscriptions and have no row.
    """
    subscriptions = (
        _stretches(states, span)
        .groupBy(*KEY)
        .agg(
            F.min("begin_ns").alias("since_ns"),
            F.max(F.when(F.col("last") & F.col("begins"), F.lit(True))).alias("open"),
            F.max("end_ns").alias("end_ns"),
            F.sum(F.coalesce(F.col("end_ns") - F.col("begin_ns"), F.lit(0))).alias("held_ns"),
        )
    )
    text = bare(F.col("filter"), F.col("syntax"))
    client = Window.partitionBy("router", "vpn", "client")
    opened = F.col("open").isNotNull()
    with_last = F.max("open").over(client).isNull() & (
        F.col("end_ns") >= F.max("end_ns").over(client) - TOGETHER_NS
    )
    return (
        subscriptions.withColumn("current", opened | with_last)
        .withColumn("text", text)
        .where(F.col("text") != "")
        .select(
            *KEY,
            "since_ns",
            F.when(F.col("open").isNull(), F.col("end_ns")).alias("until_ns"),
            "held_ns",
            "current",
            "text",
            exception(F.col("filter"), F.col("syntax")).alias("exception"),
        )
    )


def _stretches(states: DataFrame, span: tuple[int, int]) -> DataFrame:
    """Return one row for each change of a subscription, with the stretch of time in which it was held by it:
    `begins`, `begin_ns` (null where it was not held), `end_ns`, and `last` of the latest change.
    """
    first_ns, last_ns = span
    subscribed = states.where(
        F.col("event").isin("subscribe", "unsubscribe")
        & F.col("client").isNotNull()
        & F.col("topic").isNotNull()
        & ~F.col("topic").startswith(QUEUE_PREFIX)
    )
    # All that follows is by client, so that rows change places once.
    changes = subscribed.repartition("router", "vpn", "client").select(
        "router",
        "vpn",
        "client",
        F.col("topic").alias("filter"),
        syntax_of(F.col("client"), F.col("topic_syntax")).alias("syntax"),
        "ts_ns",
        (F.col("event") == "subscribe").alias("begins"),
    )
    # Of two in the same nanosecond the begin comes first: a subscription that replaces another leaves
    # no trace, so that they can only be one that was made and given up at once.
    order = Window.partitionBy(*KEY).orderBy("ts_ns", F.col("begins").desc())
    after = F.lead("ts_ns").over(order)
    begin = F.when(F.col("begins"), F.col("ts_ns")).when(
        F.lag("begins").over(order).isNull(), F.lit(first_ns)
    )
    end = F.when(F.col("begins"), F.coalesce(after, F.lit(last_ns))).otherwise(F.col("ts_ns"))
    return changes.select(
        *KEY,
        "begins",
        begin.alias("begin_ns"),
        F.greatest(end, begin).alias("end_ns"),
        after.isNull().alias("last"),
    )
