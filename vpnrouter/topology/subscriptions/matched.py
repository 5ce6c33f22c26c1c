"""Which subscriptions matched anything, by the topics seen on their message VPN."""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from vpnrouter.topology.subscriptions import patterns

_VPN: Final = ["router", "vpn"]
_MEETS: Final = [*_VPN, "kind", "key"]

# A filter is only compared with topics that have the same key: all of a literal topic, or the first level.
_LITERAL: Final = 0
_HEADED: Final = 1
_ANYWHERE: Final = 2


def unmet(subscriptions: DataFrame, uses: DataFrame) -> DataFrame:
    """Those rows of `subscriptions` (of `held`) whose filter matches no topic that USES has of their VPN.

    Whoever got the messages: a shared subscription whose group gives them to others, a session that is
    away, or a bridge that keeps a message from going back where it was do match.
    """
    text, syntax = F.col("text"), F.col("syntax")
    # Each filter once, however many clients hold it.
    filters = subscriptions.select(*_VPN, "text", "syntax").distinct()
    kind = (
        F.when(patterns.literal(text, syntax), _LITERAL)
        .when(patterns.wild_first(text, syntax), _ANYWHERE)
        .otherwise(_HEADED)
    )
    key = (
        F.when(F.col("kind") == _LITERAL, text)
        .when(F.col("kind") == _HEADED, patterns.levels(text)[0])
        .otherwise("")
    )
    keyed = (
        filters.withColumn("kind", kind)
        .withColumn("key", key)
        .withColumn("pattern", patterns.pattern(text, syntax))
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
    """The places where a topic may meet a filter."""
    keys = {_LITERAL: topic, _HEADED: patterns.levels(topic)[0], _ANYWHERE: F.lit("")}
    return F.array(
        *(F.struct(F.lit(kind).alias("kind"), key.alias("key")) for kind, key in keys.items())
    )
