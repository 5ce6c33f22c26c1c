"""Condenses trace rows, so that digests are made of few rows and not of all.

What rows have in common (docs/traces.md calls it their context) is read from one row each; all others are counted by
the number of their context. So of a row only integers are looked at, but for its topic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from vpnrouter.limits import REPORT_BROADCAST_ROWS
from vpnrouter.report.digests.columns import counted, payload, stretch_of, weighed
from vpnrouter.report.traces.rows import TraceRows, Weighing, wrong_context
from vpnrouter.trace.schema import CONTEXT
from vpnrouter.units import DAY_NS


class WrongContexts(Exception):
    """Contexts in a file are not those of its rows: another program changed its rows, or its directory."""


Keep = Callable[[str, DataFrame], DataFrame]
"""Lets Spark keep a frame from its first use on; takes the name of the stage that begins with it."""

Keys = Mapping[str, Column]
"""Columns of a group by their names, each from columns of CONTEXT."""

_IN_FULL: Final = ("context", "ts_ns", "topic", *CONTEXT)
_GROUP: Final = "group"


@dataclass(frozen=True, kw_only=True)
class Condensed:
    """Trace rows, condensed.

    * `rows`: as they are (TRACES). `count`: how many.
    * `in_full`: a few of them, and all that concern no message, of earlier times too (TRACE_FILE, in part).
    * `contexts`: `context` and the columns of CONTEXT. `few`: each task can have all of them.
    * `stretches`: by `context` and `start_ns`, the begin of a stretch of time, `count`, `weight`, `bytes`, `first_ns`,
      `last_ns`, and `least_age_ns`, the shortest time from the first ingress anywhere. A stretch is within one of the
      report, and within one day.
    * `topics`: by `context` and `topic` `count`, `weight`, `bytes`.

    `small`: these two have the columns of CONTEXT too, which costs less than to look them up for each digest.
    """

    rows: DataFrame
    count: int
    in_full: DataFrame
    contexts: DataFrame
    few: bool
    stretches: DataFrame
    topics: DataFrame
    small: bool

    def joined(self, frame: DataFrame, some: DataFrame, how: str = "inner") -> DataFrame:
        """Return a frame with a column `context`, with the columns of `some`: a row for each of some contexts."""
        return frame.join(F.broadcast(some) if self.few else some, "context", how)

    def grouped(
        self,
        frame: DataFrame,
        which: Column,
        keys: Keys,
        more: Sequence[Column | str],
        figures: Sequence[Column],
    ) -> DataFrame:
        """Return figures of a frame with a column `context`, grouped by `keys` of those contexts for which `which` is
        true and by `more` columns of the frame.

        The rows of the frame are grouped by a number for each group, and the texts come in at the end.
        """
        if self.small:
            told = frame if CONTEXT[0] in frame.columns else self.joined(frame, self.contexts)
            named = (value.alias(name) for name, value in keys.items())
            return told.where(which).groupBy(*named, *more).agg(*figures)
        contexts = self.contexts.where(which).select(
            "context", *(value.alias(name) for name, value in keys.items())
        )
        numbered = contexts.withColumn(_GROUP, F.xxhash64(*keys))
        sums = (
            self.joined(frame, numbered.select("context", _GROUP))
            .groupBy(_GROUP, *more)
            .agg(*figures)
        )
        names = numbered.drop("context").dropDuplicates([_GROUP])
        return sums.join(F.broadcast(names) if self.few else names, _GROUP).drop(_GROUP)


def condensed(traces: TraceRows, width_ns: int, keep: Keep, *, small: bool = False) -> Condensed:
    """Condense rows for digests with stretches of `width_ns`, in one pass over few rows and two over all. `small`: what
    comes of it will be.

    Raises:
        WrongContexts: the numbers of contexts in the files cannot be used.
    """
    is_wrong = F.max(wrong_context()).alias("is_wrong")
    in_full = keep("links and subscriptions", traces.in_full.select(*_IN_FULL))
    every = F.struct(*CONTEXT)
    by_context = in_full.groupBy("context").agg(F.first(every).alias("columns"), is_wrong)
    contexts = keep("contexts", by_context.select("context", "columns.*", "is_wrong"))
    (known,) = contexts.agg(
        F.count(F.lit(1)).alias("count"), F.max("is_wrong").alias("wrong")
    ).collect()
    if known["wrong"]:
        raise WrongContexts
    few = known["count"] <= REPORT_BROADCAST_ROWS
    # A context without a weight is known; one that no row in full tells is not.
    told = contexts.select(
        "context",
        F.lit(True).alias("is_known"),
        *_weights(traces.weighing),
        *(CONTEXT if small else ()),
    )
    known_of = F.broadcast(told) if few else told
    step_ns = math.gcd(width_ns, DAY_NS)
    stretches = keep(
        "message VPNs and bridges",
        traces.rows.groupBy("context", stretch_of(F.col("ts_ns"), step_ns).alias("start_ns"))
        .agg(
            *_figures(traces.weighing),
            F.min("ts_ns").alias("first_ns"),
            F.max("ts_ns").alias("last_ns"),
            F.min(F.col("ts_ns") - F.col("origin_ts_ns")).alias("least_age_ns"),
        )
        .join(known_of, "context", "left")
        .withColumn("weight", _weight(traces.weighing)),
    )
    (read,) = stretches.agg(
        F.sum("rows").alias("rows"), F.count(F.when(F.col("is_known").isNull(), 1)).alias("unknown")
    ).collect()
    if read["unknown"]:
        raise WrongContexts
    topics = keep(
        "topics",
        traces.rows.where(F.col("topic").isNotNull())
        .groupBy("context", "topic")
        .agg(*_figures(traces.weighing))
        .join(known_of, "context", "left")
        .withColumn("weight", _weight(traces.weighing)),
    )
    return Condensed(
        rows=traces.rows,
        count=read["rows"] or 0,
        in_full=in_full,
        contexts=contexts,
        few=few,
        stretches=stretches,
        topics=topics,
        small=small,
    )


def _figures(weighing: Weighing | None) -> list[Column]:
    """Return `rows`, `count`, `bytes` and, where each row has its own, `weight` of a group of rows."""
    figures = [F.count(F.lit(1)).alias("rows"), counted(), payload()]
    return figures if weighing is not None else [*figures, weighed()]


def _weights(weighing: Weighing | None) -> list[Column]:
    """Return what `_weight` needs of a context."""
    if weighing is None:
        return []
    return [weighing.each.alias("each"), weighing.by_count.alias("by_count")]


def _weight(weighing: Weighing | None) -> Column:
    """Return the weight of a group of rows of one context."""
    if weighing is None:
        return F.col("weight")
    known = Weighing(each=F.col("each"), by_count=F.col("by_count"))
    return known.of(F.col("rows"), F.col("count"))
