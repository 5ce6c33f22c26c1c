"""What is taken off a time that was measured by the clocks of two routers."""

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from vpnrouter.topology.flows.clocks import comparable, offset_of


class Corrections:
    """How far the routers' clocks are apart, from rows of CLOCKS; nothing is known without any."""

    def __init__(self, clocks: Iterable[Mapping[str, Any]] = ()) -> None:
        rows = [dict(row) for row in clocks]
        self._ahead = {name: offset for name, offset in offset_of(rows).items() if offset}
        self._group = comparable(rows)

    def between(self, first: Column, second: Column) -> Column:
        """How far the clock of the router `second` is ahead of that of `first`, nanoseconds; 0 where the two
        cannot be compared.
        """
        if not self._ahead:
            return F.lit(0).cast("long")
        difference = self._ahead_of(second) - self._ahead_of(first)
        if len(set(self._group.values())) < 2:
            return difference
        groups = F.create_map(*(F.lit(text) for pair in self._group.items() for text in pair))
        same = F.element_at(groups, first) == F.element_at(groups, second)
        return F.when(same, difference).otherwise(F.lit(0).cast("long"))

    def _ahead_of(self, router: Column) -> Column:
        pairs = [F.lit(one) for name, offset in self._ahead.items() for one in (name, offset)]
        known = F.element_at(F.create_map(*pairs), router)
        return F.coalesce(known.cast("long"), F.lit(0).cast("long"))
